"""The hyperparameters that are fitted, and a maximum of their (penalised) likelihood, for several data sets at once."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from plumbline.core.lbfgsb import Status, minimise
from plumbline.models.algebra import Kernel
from plumbline.models.gp.likelihood import Covariances, DataSets, Hyperparameters
from plumbline.models.gp.priors import Array, Hyperparameter

ATTEMPTS = 5
"""Greatest number of starts of the optimiser, the first included; as in BoTorch."""

SLOPE = 1e-5
"""Greatest slope of the objective in an optimiser's unit at the end of a fit, as in SciPy."""

SLOPE_NEAR = 1e-4
"""The same in units that make curvatures one: the objective then is within 5e-9 of its maximum.

It is `SLOPE` in units of a tenth, where logarithms have curvatures of about one.
"""

STEP = 0.01
"""Change of a hyperparameter's logarithm over which curvatures are measured."""

FLATTEST, STEEPEST = 0.01, 100.0
"""Least and greatest curvature that a unit of a start comes from: no unit is above ten or below a tenth."""

Bounds = list[tuple[float, float]]
"""Least and greatest value of each coordinate."""


@dataclass(frozen=True)
class Unknowns:
    """The hyperparameters that are fitted; one of size 0 is known.

    The coordinates of a fit are logarithms of the positive hyperparameters in units of `unit`. The first step of
    L-BFGS-B has length one: it then changes none of them by more than a factor of `e^unit`.

    Attributes:
        noise, outputscale, lengthscale: the positive hyperparameters.
        known: values of the known hyperparameters.
        constant: whether the prior mean is fitted; else it is zero.
        unit: unit of the logarithms.
    """

    noise: Hyperparameter
    outputscale: Hyperparameter
    lengthscale: Hyperparameter
    known: Hyperparameters
    constant: bool = True
    unit: float = 0.1

    @property
    def parts(self) -> tuple[Hyperparameter, Hyperparameter, Hyperparameter]:
        """The positive hyperparameters in the order of their coordinates."""
        return self.noise, self.outputscale, self.lengthscale

    @cached_property
    def places(self) -> list[slice]:
        """Slices of the coordinates of each part."""
        ends = np.cumsum([0, *(part.size for part in self.parts)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    @cached_property
    def numbers(self) -> tuple[Array, Array, Array]:
        """The known hyperparameters of each part."""
        return _numbers(self.known)

    @property
    def number(self) -> int:
        """Number of fitted hyperparameters, the prior mean included."""
        return self.constant + sum(part.size for part in self.parts)

    def start(self) -> Array:
        """Return the coordinates of the first start, `k`."""
        return np.concatenate([part.start() for part in self.parts]) / self.unit

    def another_start(self, generator: np.random.Generator) -> Array:
        """Return random coordinates to restart from, `k`."""
        return np.concatenate([part.another_start(generator) for part in self.parts]) / self.unit

    def bounds(self) -> Bounds:
        """Return the bounds of each coordinate."""
        logarithms = [(math.log(part.low), math.log(part.high)) for part in self.parts for _ in range(part.size)]
        return [(low / self.unit, high / self.unit) for low, high in logarithms]

    def coordinates(self, at: Hyperparameters) -> Array:
        """Return the coordinates of hyperparameters, `k`."""
        fitted = [number for part, number in zip(self.parts, _numbers(at), strict=True) if part.size]
        return np.log(np.concatenate([*fitted, np.empty(0)])) / self.unit

    def near(self, at: Hyperparameters, data: DataSets, kernel: Kernel) -> "Start":
        """Return the start of fits to data sets that hardly differ from the one that `at` was fitted to.

        The units make the second derivatives of the penalised likelihood minus one, those of different coordinates
        aside: then a gradient is about as long as the way to the maximum.

        Args:
            at: hyperparameters at a maximum.
            data: the one data set that they were fitted to.
            kernel: kernel of unit variance.
        """
        here, high, step = self.coordinates(at), np.array(self.bounds()).reshape(-1, 2)[:, 1], STEP / self.unit
        # Inwards from an upper bound.
        steps = np.where(here + step > high, -step, step)
        points = np.concatenate([here[None], here + np.diag(steps)])
        _, gradients = self.penalised(points, data.only([0] * len(points)), kernel)
        curvatures = (gradients[0] - gradients[1:]).diagonal() / steps / self.unit**2
        return Start(here, 1 / (self.unit * np.sqrt(curvatures.clip(FLATTEST, STEEPEST))), SLOPE_NEAR)

    def covariances(self, coordinates: Array) -> Covariances:
        """Return the positive hyperparameters at coordinates, `m x k`."""
        values = np.exp(self.unit * coordinates)
        return Covariances(
            *(
                values[:, place] if part.size else number[None].repeat(len(coordinates), 0)
                for part, place, number in zip(self.parts, self.places, self.numbers, strict=True)
            )
        )

    def penalised(self, coordinates: Array, data: DataSets, kernel: Kernel) -> tuple[Array, Array]:
        """Return the penalised log likelihoods (priors added) per datum, `m`, and their gradients, `m x k`.

        Args:
            coordinates: `m x k`.
            data: m data sets.
            kernel: kernel of unit variance.
        """
        at = self.covariances(coordinates)
        values, _, derivatives = data.log_likelihoods(at, kernel)
        gradient = np.empty_like(coordinates)
        for part, place, value, derivative in zip(self.parts, self.places, at, derivatives, strict=True):
            if part.size:
                slope = derivative * value
                if part.prior is not None:
                    density, score = part.prior.log_density(self.unit * coordinates[:, place])
                    values = values + density.sum(-1)
                    slope = slope + score
                gradient[:, place] = slope
        n = data.y.shape[-1]
        return values / n, gradient * (self.unit / n)

    def values(self, coordinates: Array, constant: float = 0.0) -> Hyperparameters:
        """Return the hyperparameters at coordinates, `k`, with a prior mean."""
        (values,) = hyperparameters(self.covariances(coordinates[None]), [constant])
        return values


def hyperparameters(at: Covariances, constants: Sequence[float]) -> list[Hyperparameters]:
    """Return the hyperparameters of each of m data sets, with m prior means."""
    noises, lengthscales = torch.tensor(at.noise).unbind(), torch.tensor(at.lengthscale).unbind()
    outputscales = at.outputscale[:, 0].tolist()
    return [Hyperparameters(*one) for one in zip(constants, noises, outputscales, lengthscales, strict=True)]


def _numbers(at: Hyperparameters) -> tuple[Array, Array, Array]:
    return at.noise.numpy(), np.array([at.outputscale]), at.lengthscale.numpy()


class Start(NamedTuple):
    """Where fits start.

    Attributes:
        coordinates: `k`.
        units: lengths of the optimiser's units in the coordinates, `k`; its first step is no longer than one of them.
        slope: greatest slope in a unit at the end.
    """

    coordinates: Array
    units: Array
    slope: float = SLOPE


End = tuple[Array, float, Status]
"""Coordinates where an attempt ends, `k`, the objective there, and how it ended."""


@dataclass
class Maximum:
    """What the optimiser found for one data set.

    Attributes:
        coordinates: the best end point, `k`; None where the objective is NaN or infinite at each.
        value: the objective there.
        failed: messages of the attempts that did not converge.
    """

    coordinates: Array | None = None
    value: float = -math.inf
    failed: list[str] = field(default_factory=list)

    def take(self, end: End) -> bool:
        """Take note of the end of an attempt, and return whether it converged, which ends the search."""
        coordinates, value, status = end
        finite = math.isfinite(value)
        converged = finite and status is Status.CONVERGED
        if converged or (finite and value > self.value):
            self.coordinates, self.value = coordinates, value
        if not converged:
            self.failed.append(f"L-BFGS-B ended without convergence ({status.name.lower()})")
        return converged


Objective = Callable[[Array, list[int]], tuple[Array, Array]]
"""Maps coordinates, `r x k`, of data sets with given numbers to values, `r`, and gradients, `r x k`, or to NaN."""


def maximise(objective: Objective, unknowns: Unknowns, m: int, near: Start | None = None) -> list[Maximum]:
    """Return a maximum of the objective for each of m data sets.

    L-BFGS-B starts at the hyperparameters' `initial` values. Where it stops without convergence it restarts at draws
    of the priors, as in BoTorch. If no attempt converges, the best end point is returned.

    Args:
        objective: function to maximise, of several data sets at once.
        unknowns: the fitted hyperparameters.
        m: number of data sets.
        near: where the first attempt starts instead, which leaves the initial values to the second.
    """
    bounds, maxima = np.array(unknowns.bounds()), [Maximum() for _ in range(m)]
    if not len(bounds):
        return [Maximum(unknowns.start()) for _ in maxima]
    sources = [_starts(unknowns, near) for _ in maxima]
    left = list(range(m))
    for _ in range(ATTEMPTS):
        ends = _climbs(objective, [next(sources[i]) for i in left], bounds, left)
        left = [i for i, end in zip(left, ends, strict=True) if not maxima[i].take(end)]
        if not left:
            break
    return maxima


def _starts(unknowns: Unknowns, near: Start | None) -> Iterator[Start]:
    """Yield the starts of the attempts on one data set."""
    units = np.ones(sum(part.size for part in unknowns.parts))
    if near is not None:
        yield near
    yield Start(unknowns.start(), units)
    generator = np.random.default_rng(0)
    while True:
        yield Start(unknowns.another_start(generator), units)


def _climbs(objective: Objective, starts: Sequence[Start], bounds: Array, rows: Sequence[int]) -> list[End]:
    """Return where L-BFGS-B ends from the starts of data sets `rows`, of one kind, which climb together."""
    units, slope = starts[0].units, starts[0].slope

    def loss(coordinates: Array, going: list[int]) -> tuple[Array, Array]:
        values, gradients = objective(coordinates, [rows[i] for i in going])
        return -values, -gradients

    coordinates = np.stack([start.coordinates for start in starts])
    low, high = bounds.T
    ends, values, status = minimise(loss, coordinates, low, high, units, pgtol=slope)
    return list(zip(ends, (-values).tolist(), status, strict=True))

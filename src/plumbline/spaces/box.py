"""A box, in which multi-start L-BFGS-B maximises an acquisition function."""

import math
import warnings
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, Self

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.generation import gen_candidates_scipy
from botorch.optim.initializers import gen_batch_initial_conditions
from botorch.utils.sampling import draw_sobol_samples
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.core.lbfgsb import Array, minimise
from plumbline.core.units import usual_unit
from plumbline.spaces.base import Space
from plumbline.spaces.search import EarlyStopping, MultiStart, Neighbourhood, SearchOptions
from plumbline.spaces.with_gradient import Differentiated, evaluation_of, in_usual_units


def uniform(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` independent uniform points in `bounds` (`2 x d`)."""
    return bounds[0] + (bounds[1] - bounds[0]) * torch.rand(n, bounds.shape[1], generator=generator, dtype=bounds.dtype)


def units_of(bounds: Tensor) -> Tensor:
    """Return the lengths, `d`, in which steps are measured in the box `bounds` (`2 x d`) and in its parts."""
    return torch.from_numpy(usual_unit(bounds[1] - bounds[0]))


def batches(bounds: Tensor, n: int, q: int, seed: int) -> Tensor:
    """Return `n x q x d` points of a scrambled Sobol sequence in `bounds` (`2 x d`), grouped into batches at random.

    BoTorch takes a sequence in `q d` dimensions, each point a batch. Scrambling the 3,600 dimensions of Lasso-DNA takes
    a fifth of a second. BoTorch repeats it while too few acquisition values are positive: up to half of a round.
    """
    points = draw_sobol_samples(bounds, n * q, 1, seed=seed).squeeze(-2)
    if q > 1:
        points = points[torch.randperm(n * q, generator=Generator().manual_seed(seed))]
    return points.view(n, q, -1)


def batches_around(bounds: Tensor, around: Neighbourhood, n: int, q: int, seed: int) -> Tensor:
    """Return `n x q x d` points: those of `batches`, the last of them replaced by points around the incumbent.

    The first of the latter is the incumbent itself, each point of the others a Gaussian step from it, cut to the box.
    """
    incumbent, options = around
    samples, some = batches(bounds, n, q, seed), max(1, round(options.share * n))
    generator = Generator().manual_seed(seed)
    close, far = math.log(options.closest), math.log(options.farthest)
    spread = (close + (far - close) * torch.rand(some, 1, 1, generator=generator, dtype=bounds.dtype)).exp()
    steps = torch.randn(some, q, bounds.shape[-1], generator=generator, dtype=bounds.dtype)
    near = incumbent + spread * steps * (bounds[1] - bounds[0])
    near[0] = incumbent
    samples[-some:] = near.clamp(*bounds)
    return samples


class Climbs(NamedTuple):
    """Climbs of an acquisition function that are about to start.

    Attributes:
        acquisition: the function.
        starts: `r x q x d`.
        bounds: `2 x d`.
        units: lengths in which steps are measured, `d`; see `Box`.
    """

    acquisition: AcquisitionFunction
    starts: Tensor
    bounds: Tensor
    units: Tensor


Ends = tuple[Tensor, Tensor]
"""The ends of climbs, `r x q x d`, and the acquisition values there, `r`."""


def climb(climbs: Climbs, maxiter: int, patience: float | None = None) -> Ends:
    """Return the ends of L-BFGS-B; see `climb_each`."""
    return climb_each([climbs], maxiter, patience)[0]


def climb_each(searches: Sequence[Climbs], maxiter: int, patience: float | None = None) -> list[Ends]:
    """Return the ends of L-BFGS-B from the starts of several searches, each with the same number of climbs.

    All climbs run together; the ends of one search do not depend on the others, to the last bit. Acquisition functions
    without hand-written gradients climb in BoTorch, search by search.

    Args:
        searches: the climbs, `r x q x d` each.
        maxiter: greatest number of iterations of a climb.
        patience: a climb that is stopped early gets a gradient of zero; see `SearchOptions`. None for no such stop.
    """
    acquisitions = [search.acquisition for search in searches if isinstance(search.acquisition, Differentiated)]
    if len(acquisitions) < len(searches):
        return [climb_in_botorch(search, maxiter) for search in searches]
    starts = torch.stack([search.starts for search in searches])
    m, r, q, d = starts.shape
    evaluation = evaluation_of(acquisitions, r)
    stops = [] if patience is None else [EarlyStopping(r, patience) for _ in searches]

    def loss(x: Array, rows: list[int]) -> tuple[Array, Array]:
        value, gradient = evaluation(torch.from_numpy(x).view(-1, q, d), rows)
        if stops:
            gradient = gradient.masked_fill(lost(stops, r, rows, value)[:, None, None], 0.0)
        return -value.numpy(), -gradient.flatten(1).numpy()

    limits = torch.stack([torch.cat([search.bounds, search.units.unsqueeze(0)]) for search in searches])
    low, high, units = limits.repeat_interleave(r, 0).repeat(1, 1, q).numpy().swapaxes(0, 1)
    with torch.no_grad():
        ends = minimise(loss, starts.view(m * r, -1).numpy(), low, high, units, maxiter)
    values = -torch.from_numpy(ends.values)
    return list(zip(torch.from_numpy(ends.points).view_as(starts), values.view(m, r), strict=True))


def lost(stops: Sequence[EarlyStopping], climbs: int, rows: list[int], values: Tensor) -> Tensor:
    """Return a mask of the climbs that stop early.

    Args:
        stops: the rule of each search.
        climbs: number of climbs of each.
        rows: numbers of the climbs that go on, `p`, ascending.
        values: their new values, `p`.
    """
    own = [(search, [row % climbs for row in part]) for search, part in groupby(rows, lambda row: row // climbs)]
    parts = values.split([len(part) for _, part in own])
    return torch.cat([stops[search].lost(part, new) for (search, part), new in zip(own, parts, strict=True)])


def climb_in_botorch(climbs: Climbs, maxiter: int) -> Ends:
    """Return the ends of BoTorch's L-BFGS-B, which takes all climbs for one function and autograd for its gradient."""

    def in_units(X: Tensor) -> Tensor:
        return climbs.acquisition(X * units)

    units, options = climbs.units, {"maxiter": maxiter}
    acquisition = climbs.acquisition if bool((units == 1).all()) else in_units
    X, values = gen_candidates_scipy(climbs.starts / units, acquisition, *climbs.bounds / units, options=options)
    return X * units, values


class Box(Space):
    """All points between lower and upper bounds; any of them may be queried again.

    Args:
        bounds: `2 x d`.
        units: `d`, lengths in which climbs measure steps and gradients; by default those that suit the box. A part of a
            box has the units of the whole, where models vary.
    """

    def __init__(self, bounds: Tensor, units: Tensor | None = None) -> None:
        super().__init__(bounds)
        self.units = units_of(bounds) if units is None else units

    def draw(self, n: int, history: History, generator: Generator) -> Tensor:
        """Return `n x d` independent uniform points."""
        return uniform(self.bounds, n, generator)

    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return the points themselves."""
        return X

    def settle(self, history: History, generator: Generator) -> Space:
        """Return the box, which is the same in every round."""
        return self

    def within(self, region: Tensor, history: History, least: int) -> "Box":
        """Return the region, which is already inside the box."""
        return Box(region, self.units)

    def ends(self, acquisition: AcquisitionFunction, search: MultiStart) -> Tensor:
        """Return the end of each climb, `r x q x d`, the best first.

        A climb whose line search fails, as at a kink, ends there; BoTorch would discard and restart all climbs.
        """
        return ends_of_each([self.climbs(acquisition, search)], search.options)[0]

    def climbs(self, acquisition: AcquisitionFunction, search: MultiStart) -> Climbs:
        """Return the climbs of a search, with starts chosen among raw samples as in BoTorch; arguments of `ends`."""
        acquisition = in_usual_units(acquisition)
        generator = partial(batches, self.bounds)
        if search.around is not None:
            generator = partial(batches_around, self.bounds, search.around)
        nonnegative = isinstance(acquisition, Differentiated) and acquisition.nonnegative
        starts = gen_batch_initial_conditions(
            acquisition,
            self.bounds,
            q=search.q,
            num_restarts=search.options.restarts,
            raw_samples=search.options.raw_samples,
            options={"seed": search.seed, "nonnegative": nonnegative},
            generator=generator,
        )
        return Climbs(acquisition, starts, self.bounds, self.units)

    def without(self, X: Tensor) -> Self:
        """Return the box."""
        return self


def ends_of_each(searches: Sequence[Climbs], options: SearchOptions) -> list[Tensor]:
    """Return the ends of the climbs of several searches, `r x q x d` each, the best first; see `climb_each`."""
    # Line searches that fail, and points of a batch that meet, are usual.
    with warnings.catch_warnings(action="ignore"):
        found = climb_each(searches, options.maxiter, options.patience)
    return [X[values.argsort(descending=True, stable=True)].detach() for X, values in found]

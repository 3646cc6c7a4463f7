"""Stochastic gradient Langevin dynamics in the unit cube.

Default steps are plain Langevin steps, as in CBO's Algorithm 4. The published code (88f337f) departs from it; each
departure is an option, and the entries `*-code` of `config/methods/conformal.yaml` combine them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch
from botorch.optim.initializers import initialize_q_batch
from botorch.utils.sampling import draw_sobol_samples
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from scipy.special import expit
from torch import Generator, Tensor

from plumbline.core.numbers import Array
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.methods.conformal.acquisition import ConformalAcquisition

Objective = Callable[[Tensor], Tensor]
"""Maps `b x q x d` points of the unit cube to `b` values."""
WithGradient = Callable[[Array], tuple[Array, Array]]
"""Maps `m x b x q x d` points of the cubes of m searches to values and gradients, `m x b` and `m x b x q x d`."""


FLOOR = 1 / 16
"""Lowest fraction of the learning rate under a cosine schedule, half a period after its start."""

WALL, THICKNESS = 100.0, 0.01
"""Height and thickness of the soft walls outside the cube, in units of the objective and of the cube."""


class LangevinOptions(Options):
    """Options of the chains; defaults of CBO, appendix D, where it gives them.

    Attributes:
        chains: number of parallel chains.
        steps: total number of steps.
        burn_in: initial steps, whose iterates are not draws of the query distribution.
        learning_rate: step along the gradient.
        half_period: steps in which the learning rate falls along a cosine to a sixteenth, before it rises again; None
            for a constant rate.
        friction: share of its velocity that a chain loses in a step; 1 for plain steps without velocity.
        temperature: temperature of the noise, whose variance a step is twice learning rate times temperature (times
            friction).
        cooled: whether the temperature is divided by the root of the number of inputs.
        bounds: treatment of the cube's faces: chains are reflected, are clamped, or cross them and are pulled back by
            soft walls (CBO's code).
        raw_samples: number of Sobol points that the starts are chosen from, better ones more likely.
        asks_for: the best of the chains' ends, or of all iterates in the cube since the burn-in; in both cases under
            the density ratio that the chains learned.
        polish: iterations of L-BFGS-B from that state, under the same ratio; the paper has none.
    """

    chains: PositiveInt = 5
    steps: PositiveInt = 100
    burn_in: NonNegativeInt = 25
    learning_rate: PositiveFloat = 1e-3
    half_period: PositiveInt | None = None
    friction: float = Field(default=1.0, gt=0.0, le=1.0)
    temperature: NonNegativeFloat = 1e-3
    cooled: bool = False
    bounds: Literal["reflect", "clamp", "walls"] = "reflect"
    raw_samples: PositiveInt = 64
    asks_for: Literal["end", "best"] = "end"
    polish: NonNegativeInt = 0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        if self.half_period is None:
            return self.learning_rate
        height = (1 + math.cos(math.pi * step / self.half_period)) / 2
        return self.learning_rate * (FLOOR + (1 - FLOOR) * height)

    def temperature_in(self, dim: int) -> float:
        """Return the temperature in `dim` dimensions."""
        return self.temperature / math.sqrt(dim) if self.cooled else self.temperature


def reflect(U: Array) -> Array:
    """Reflect points at the faces of the unit cube until they are inside."""
    return 1 - np.abs(1 - np.remainder(U, 2))


def bounced(U: Array) -> Array:
    """Return the sign, 1 or -1, that `reflect` gives to the velocity in each coordinate."""
    return np.where(np.remainder(U, 2) > 1, -1.0, 1.0)


def wall_force(U: Array) -> Array:
    """Return the force of the soft walls on the points of m searches, `m x b x q x d`.

    It is the gradient of `-100 (mean sigmoid(-U / .01) + mean sigmoid((U - 1) / .01))`, with means over all chains,
    points and coordinates of a search; it vanishes far outside the cube.
    """
    low, high = expit(-U / THICKNESS), expit((U - 1) / THICKNESS)
    return WALL / THICKNESS / U[0].size * (low * (1 - low) - high * (1 - high))


def starts(objective: Objective, dim: int, q: int, options: LangevinOptions, generator: Generator) -> Tensor:
    """Return the chains' starts, `chains x q x d`: Sobol points, better ones more likely (BoTorch's rule)."""
    cube = torch.stack([torch.zeros(dim, dtype=torch.float64), torch.ones(dim, dtype=torch.float64)])
    seed = draw_seed(generator)
    raw = draw_sobol_samples(cube, n=max(options.raw_samples, options.chains), q=q, seed=seed)
    with torch.no_grad():
        values = objective(raw)
    # BoTorch draws from the global stream here.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        chosen, _ = initialize_q_batch(raw, values, options.chains)
    return chosen


def langevin(
    objective: WithGradient,
    U: Array,
    options: LangevinOptions,
    generators: Sequence[Generator],
    after_step: Callable[[Array], None] = lambda visited: None,
) -> Array:
    """Return the iterates of the Langevin chains of m searches, `m x steps x chains x q x d`; CBO, Algorithm 4.

    With friction `c` chains have a velocity `V`, initially zero: `V <- (1 - c) V + rate * gradient + noise`,
    `U <- U + V`, with noise of variance `2 c * rate * temperature`. With soft walls they may leave the cube.

    Args:
        objective: unnormalised log densities, with their gradients.
        U: `m x chains x q x d` starts.
        options: options of the chains.
        generators: sources of the noise, one a search.
        after_step: receives all iterates since the burn-in, `m x t x chains x q x d`, after each later step.
    """
    temperature, momentum = options.temperature_in(U.shape[-1]), 1 - options.friction
    visited, velocity = np.empty((len(U), options.steps, *U.shape[1:])), np.zeros_like(U)
    noise = np.empty_like(U)
    draws = [torch.from_numpy(one) for one in noise]
    for step in range(options.steps):
        _, gradient = objective(U)
        if not np.isfinite(gradient).all():
            gradient = np.nan_to_num(gradient)
        if options.bounds == "walls":
            gradient = gradient + wall_force(U)
        rate = options.rate(step)
        for one, generator in zip(draws, generators, strict=True):
            one.normal_(generator=generator)
        velocity = momentum * velocity + rate * gradient + math.sqrt(2 * options.friction * rate * temperature) * noise
        U = U + velocity
        if options.bounds == "reflect":
            velocity, U = velocity * bounced(U), reflect(U)
        elif options.bounds == "clamp":
            U = U.clip(0.0, 1.0)
        visited[:, step] = U
        if step >= options.burn_in:
            after_step(visited[:, options.burn_in : step + 1])
    return visited


def askable(first: Tensor, visited: Tensor, options: LangevinOptions) -> tuple[Tensor, Tensor]:
    """Return the candidate states of the chains, all in the cube, `n x q x d`, and the chain of each, `n`.

    Args:
        first: `chains x q x d` starts, the candidates where no iterate is in the cube.
        visited: `steps x chains x q x d`.
        options: options of the chains.
    """
    chains = torch.arange(len(first))
    if options.asks_for == "end":
        return visited[-1].clamp(0.0, 1.0), chains
    since = visited[options.burn_in :]
    inside = ((since >= 0) & (since <= 1)).all(dim=-1).all(dim=-1)
    if not bool(inside.any()):
        return first, chains
    return since[inside], chains.expand(inside.shape)[inside]


VALUED_AT_ONCE = 64
"""Batches of points scored together: more do not fit into the processor's cache."""


class WorthlessRowsWarning(UserWarning):
    """Every row of a table has an acquisition value of exactly zero, as where no conformal set is bounded."""


def values_of_rows(acquisition: ConformalAcquisition, rows: Tensor) -> Tensor:
    """Return the value of each of `n x d` rows as a batch of its own: `n`."""
    with torch.no_grad():
        return torch.cat([acquisition.values(part) for part in rows.unsqueeze(-2).split(VALUED_AT_ONCE)])

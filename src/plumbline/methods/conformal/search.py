"""Stochastic gradient Langevin dynamics in the unit cube, with a density ratio that is learned on the way.

By default steps are plain ones, as CBO's Algorithm 4 reads. The published code (88f337f) walks otherwise; each of its
departures is an option, and `config/methods/conformal.yaml` has them all at once, as `cucb-code` and its like.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from botorch.optim.initializers import initialize_q_batch
from botorch.utils.sampling import draw_sobol_samples
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.methods.conformal.acquisition import ConformalAcquisition

Objective = Callable[[Tensor], Tensor]
"""Maps `b x q x d` points of the unit cube to `b` values."""
WithGradient = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Maps them to values and gradients, `b` and `b x q x d`."""


FLOOR = 1 / 16
"""What a cosine schedule leaves of the learning rate half a period after its start."""

WALL, THICKNESS = 100.0, 0.01
"""Height and thickness of the soft walls outside of the cube, in units of the objective and of the cube."""


class LangevinOptions(Options):
    """Options of the chains; defaults of CBO, appendix D.

    Attributes:
        chains: run side by side.
        steps: in all.
        burn_in: of these, whose iterates are not taken for draws of the query distribution.
        learning_rate: step along the gradient.
        half_period: steps in which the learning rate falls along a cosine to a sixteenth of itself, to rise again in as
            many; None for one that stays.
        friction: share of its velocity that a chain loses in a step; 1 for plain steps, without any velocity.
        temperature: of the noise, whose variance a step is twice learning rate times temperature (times friction).
        cooled: whether the temperature is divided by the root of the number of inputs.
        bounds: what happens at the faces of the cube: chains bounce off, stay on them, or go through and are drawn back
            by walls that are soft (CBO's code).
        raw_samples: Sobol points that the starts are chosen from, better ones more likely.
        asks_for: the best of where the chains end, or of all iterates since the burn-in that lie in the cube; under the
            density ratio that they learned, either way.
        polish: iterations of L-BFGS-B from there, under the same ratio; the paper has none.
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

    def heat(self, dim: int) -> float:
        """Return the temperature in `dim` dimensions."""
        return self.temperature / math.sqrt(dim) if self.cooled else self.temperature


def reflect(U: Tensor) -> Tensor:
    """Return points bounced off the faces of the unit cube until they are inside."""
    return 1 - (1 - U.remainder(2)).abs()


def bounced(U: Tensor) -> Tensor:
    """Return 1 or -1, for each coordinate, by which a velocity is multiplied where `reflect` brings it inside."""
    return torch.where(U.remainder(2) > 1, -1.0, 1.0)


def push_of_walls(U: Tensor) -> Tensor:
    """Return the force of the soft walls on points `b x q x d`.

    It is the gradient of `-100 (mean sigmoid(-U / .01) + mean sigmoid((U - 1) / .01))`, whose means are over all
    chains, points and coordinates: far outside there is none.
    """
    low, high = (-U / THICKNESS).sigmoid(), ((U - 1) / THICKNESS).sigmoid()
    return WALL / THICKNESS / U.numel() * (low * (1 - low) - high * (1 - high))


def starts(objective: Objective, dim: int, q: int, options: LangevinOptions, generator: Generator) -> Tensor:
    """Return the chains' first points, `chains x q x d`: Sobol points, better ones more likely (BoTorch's rule)."""
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
    U: Tensor,
    options: LangevinOptions,
    generator: Generator,
    after_step: Callable[[Tensor], None] = lambda visited: None,
) -> Tensor:
    """Return where chains went, `steps x chains x q x d`; CBO, Algorithm 4.

    With friction `c` they have a velocity `V`, at first zero: `V <- (1 - c) V + rate * gradient + noise`, `U <- U + V`,
    the noise of variance `2 c * rate * temperature`. With soft walls they may be outside of the cube.

    Args:
        objective: whose exponential the chains are to sample, with its gradient.
        U: `chains x q x d` starts.
        options: of the chains.
        generator: of the noise.
        after_step: told of all iterates since the burn-in, `t x chains x q x d`, after each step since then.
    """
    heat, kept = options.heat(U.shape[-1]), 1 - options.friction
    visited, velocity = U.new_empty(options.steps, *U.shape), torch.zeros_like(U)
    for step in range(options.steps):
        _, gradient = objective(U)
        gradient = gradient.nan_to_num(0.0)
        if options.bounds == "walls":
            gradient = gradient + push_of_walls(U)
        rate = options.rate(step)
        noise = torch.randn(U.shape, generator=generator, dtype=U.dtype)
        velocity = kept * velocity + rate * gradient + math.sqrt(2 * options.friction * rate * heat) * noise
        U = U + velocity
        if options.bounds == "reflect":
            velocity, U = velocity * bounced(U), reflect(U)
        elif options.bounds == "clamp":
            U = U.clamp(0.0, 1.0)
        visited[step] = U
        if step >= options.burn_in:
            after_step(visited[options.burn_in : step + 1])
    return visited


def askable(first: Tensor, visited: Tensor, options: LangevinOptions) -> tuple[Tensor, Tensor]:
    """Return the states of chains that may be asked for, all of them in the cube, `n x q x d`, and whose they are, `n`.

    Args:
        first: `chains x q x d`, where they started: what is left where none of the iterates is in the cube.
        visited: `steps x chains x q x d`.
        options: of the chains.
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
"""Batches of points whose labels are scored together: more do not fit into the processor's cache."""


class WorthlessRowsWarning(UserWarning):
    """Every row of a table is worth exactly nothing, as where no row has a bounded conformal set."""


@dataclass(frozen=True)
class Walk:
    """Where chains walk: the unit cube is that of `bounds`, the models' is that of the `domain` (both `2 x d`)."""

    bounds: Tensor
    domain: Tensor

    @cached_property
    def everywhere(self) -> bool:
        """Whether both cubes are one: so they are but in a region."""
        return torch.equal(self.bounds, self.domain)

    def in_domain(self, U: Tensor) -> Tensor:
        """Return points of the walk's cube (`... x d`) in the models' cube."""
        if self.everywhere:
            return U
        low, high = self._ends
        return low + (high - low) * U

    def with_gradient(self, objective: WithGradient) -> WithGradient:
        """Return values and gradients in the walk's cube of an objective with gradients in the models' cube."""
        if self.everywhere:
            return objective
        low, high = self._ends

        def in_walk(U: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = objective(self.in_domain(U))
            return value, (high - low) * gradient

        return in_walk

    @cached_property
    def _ends(self) -> Tensor:
        """The corners of the walk's cube in the models' cube, `2 x d`."""
        return (self.bounds - self.domain[0]) / (self.domain[1] - self.domain[0])


def leaders(values: Tensor, chains: Tensor) -> Tensor:
    """Return which state is the best of each chain, the greatest first.

    Args:
        values: of the states, `n`.
        chains: whose they are, `n`.
    """
    order = values.argsort(descending=True, stable=True)
    _, first = np.unique(chains[order].numpy(), return_index=True)
    return order[torch.from_numpy(first).sort().values]


def worth_of(utility: ConformalAcquisition, rows: Tensor) -> Tensor:
    """Return what each of `n x d` rows is worth alone: `n`."""
    with torch.no_grad():
        return torch.cat([utility.values(part) for part in rows.unsqueeze(-2).split(VALUED_AT_ONCE)])


def draw_rows(rows: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` rows of `m x d`, drawn with replacement."""
    return rows[torch.randint(len(rows), (n,), generator=generator)]

"""Stochastic gradient Langevin dynamics in the unit cube, with a density ratio learned on the way.

Default steps are plain Langevin steps, as in CBO's Algorithm 4. The published code (88f337f) departs from it; each
departure is an option, and the entries `*-code` of `config/methods/conformal.yaml` combine them.
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
"""Maps such points to values and gradients, `b` and `b x q x d`."""


FLOOR = 1 / 16
"""Lowest fraction of the learning rate under a cosine schedule, half a period after its start."""

WALL, THICKNESS = 100.0, 0.01
"""Height and thickness of the soft walls outside the cube, in units of the objective and of the cube."""


class LangevinOptions(Options):
    """Options of the chains; defaults of CBO, appendix D.

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


def reflect(U: Tensor) -> Tensor:
    """Reflect points at the faces of the unit cube until they are inside."""
    return 1 - (1 - U.remainder(2)).abs()


def bounced(U: Tensor) -> Tensor:
    """Return the sign, 1 or -1, that `reflect` gives to the velocity in each coordinate."""
    return torch.where(U.remainder(2) > 1, -1.0, 1.0)


def wall_force(U: Tensor) -> Tensor:
    """Return the force of the soft walls on points `b x q x d`.

    It is the gradient of `-100 (mean sigmoid(-U / .01) + mean sigmoid((U - 1) / .01))`, with means over all chains,
    points and coordinates; it vanishes far outside the cube.
    """
    low, high = (-U / THICKNESS).sigmoid(), ((U - 1) / THICKNESS).sigmoid()
    return WALL / THICKNESS / U.numel() * (low * (1 - low) - high * (1 - high))


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
    U: Tensor,
    options: LangevinOptions,
    generator: Generator,
    after_step: Callable[[Tensor], None] = lambda visited: None,
) -> Tensor:
    """Return the iterates of Langevin chains, `steps x chains x q x d`; CBO, Algorithm 4.

    With friction `c` chains have a velocity `V`, initially zero: `V <- (1 - c) V + rate * gradient + noise`,
    `U <- U + V`, with noise of variance `2 c * rate * temperature`. With soft walls they may leave the cube.

    Args:
        objective: unnormalised log density, with its gradient.
        U: `chains x q x d` starts.
        options: options of the chains.
        generator: source of the noise.
        after_step: receives all iterates since the burn-in, `t x chains x q x d`, after each later step.
    """
    temperature, momentum = options.temperature_in(U.shape[-1]), 1 - options.friction
    visited, velocity = U.new_empty(options.steps, *U.shape), torch.zeros_like(U)
    for step in range(options.steps):
        _, gradient = objective(U)
        gradient = gradient.nan_to_num(0.0)
        if options.bounds == "walls":
            gradient = gradient + wall_force(U)
        rate = options.rate(step)
        noise = torch.randn(U.shape, generator=generator, dtype=U.dtype)
        velocity = momentum * velocity + rate * gradient + math.sqrt(2 * options.friction * rate * temperature) * noise
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


@dataclass(frozen=True)
class Walk:
    """The chains' unit cube, scaled from `bounds`, beside the models', scaled from `domain` (both `2 x d`)."""

    bounds: Tensor
    domain: Tensor

    @cached_property
    def everywhere(self) -> bool:
        """Whether both cubes agree, as they do outside a search region."""
        return torch.equal(self.bounds, self.domain)

    def in_domain(self, U: Tensor) -> Tensor:
        """Map points of the walk's cube (`... x d`) to the models' cube."""
        if self.everywhere:
            return U
        low, high = self._ends
        return low + (high - low) * U

    def with_gradient(self, objective: WithGradient) -> WithGradient:
        """Return the objective on the walk's cube, of one with gradients in the models' cube."""
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
    """Return the index of the best state of each chain, the greatest first.

    Args:
        values: values of the states, `n`.
        chains: chain of each state, `n`.
    """
    order = values.argsort(descending=True, stable=True)
    _, first = np.unique(chains[order].numpy(), return_index=True)
    return order[torch.from_numpy(first).sort().values]


def values_of_rows(acquisition: ConformalAcquisition, rows: Tensor) -> Tensor:
    """Return the value of each of `n x d` rows as a batch of its own: `n`."""
    with torch.no_grad():
        return torch.cat([acquisition.values(part) for part in rows.unsqueeze(-2).split(VALUED_AT_ONCE)])


def draw_rows(rows: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` rows of `m x d`, drawn with replacement."""
    return rows[torch.randint(len(rows), (n,), generator=generator)]

"""Stochastic gradient Langevin dynamics in the unit cube, with a density ratio that is learned on the way."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from botorch.optim.initializers import initialize_q_batch
from botorch.utils.sampling import draw_sobol_samples
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.options import Options
from plumbline.seeding import draw_seed

Objective = Callable[[Tensor], Tensor]
"""Maps `b x q x d` points of the unit cube to `b` values."""
WithGradient = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Maps them to values and gradients, `b` and `b x q x d`."""


class LangevinOptions(Options):
    """Options of the chains; defaults of CBO, appendix D.

    Attributes:
        chains: run side by side.
        steps: in all.
        burn_in: of these, whose iterates are not taken for draws of the query distribution.
        learning_rate: step along the gradient.
        temperature: of the noise, whose variance a step is twice learning rate times temperature.
        bounds: what happens at the faces of the cube: chains bounce off, or stay on them.
        raw_samples: Sobol points that the starts are chosen from, better ones more likely.
        polish: iterations of L-BFGS-B from where the chains end, with the density ratio that they learned; the paper
            has none, and asks for where a chain ends.
    """

    chains: PositiveInt = 5
    steps: PositiveInt = 100
    burn_in: NonNegativeInt = 25
    learning_rate: PositiveFloat = 1e-3
    temperature: NonNegativeFloat = 1e-3
    bounds: Literal["reflect", "clamp"] = "reflect"
    raw_samples: PositiveInt = 64
    polish: NonNegativeInt = 0


def reflect(U: Tensor) -> Tensor:
    """Return points bounced off the faces of the unit cube until they are inside."""
    return 1 - (1 - U.remainder(2)).abs()


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
    """Return where the chains end; CBO, Algorithm 4.

    Args:
        objective: whose exponential the chains are to sample, with its gradient.
        U: `chains x q x d` starts.
        options: of the chains.
        generator: of the noise.
        after_step: told of all iterates since the burn-in, `t x chains x q x d`, after each step since then.
    """
    scale = math.sqrt(2 * options.learning_rate * options.temperature)
    visited = U.new_empty(options.steps, *U.shape)
    for step in range(options.steps):
        _, gradient = objective(U)
        noise = torch.randn(U.shape, generator=generator, dtype=U.dtype)
        U = U + options.learning_rate * gradient.nan_to_num(0.0) + scale * noise
        U = reflect(U) if options.bounds == "reflect" else U.clamp(0.0, 1.0)
        visited[step] = U
        if step >= options.burn_in:
            after_step(visited[options.burn_in : step + 1])
    return U

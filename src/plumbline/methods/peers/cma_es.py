"""The covariance matrix adaptation evolution strategy, by the package cmaes."""

from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field, PositiveFloat

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.methods.base import Proposal, methods
from plumbline.methods.peers.adapter import Array, PeerMethod


class CMAESOptions(Options):
    """Options of CMA-ES.

    Attributes:
        sigma: initial standard deviation, where the box has sides of length one. The package has no default; this is
            the one of Optuna's `CmaEsSampler`, which rests on it.
        population_size: points of a generation; None for the package's `4 + floor(3 ln d)`.
    """

    sigma: PositiveFloat = 1 / 6
    population_size: int | None = Field(None, ge=2)


def replayed(U: Array, cost: Array, initial: int, seed: int, options: CMAESOptions) -> Any:
    """Return the strategy after all complete generations; its updates draw nothing, so that no state has to be kept.

    Args:
        U: `n x d`, points in the unit cube. The best of the first `initial` is the mean of the first generation, and
            the others are its generations, in turn.
        cost: `n`, to be minimised; infinite where an evaluation failed, which is then the worst of its generation.
        initial: number of points of the initial design.
        seed: of what is asked next.
        options: of the method.
    """
    from cmaes import CMA

    dim = U.shape[1]
    start = U[cost[:initial].argmin()] if np.isfinite(cost[:initial]).any() else np.full(dim, 0.5)
    unit = np.tile([0.0, 1.0], (dim, 1))
    strategy = CMA(start, options.sigma, unit, seed=seed, population_size=options.population_size)
    size = strategy.population_size
    for first in range(initial, len(U) - size + 1, size):
        generation = slice(first, first + size)
        strategy.tell(list(zip(U[generation], cost[generation].tolist(), strict=True)))
    return strategy


@methods.register("cma-es", CMAESOptions)
class CMAES(PeerMethod):
    """The evolution strategy CMA-ES of the package cmaes, from the best point of the initial design.

    A failed evaluation is the worst of its generation. There are no restarts.
    """

    libraries: ClassVar[tuple[str, ...]] = ("cmaes",)
    options: CMAESOptions

    def propose(self, history: History, q: int, seed: int) -> Proposal:
        """Return the next `q` draws of the current generation's distribution."""
        low, width = self.domain.bounds[0], self.domain.bounds[1] - self.domain.bounds[0]
        U = ((history.X - low) / width).clamp(0.0, 1.0).numpy()
        cost = history.Y[:, 0].neg().nan_to_num(nan=torch.inf).numpy()
        started = perf_counter()
        strategy = replayed(U, cost, history.initial, seed, self.options)
        asked = torch.from_numpy(np.array([strategy.ask() for _ in range(q)]))
        seconds = {"acquire": perf_counter() - started}
        return Proposal(self.allowed(low + width * asked, history), seconds=seconds)

"""A box: multi-start L-BFGS-B finds where a utility is greatest."""

from typing import Self

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.optim import optimize_acqf
from torch import Generator, Tensor

from plumbline.history import History
from plumbline.spaces.base import Space
from plumbline.spaces.search import SearchOptions


def uniform(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` independent uniform points in `bounds` (`2 x d`)."""
    return bounds[0] + (bounds[1] - bounds[0]) * torch.rand(n, bounds.shape[1], generator=generator, dtype=bounds.dtype)


class Box(Space):
    """All points between lower and upper bounds; any of them may be asked for again."""

    def draw(self, n: int, history: History, generator: Generator) -> Tensor:
        """Return `n x d` independent uniform points."""
        return uniform(self.bounds, n, generator)

    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return the points themselves."""
        return X

    def settle(self, history: History, generator: Generator) -> Space:
        """Return the box: it is the same in every round."""
        return self

    def within(self, region: Tensor, history: History, least: int) -> "Box":
        """Return the region, which is cut to the box already."""
        return Box(region)

    def maximise(self, utility: AcquisitionFunction, q: int, options: SearchOptions, seed: int) -> Tensor:
        """Return the `q x d` points of greatest utility that were climbed to."""
        X, _ = optimize_acqf(
            utility,
            self.bounds,
            q=q,
            num_restarts=options.restarts,
            raw_samples=options.raw_samples,
            options={"seed": seed, "maxiter": options.maxiter},
        )
        return X.detach()

    def without(self, X: Tensor) -> Self:
        """Return the box."""
        return self

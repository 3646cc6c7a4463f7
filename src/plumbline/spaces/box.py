"""A box, in which multi-start L-BFGS-B maximises an acquisition function."""

import math
import warnings
from functools import partial
from typing import Any, Self

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.generation import gen_candidates_scipy
from botorch.optim.initializers import gen_batch_initial_conditions
from botorch.utils.sampling import draw_sobol_samples
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.core.lbfgsb import Array, minimise
from plumbline.spaces.base import Space
from plumbline.spaces.search import EarlyStopping, Neighbourhood, SearchOptions
from plumbline.spaces.with_gradient import Differentiated, in_usual_units


def uniform(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` independent uniform points in `bounds` (`2 x d`)."""
    return bounds[0] + (bounds[1] - bounds[0]) * torch.rand(n, bounds.shape[1], generator=generator, dtype=bounds.dtype)


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


def climb(
    starts: Tensor,
    acquisition: AcquisitionFunction,
    lower_bounds: Tensor,
    upper_bounds: Tensor,
    options: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """Return the ends of L-BFGS-B from `starts`, `r x q x d`, and their acquisition values, `r`.

    Climbs from all starts run together. A climb that is stopped early (`patience` among the options) gets a gradient of
    zero. Acquisition functions without hand-written gradients climb in BoTorch.
    """
    options = dict(options)
    patience = options.pop("patience", None)
    if not isinstance(acquisition, Differentiated):
        return gen_candidates_scipy(
            starts, acquisition, lower_bounds=lower_bounds, upper_bounds=upper_bounds, options=options
        )
    shape = starts.shape[1:]
    heat = None if patience is None else EarlyStopping(len(starts), patience)

    def loss(x: Array, climbs: list[int]) -> tuple[Array, Array]:
        value, gradient = acquisition.value_and_gradient(torch.from_numpy(x).view(-1, *shape))
        if heat is not None:
            gradient = gradient.masked_fill(heat.lost(climbs, value)[:, None, None], 0.0)
        return -value.numpy(), -gradient.flatten(1).numpy()

    lower, upper = (bound.repeat(shape[0]).numpy() for bound in (lower_bounds, upper_bounds))
    with torch.no_grad():
        ends = minimise(loss, starts.flatten(1).numpy(), lower, upper, **options)
    return torch.from_numpy(ends.points).view_as(starts), -torch.from_numpy(ends.values)


class Box(Space):
    """All points between lower and upper bounds; any of them may be queried again."""

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
        return Box(region)

    def ends(
        self,
        acquisition: AcquisitionFunction,
        q: int,
        options: SearchOptions,
        seed: int,
        around: Neighbourhood | None = None,
    ) -> Tensor:
        """Return the end of each climb, `r x q x d`, the best first.

        Starts are chosen among raw samples as in BoTorch. A climb whose line search fails, as at a kink, ends there;
        BoTorch would discard and restart all climbs.
        """
        acquisition = in_usual_units(acquisition)
        generator = partial(batches, self.bounds)
        if around is not None:
            generator = partial(batches_around, self.bounds, around)
        nonnegative = isinstance(acquisition, Differentiated) and acquisition.nonnegative
        starts = gen_batch_initial_conditions(
            acquisition,
            self.bounds,
            q=q,
            num_restarts=options.restarts,
            raw_samples=options.raw_samples,
            options={"seed": seed, "nonnegative": nonnegative},
            generator=generator,
        )
        limits = options.model_dump(include={"maxiter", "patience"})
        # Line searches that fail, and points of a batch that meet, are usual.
        with warnings.catch_warnings(action="ignore"):
            X, values = climb(starts, acquisition, self.bounds[0], self.bounds[1], limits)
        return X[values.argsort(descending=True, stable=True)].detach()

    def without(self, X: Tensor) -> Self:
        """Return the box."""
        return self

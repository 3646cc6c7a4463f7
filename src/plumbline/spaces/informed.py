"""A box whose search starts where a posterior is promising, besides everywhere."""

import warnings

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.sampling import IIDNormalSampler
from botorch.utils.sampling import draw_sobol_samples
from torch import Generator, Size, Tensor

from plumbline.core.history import History
from plumbline.spaces.box import Box, Climbs, batches_around
from plumbline.spaces.search import AroundIncumbent, MultiStart, Neighbourhood
from plumbline.spaces.with_gradient import in_usual_units

SHARE = 0.25
"""Share of the raw samples that lie around the incumbent, and of those that are maximisers of posterior samples."""

EXAMINED = 512
"""Number of points over which posterior samples are maximised."""

PERTURBED = 20
"""Number of inputs, on average, in which half of these points differ from the incumbent; Eriksson et al. (2019)."""


class InformedBox(Box):
    """A box with raw samples of three kinds: everywhere, around the incumbent, and maximisers of posterior samples.

    Starts of climbs are the best of each kind in turn, so that each kind has its share of them. Raw samples are drawn
    and compared once.

    Args:
        bounds: `2 x d`.
        model: posterior of f, with one outcome.
        incumbent: `d`, anywhere; cut to the box.
        units: see `Box`.
    """

    def __init__(self, bounds: Tensor, model: Model, incumbent: Tensor, units: Tensor | None = None) -> None:
        super().__init__(bounds, units)
        self.model = model
        self.incumbent = incumbent.clamp(*bounds)

    def within(self, region: Tensor, history: History, least: int) -> "InformedBox":
        """Return the region, with the same posterior."""
        return InformedBox(region, self.model, self.incumbent, self.units)

    def climbs(self, acquisition: AcquisitionFunction, search: MultiStart) -> Climbs:
        """Return the climbs of a search; arguments of `ends`. Another neighbourhood has no effect."""
        acquisition = in_usual_units(acquisition)
        kinds = self.raw_samples(search.q, search.options.raw_samples, search.seed)
        with torch.no_grad():
            values = [acquisition(samples).nan_to_num(nan=-torch.inf) for samples in kinds]
        return Climbs(acquisition, in_turn(kinds, values)[: search.options.restarts], self.bounds, self.units)

    def raw_samples(self, q: int, n: int, seed: int) -> list[Tensor]:
        """Return `n` batches of each kind in all: everywhere, around the incumbent, and maximisers of samples."""
        some = max(1, round(SHARE * n))
        around = Neighbourhood(self.incumbent, AroundIncumbent(share=some / n if some < n else 0.5))
        spread = batches_around(self.bounds, around, n, q, seed)
        best = sample_maximisers(self.model, self.examined(EXAMINED, seed), some, q, seed)
        return [kind for kind in (spread[some:-some], spread[-some:], best) if len(kind)]

    def examined(self, n: int, seed: int) -> Tensor:
        """Return `n x d` points: half of a Sobol sequence, half with most inputs as the incumbent has them."""
        points = draw_sobol_samples(self.bounds, n, 1, seed=seed).squeeze(-2)
        some = n // 2
        kept = torch.rand(some, self.dim, generator=Generator().manual_seed(seed)) >= PERTURBED / self.dim
        points[:some] = self.incumbent.where(kept, points[:some])
        return points


def sample_maximisers(model: Model, points: Tensor, n: int, q: int, seed: int) -> Tensor:
    """Return `n` batches of `q` distinct points, each of the greatest value of a posterior sample: `n x q x d`.

    Args:
        model: posterior of f, with one outcome.
        points: `k x d`, with `k >= q`.
        n, q: numbers of batches and of points in each.
        seed: of the samples.
    """
    # Jitter for points that nearly meet is usual.
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        samples = IIDNormalSampler(Size([n * q]), seed)(model.posterior(points)).view(n, q, -1)
    chosen = []
    for j in range(q):
        best = samples[:, j].argmax(-1)
        samples[torch.arange(n), :, best] = -torch.inf
        chosen.append(best)
    return points[torch.stack(chosen, -1)]


def in_turn(kinds: list[Tensor], values: list[Tensor]) -> Tensor:
    """Return all samples, the best of each kind first, then the second of each, and so on: `n x q x d`.

    Args:
        kinds: `n_i x q x d` each.
        values: `n_i` each.
    """
    ranks = torch.cat([value.argsort(descending=True, stable=True).argsort() for value in values])
    return torch.cat(kinds)[ranks.argsort(stable=True)]

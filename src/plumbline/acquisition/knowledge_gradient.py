"""The knowledge gradient of a sparse process over some maximisers: where the refinement of its EULBO begins."""

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.utils.transforms import concatenate_pending_points, t_batch_mode_transform
from torch import Tensor

from plumbline.models.process_model import ProcessModel
from plumbline.models.sparse_process import SparseProcess
from plumbline.models.whitened import JITTER

AT_ONCE = 16
"""Batches of points whose updated means are in memory at a time."""

SEARCHED = 16
"""Samples that the search for queries takes; the refinement that follows it takes all."""


class DiscreteKnowledgeGradient(AcquisitionFunction):
    """`E max_j max_t E[f(x'_t) | x_j, y_j]`, the greatest mean over given maximisers after one of the queries was seen.

    The expectation of the utility of Maus et al. (2024), section 3.3, with the domain replaced by a finite set: their
    one-shot form with its inner maximum taken exactly. Values are standardised.

    Args:
        process: trained.
        maximisers: `T x d`, in the problem's bounds.
        base: `S x q`, standard normal.
    """

    def __init__(self, process: SparseProcess, maximisers: Tensor, base: Tensor) -> None:
        super().__init__(model=ProcessModel(process))
        self.process = process
        self.maximisers = maximisers
        self.base = base
        self.X_pending: Tensor | None = None
        self._at = process.units.inputs(maximisers)
        self._A, B = process.seen(self._at)
        self._W = B[:-1]
        self._mean = process.parameters.constant.detach() + B[-1]

    @concatenate_pending_points
    @t_batch_mode_transform()
    def forward(self, X: Tensor) -> Tensor:
        """Return the value of each batch of queries (`n x q x d`, in the problem's bounds): `n`."""
        return torch.cat([self._values(part) for part in X.split(AT_ONCE)])

    def _values(self, X: Tensor) -> Tensor:
        gain = self.gains(X)
        samples = self.base[:SEARCHED, : X.shape[-2]]
        with torch.no_grad():  # which query and maximiser are best has no gradient; what they are worth has
            best = (self._mean + gain.unsqueeze(-3) * samples.unsqueeze(-1)).flatten(-2).argmax(-1)
        query, maximiser = best // len(self._at), best % len(self._at)
        chance = samples.expand(len(X), -1, -1).gather(-1, query.unsqueeze(-1)).squeeze(-1)
        return (self._mean[maximiser] + gain.flatten(-2).gather(-1, best) * chance).mean(-1)

    def gains(self, X: Tensor) -> Tensor:
        """Return what the mean at each maximiser gains with a standard deviation at each query, `n x q x T`.

        As `plumbline.acquisition.soft_utility.mean_update` has it, but what belongs to the maximisers is known once.
        """
        process, parts = self.process, self.process.parameters
        X = process.units.inputs(X)
        A, B = process.seen(X)
        W = B[..., :-1, :]
        variance = (parts.outputscale.detach() + JITTER + (W.square() - A.square()).sum(-2)).clamp_min(JITTER)
        covariance = process.prior(X, self._at) - A.mT @ self._A + W.mT @ self._W
        return covariance * (variance.sqrt() / (variance + parts.noise.detach())).unsqueeze(-1)

    def means(self, X: Tensor) -> Tensor:
        """Return the updated means by sample, query and maximiser, `n x S x q x T`."""
        return self._mean + self.gains(X).unsqueeze(-3) * self.base[:, : X.shape[-2], None]

    def best_maximisers(self, X: Tensor) -> Tensor:
        """Return, for each sample, the maximiser with the greatest mean after queries `X` (`q x d`): `S x d`.

        All are in the problem's bounds.
        """
        with torch.no_grad():
            best = self.means(X.unsqueeze(0)).squeeze(0).amax(-2).argmax(-1)
        return self.maximisers[best]

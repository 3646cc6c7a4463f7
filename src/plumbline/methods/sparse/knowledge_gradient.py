"""The knowledge gradient of an SVGP over given maximisers: its maximum is the start of the EULBO's refinement."""

from collections.abc import Callable

import torch
from torch import Tensor

from plumbline.methods.sparse.reading import Reading, variances, variances_vjp
from plumbline.models.algebra import correlations, squared_distances
from plumbline.models.svgp.posterior import SVGPPosterior
from plumbline.models.svgp.process import SVGP
from plumbline.spaces.with_gradient import Differentiated

AT_ONCE = 16
"""Number of batches whose updated means are in memory at a time."""

SEARCHED = 16
"""Number of samples in the search for queries; the refinement uses all samples."""


class SparseKnowledgeGradient(Differentiated):
    """`E max_j max_t E[f(x'_t) | x_j, y_j]`, the greatest mean over given maximisers after observing one query.

    This is the expected utility of Maus et al. (2024), section 3.3, over a finite set instead of the domain: their
    one-shot form with an exact inner maximum. Values are standardised.

    Args:
        process: the trained process.
        maximisers: `T x d`, in the problem's bounds.
        base: `S x q`, standard normal draws.
        reading: how an observation is drawn and conditioned on.
    """

    def __init__(self, process: SVGP, maximisers: Tensor, base: Tensor, reading: Reading = "noise-free") -> None:
        self.moments = SVGPPosterior(process)
        super().__init__(self.moments.model)
        self.process = process
        self.maximisers = maximisers
        self.base = base
        self.reading = reading
        self.set_X_pending(None)
        self._at = self.moments.marginal_posterior(maximisers)
        # Maps `A` and `W` of a query to its explained covariances with the maximisers.
        m = process.layout.m
        self._explained = torch.cat([-self._at.projected[:, :m], self._at.projected[:, m : 2 * m]], -1)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the value of each batch of queries, `n x q x d` to `n`, and the derivatives, `n x q x d`.

        The gradient is that of the updated mean at the best query and maximiser, whose indices are held fixed.
        """
        values, gradients = [], []
        for part in self.with_pending(X).split(AT_ONCE):
            slope, vjp = self.slopes_with_vjp(part)
            value, best, draw = self._greatest(slope)
            grad_slope = torch.zeros_like(slope).flatten(-2).scatter_add_(-1, best, draw / best.shape[-1])
            values.append(value)
            gradients.append(vjp(grad_slope.view_as(slope)))
        return torch.cat(values), torch.cat(gradients)[:, : X.shape[-2]]

    def values(self, X: Tensor) -> Tensor:
        """Return the value of each batch of queries (`n x q x d`, in the problem's bounds): `n`."""
        return torch.cat([self._greatest(self.slopes(part))[0] for part in self.with_pending(X).split(AT_ONCE)])

    def _greatest(self, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the expected greatest mean, `n`, and for each sample its query and maximiser, and the query's draw.

        The query and maximiser are an index in `q T`; it and the draw are `n x S`.
        """
        samples = self.base[:SEARCHED, : slope.shape[-2]]
        best = (self._at.location + slope.unsqueeze(-3) * samples.unsqueeze(-1)).flatten(-2).argmax(-1)
        query, maximiser = best // slope.shape[-1], best % slope.shape[-1]
        draw = samples.expand(len(slope), -1, -1).gather(-1, query.unsqueeze(-1)).squeeze(-1)
        return (self._at.location[maximiser] + slope.flatten(-2).gather(-1, best) * draw).mean(-1), best, draw

    def slopes(self, X: Tensor) -> Tensor:
        """Return the change of the mean at each maximiser per standard deviation at each query, `n x q x T`.

        As in `soft_knowledge_gradient.mean_update`, but the maximisers' own terms are computed once.
        """
        return self.slopes_with_vjp(X)[0]

    def slopes_with_vjp(self, X: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the slopes and their vector-Jacobian product in the queries, `n x q x d`.

        A slope is `c sqrt(drawn) / conditioned`, with the covariance c of query and maximiser and the two variances of
        the reading at the query.
        """
        m, outputscale = self.process.layout.m, self.moments.outputscale
        queries, at = self.moments.marginal_posterior(X.flatten(0, 1)), self._at
        r2 = squared_distances(queries.scaled.unsqueeze(0), at.scaled.unsqueeze(0)).squeeze(0)
        correlation, by_distance = correlations(r2, self.process.kernel)
        covariance = outputscale * correlation + queries.projected[:, : 2 * m] @ self._explained.mT
        noise = self.process.parameters.noise.detach()
        drawn, conditioned = variances(queries.spread.square(), noise, self.reading)
        share = drawn.sqrt() / conditioned

        def vjp(grad_slope: Tensor) -> Tensor:
            grad_slope = grad_slope.flatten(0, 1)
            grad_covariance = grad_slope * share.unsqueeze(-1)
            grad_share = (grad_slope * covariance).sum(-1) * share
            grad_variance, _ = variances_vjp(grad_share / (2 * drawn), -grad_share / conditioned, self.reading)
            grad_projected = queries.through_spread(2 * queries.spread * grad_variance)
            grad_projected[:, : 2 * m] += grad_covariance @ self._explained
            weights = grad_covariance.mul_(by_distance).mul_(outputscale)
            gradient = queries.vjp_projected(grad_projected)
            gradient.addmm_(weights, at.scaled).addcmul_(weights.sum(-1, keepdim=True), queries.scaled, value=-1)
            return queries.unscaled(gradient).view(X.shape)

        return (covariance * share.unsqueeze(-1)).view(*X.shape[:-1], -1), vjp

    def means(self, X: Tensor) -> Tensor:
        """Return the updated means by sample, query and maximiser, `n x S x q x T`."""
        return self._at.location + self.slopes(X).unsqueeze(-3) * self.base[:, : X.shape[-2], None]

    def best_maximisers(self, X: Tensor) -> Tensor:
        """Return the maximiser with the greatest mean after queries `X` (`q x d`) for each sample: `S x d`.

        Queries and maximisers are in the problem's bounds.
        """
        with torch.no_grad():
            best = self.means(X.unsqueeze(0)).squeeze(0).amax(-2).argmax(-1)
        return self.maximisers[best]

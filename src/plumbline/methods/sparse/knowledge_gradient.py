"""The knowledge gradient of a sparse process over some maximisers: where the refinement of its EULBO begins."""

from collections.abc import Callable

import torch
from torch import Tensor

from plumbline.models.algebra import correlations, squared_distances
from plumbline.models.svgp.posterior import SVGPPosterior
from plumbline.models.svgp.process import SVGP
from plumbline.spaces.with_gradient import Differentiated

AT_ONCE = 16
"""Batches of points whose updated means are in memory at a time."""

SEARCHED = 16
"""Samples that the search for queries takes; the refinement that follows it takes all."""


class DiscreteKnowledgeGradient(Differentiated):
    """`E max_j max_t E[f(x'_t) | x_j, y_j]`, the greatest mean over given maximisers after one of the queries was seen.

    The expectation of the utility of Maus et al. (2024), section 3.3, with the domain replaced by a finite set: their
    one-shot form with its inner maximum taken exactly. Values are standardised.

    Args:
        process: trained.
        maximisers: `T x d`, in the problem's bounds.
        base: `S x q`, standard normal.
    """

    def __init__(self, process: SVGP, maximisers: Tensor, base: Tensor) -> None:
        self.moments = SVGPPosterior(process)
        super().__init__(self.moments.model)
        self.process = process
        self.maximisers = maximisers
        self.base = base
        self.set_X_pending(None)
        self._at = self.moments.marginal_posterior(maximisers)
        # What maps `A` and `W` of a query to its explained covariances with the maximisers.
        m = process.layout.m
        self._explained = torch.cat([-self._at.projected[:, :m], self._at.projected[:, m : 2 * m]], -1)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the value of each batch of queries, `n x q x d` to `n`, and the derivatives, `n x q x d`.

        Which query and maximiser are best has no gradient; what they are worth has.
        """
        values, gradients = [], []
        for part in self.with_pending(X).split(AT_ONCE):
            gain, vjp = self.gains_with_vjp(part)
            value, best, chance = self._greatest(gain)
            grad_gain = torch.zeros_like(gain).flatten(-2).scatter_add_(-1, best, chance / best.shape[-1])
            values.append(value)
            gradients.append(vjp(grad_gain.view_as(gain)))
        return torch.cat(values), torch.cat(gradients)[:, : X.shape[-2]]

    def values(self, X: Tensor) -> Tensor:
        """Return the value of each batch of queries (`n x q x d`, in the problem's bounds): `n`."""
        return torch.cat([self._greatest(self.gains(part))[0] for part in self.with_pending(X).split(AT_ONCE)])

    def _greatest(self, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the expected greatest mean, `n`; by sample, which query and maximiser it is of, and the query's draw.

        Both are `n x S`, the one an index in `q T`.
        """
        samples = self.base[:SEARCHED, : gain.shape[-2]]
        best = (self._at.location + gain.unsqueeze(-3) * samples.unsqueeze(-1)).flatten(-2).argmax(-1)
        query, maximiser = best // gain.shape[-1], best % gain.shape[-1]
        chance = samples.expand(len(gain), -1, -1).gather(-1, query.unsqueeze(-1)).squeeze(-1)
        return (self._at.location[maximiser] + gain.flatten(-2).gather(-1, best) * chance).mean(-1), best, chance

    def gains(self, X: Tensor) -> Tensor:
        """Return what the mean at each maximiser gains with a standard deviation at each query, `n x q x T`.

        As `plumbline.methods.sparse.soft_utility.mean_update` has it, but what belongs to the maximisers is known once.
        """
        return self.gains_with_vjp(X)[0]

    def gains_with_vjp(self, X: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the gains, and what pulls gradients in them back to the queries, `n x q x d`.

        The gain is `c s / (s^2 + noise)` with the covariance c of query and maximiser and the query's deviation s.
        """
        m, outputscale = self.process.layout.m, self.moments.outputscale
        queries, at = self.moments.marginal_posterior(X.flatten(0, 1)), self._at
        r2 = squared_distances(queries.scaled.unsqueeze(0), at.scaled.unsqueeze(0)).squeeze(0)
        correlation, slope = correlations(r2, self.process.kernel)
        covariance = outputscale * correlation + queries.projected[:, : 2 * m] @ self._explained.mT
        sd = queries.spread
        predictive = sd.square() + self.process.parameters.noise.detach()
        share = sd / predictive

        def vjp(grad_gain: Tensor) -> Tensor:
            grad_gain = grad_gain.flatten(0, 1)
            grad_covariance = grad_gain * share.unsqueeze(-1)
            grad_sd = (grad_gain * covariance).sum(-1) * (1 / predictive - 2 * share.square())
            grad_projected = queries.through_spread(grad_sd)
            grad_projected[:, : 2 * m] += grad_covariance @ self._explained
            weights = grad_covariance.mul_(slope).mul_(outputscale)
            gradient = queries.vjp_projected(grad_projected)
            gradient.addmm_(weights, at.scaled).addcmul_(weights.sum(-1, keepdim=True), queries.scaled, value=-1)
            return queries.unscaled(gradient).view(X.shape)

        return (covariance * share.unsqueeze(-1)).view(*X.shape[:-1], -1), vjp

    def means(self, X: Tensor) -> Tensor:
        """Return the updated means by sample, query and maximiser, `n x S x q x T`."""
        return self._at.location + self.gains(X).unsqueeze(-3) * self.base[:, : X.shape[-2], None]

    def best_maximisers(self, X: Tensor) -> Tensor:
        """Return, for each sample, the maximiser with the greatest mean after queries `X` (`q x d`): `S x d`.

        All are in the problem's bounds.
        """
        with torch.no_grad():
            best = self.means(X.unsqueeze(0)).squeeze(0).amax(-2).argmax(-1)
        return self.maximisers[best]

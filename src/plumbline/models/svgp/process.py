"""A trained sparse process, in the problem's own units: what acquisition functions and forecasts see."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from plumbline.models.algebra import SparseKernel, correlations, squared_distances
from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp.cross_covariance import JITTER, factorise
from plumbline.models.svgp.objective import Layout, Parameters, rescaled


def inducing_factor(parameters: Parameters, kernel: SparseKernel) -> Tensor | None:
    """Return the Cholesky factor of the inducing values' prior covariance, `m x m`; None where there is none.

    Args:
        parameters: of one process, `b = 1`.
        kernel: of the process.
    """
    found = factorise(parameters.inducing, parameters.lengthscale, parameters.outputscale, kernel)
    return None if bool(found.broken.any()) else found.L.squeeze(0)


@dataclass(frozen=True)
class SVGP:
    """One sparse variational process.

    Attributes:
        row: its parameters, `p`.
        layout: of the row.
        kernel: of the process.
        units: of its inputs and observations.
        stale: `m x m`, a Cholesky factor of the inducing points' covariance that is used in place of theirs; None for
            theirs.
    """

    row: Tensor
    layout: Layout
    kernel: SparseKernel
    standardisation: Standardisation
    stale: Tensor | None = None

    @property
    def parameters(self) -> Parameters:
        """Its parameters, `b = 1`."""
        return self.layout.parts(self.row.unsqueeze(0))

    def restandardised(self, standardisation: Standardisation) -> "SVGP":
        """Return the same beliefs, about observations in other units."""
        ratio = self.standardisation.scale / standardisation.scale
        shift = (self.standardisation.location - standardisation.location) / standardisation.scale
        stale = None if self.stale is None else self.stale * ratio
        return replace(
            self, row=rescaled(self.row, self.layout, ratio, shift), standardisation=standardisation, stale=stale
        )

    @cached_property
    def factor(self) -> Tensor:
        """The Cholesky factor of the inducing values' prior covariance, `m x m`.

        Raises:
            NotPSDError: there is none.
        """
        found = inducing_factor(self.parameters, self.kernel) if self.stale is None else self.stale
        if found is None:
            raise NotPSDError("the covariance of the inducing points has no Cholesky factor")
        return found

    @cached_property
    def projection(self) -> Tensor:
        """`L^-1`, `C' L^-1` and `mean' L^-1`, `(2 m + 1) x m`: maps `k(Z, x)` to A, B."""
        parts = self.parameters
        identity = torch.eye(self.layout.m).to(self.row)
        inverse = torch.linalg.solve_triangular(self.factor, identity, upper=False)
        lower = torch.cat([parts.factor.squeeze(0).tril(), parts.mean.mT], -1)
        return torch.cat([inverse, lower.mT @ inverse]).detach()

    def prior(self, points: Tensor, others: Tensor) -> Tensor:
        """Return prior covariances of f, `batch_shape x q x k`.

        Args:
            points: `batch_shape x q x d`, in the process's inputs.
            others: `k x d`, likewise.
        """
        parts = self.parameters
        lengthscale = parts.lengthscale.detach()
        flat = (points / lengthscale).reshape(1, -1, points.shape[-1])
        r2 = squared_distances(flat, (others / lengthscale).unsqueeze(0))
        return parts.outputscale.detach() * correlations(r2, self.kernel)[0].reshape(*points.shape[:-1], len(others))

    def seen(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return A (`batch_shape x m x q`) and B (`batch_shape x (m + 1) x q`) of `models.svgp.objective.Forward`.

        Args:
            points: `batch_shape x q x d`, in the process's inputs.
        """
        m = self.layout.m
        both = self.prior(points, self.parameters.inducing.squeeze(0).detach()) @ self.projection.mT
        both = both.mT
        return both[..., :m, :], both[..., m:, :]

    def moments(self, X: Tensor, joint: bool = True) -> tuple[Tensor, Tensor]:
        """Return means of f and their covariances, or variances alone, in the units of the observations.

        Args:
            X: `batch_shape x q x d`, in the problem's bounds.
            joint: covariances of the q points rather than variances.

        Returns:
            `batch_shape x q`, and `batch_shape x q x q` or `batch_shape x q`.
        """
        parts, standardisation = self.parameters, self.standardisation
        outputscale = parts.outputscale.detach()
        points = standardisation.inputs(X)
        A, B = self.seen(points)
        mean = standardisation.location + standardisation.scale * (parts.constant.detach() + B[..., -1, :])
        W = B[..., :-1, :]
        if not joint:
            variance = outputscale + JITTER + (W.square() - A.square()).sum(-2)
            return mean, standardisation.scale**2 * variance.clamp_min(JITTER)
        scaled = (points / parts.lengthscale.detach()).reshape(-1, *points.shape[-2:])
        prior = correlations(squared_distances(scaled, scaled), self.kernel)[0].reshape(*X.shape[:-1], X.shape[-2])
        jitter = JITTER * torch.eye(X.shape[-2]).to(X)
        return mean, standardisation.scale**2 * (outputscale * prior + jitter - A.mT @ A + W.mT @ W)

    @property
    def noise_variance(self) -> float:
        """Variance of the observations' noise, in their units."""
        return float(self.parameters.noise) * self.standardisation.scale**2

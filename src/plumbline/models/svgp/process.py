"""A trained SVGP in the problem's own units, as acquisition functions and forecasts use it."""

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
        parameters: parameters of one SVGP, `b = 1`.
        kernel: kernel of the SVGP.
    """
    inducing = factorise(parameters.inducing, parameters.lengthscale, parameters.outputscale, kernel)
    return None if bool(inducing.broken.any()) else inducing.L.squeeze(0)


@dataclass(frozen=True)
class SVGP:
    """A sparse variational Gaussian process (SVGP).

    Attributes:
        row: parameters, `p`.
        layout: layout of the row.
        kernel: kernel of unit variance.
        standardisation: transforms of inputs and observations.
    """

    row: Tensor
    layout: Layout
    kernel: SparseKernel
    standardisation: Standardisation

    @property
    def parameters(self) -> Parameters:
        """The parameters with a batch dimension `b = 1`."""
        return self.layout.parts(self.row.unsqueeze(0))

    def restandardised(self, standardisation: Standardisation) -> "SVGP":
        """Return the same posterior for observations in other units."""
        ratio = self.standardisation.scale / standardisation.scale
        shift = (self.standardisation.location - standardisation.location) / standardisation.scale
        return replace(self, row=rescaled(self.row, self.layout, ratio, shift), standardisation=standardisation)

    @cached_property
    def factor(self) -> Tensor:
        """The Cholesky factor of the inducing values' prior covariance, `m x m`.

        Raises:
            NotPSDError: there is none.
        """
        factor = inducing_factor(self.parameters, self.kernel)
        if factor is None:
            raise NotPSDError("the covariance of the inducing points has no Cholesky factor")
        return factor

    @cached_property
    def projection(self) -> Tensor:
        """The matrix `L^-1`, `C' L^-1`, `mean' L^-1`, `(2 m + 1) x m`, which maps `k(Z, x)` to A and B."""
        parts = self.parameters
        identity = torch.eye(self.layout.m).to(self.row)
        inverse = torch.linalg.solve_triangular(self.factor, identity, upper=False)
        lower = torch.cat([parts.factor.squeeze(0).tril(), parts.mean.mT], -1)
        return torch.cat([inverse, lower.mT @ inverse]).detach()

    def prior(self, points: Tensor, others: Tensor) -> Tensor:
        """Return prior covariances of f, `batch_shape x q x k`.

        Args:
            points: `batch_shape x q x d`, standardised.
            others: `k x d`, standardised.
        """
        parts = self.parameters
        lengthscale = parts.lengthscale.detach()
        flat = (points / lengthscale).reshape(1, -1, points.shape[-1])
        r2 = squared_distances(flat, (others / lengthscale).unsqueeze(0))
        return parts.outputscale.detach() * correlations(r2, self.kernel)[0].reshape(*points.shape[:-1], len(others))

    def project(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return A (`batch_shape x m x q`) and B (`batch_shape x (m + 1) x q`) of `models.svgp.objective.Forward`.

        Args:
            points: `batch_shape x q x d`, standardised.
        """
        m = self.layout.m
        both = self.prior(points, self.parameters.inducing.squeeze(0).detach()) @ self.projection.mT
        both = both.mT
        return both[..., :m, :], both[..., m:, :]

    def posterior_moments(self, X: Tensor, joint: bool = True) -> tuple[Tensor, Tensor]:
        """Return posterior means of f and covariances, or variances, in the units of the observations.

        Args:
            X: `batch_shape x q x d`, in the problem's bounds.
            joint: whether to return covariances of the q points rather than variances.

        Returns:
            `batch_shape x q`, and `batch_shape x q x q` or `batch_shape x q`.
        """
        parts, standardisation = self.parameters, self.standardisation
        outputscale = parts.outputscale.detach()
        points = standardisation.inputs(X)
        A, B = self.project(points)
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
        """Noise variance, in the units of the observations."""
        return float(self.parameters.noise) * self.standardisation.scale**2

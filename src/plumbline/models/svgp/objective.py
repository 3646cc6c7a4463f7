"""Batched sparse variational Gaussian processes (SVGPs): parameters, posteriors, objectives and gradients.

An SVGP has a constant mean, a stationary kernel with one lengthscale, and Gaussian noise. Its inducing values at
inducing points `Z` are `u = constant + L v`, where `L L' = K(Z, Z)` and `q(v) = N(mean, C C')` (Hensman et al., 2013,
whitened). Points are in the unit cube and observations are standardised. A leading dimension `b` is the batch of seeds
that run together. All parameters of a seed are one row of a matrix, so that seeds are stacked, saved and dropped like
rows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from plumbline.models.algebra import SparseKernel, add_product, product
from plumbline.models.svgp.cross_covariance import JITTER, Inducing, Whitened, factorise
from plumbline.models.svgp.numerics import sigmoid, softplus

LEAST_VARIANCE = 1e-10
"""Least predictive variance of f under a frozen factor, which may leave less than nothing; as in GPyTorch."""

NOISE_FLOOR = 1e-4
"""Least noise variance, as in GPyTorch's Gaussian likelihood."""

LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Layout:
    """Layout of the row of parameters of an SVGP with `m` inducing points in `d` inputs."""

    m: int
    d: int

    @property
    def sizes(self) -> list[int]:
        """Lengths of the parts of a row, in the order of `Parameters`."""
        return [self.m * self.d, self.m, self.m * self.m, 1, 1, 1, 1]

    @property
    def size(self) -> int:
        """Length of a row."""
        return sum(self.sizes)

    def parts(self, rows: Tensor) -> "Parameters":
        """Return views of the parameters of `b` SVGPs.

        Args:
            rows: `b x size`.
        """
        b, m, d = len(rows), self.m, self.d
        Z, mean, factor, scalars = rows.split([m * d, m, m * m, 4], dim=-1)
        return Parameters(Z.view(b, m, d), mean, factor.view(b, m, m), *scalars.unbind(-1))


class Parameters(NamedTuple):
    """Parameters of `b` SVGPs; a positive parameter is the softplus of its raw one, as in GPyTorch.

    Attributes:
        inducing: `b x m x d`, inducing points.
        mean: `b x m`, mean of the whitened inducing values.
        factor: `b x m x m`; the covariance of the whitened inducing values is `C C'` for its lower triangle C.
        constant: `b`, the prior mean.
        raw_lengthscale, raw_outputscale, raw_noise: `b`.
    """

    inducing: Tensor
    mean: Tensor
    factor: Tensor
    constant: Tensor
    raw_lengthscale: Tensor
    raw_outputscale: Tensor
    raw_noise: Tensor

    @property
    def lengthscale(self) -> Tensor:
        """Lengthscale, shared by all inputs, `b`."""
        return softplus(self.raw_lengthscale)

    @property
    def outputscale(self) -> Tensor:
        """Prior variance of f, `b`."""
        return softplus(self.raw_outputscale)

    @property
    def noise(self) -> Tensor:
        """Noise variance, `b`."""
        return softplus(self.raw_noise) + NOISE_FLOOR


def inverse_softplus(value: Tensor) -> Tensor:
    """The inverse softplus of `value` > 0."""
    return value + torch.log(-torch.expm1(-value))


def initial_row(inducing: Tensor) -> Tensor:
    """Return the initial parameters of training: GPyTorch's defaults, with the prior as `q(v)`.

    Args:
        inducing: `m x d`.
    """
    m = len(inducing)
    parts = [inducing.flatten(), inducing.new_zeros(m), torch.eye(m).to(inducing).flatten(), inducing.new_zeros(4)]
    return torch.cat(parts)


def rescaled(row: Tensor, layout: Layout, ratio: float, shift: float) -> Tensor:
    """Return the parameters of the SVGP of `ratio * f + shift`: the same posterior in other units.

    Whitened inducing values do not change, since the factor L carries the units.

    Args:
        row: `size`.
        layout: layout of the row.
        ratio: positive.
        shift: in the new units.
    """
    changed = row.clone().unsqueeze(0)
    parts = layout.parts(changed)
    parts.constant.mul_(ratio).add_(shift)
    parts.raw_outputscale.copy_(inverse_softplus(parts.outputscale * ratio**2))
    parts.raw_noise.copy_(inverse_softplus((parts.noise * ratio**2 - NOISE_FLOOR).clamp_min(1e-8)))
    return changed.squeeze(0)


@dataclass(frozen=True)
class Prepared:
    """The parts of a forward pass of `b` SVGPs that do not depend on the points.

    Attributes:
        parameters: parameters of the SVGPs.
        layout: layout of their rows.
        raw: `b x 3`, the raw lengthscale, outputscale and noise, which end the rows.
        noise: `b`, noise variances.
        inducing: inducing points and the Cholesky factor of their covariance.
        lower: `b x m x (m + 1)`, the lower triangle C and the mean of `q(v)`.
    """

    parameters: Parameters
    layout: Layout
    raw: Tensor
    noise: Tensor
    inducing: Inducing
    lower: Tensor

    def at(self, X: Tensor) -> "Forward":
        """Return the forward pass at points `X`, `b x n x d`."""
        whitened = self.inducing.whiten(X)
        return Forward(self, whitened, product(self.lower.mT, whitened.A))


def prepare(rows: Tensor, layout: Layout, kernel: SparseKernel, frozen: Tensor | None = None) -> Prepared:
    """Return the point-independent parts of forward passes, which must be prepared anew when the rows change.

    Args:
        rows: `b x size`, parameters.
        layout: layout of the rows.
        kernel: kernel of the SVGPs.
        frozen: see `factorise`.
    """
    parameters, raw = layout.parts(rows), rows[:, -3:]
    # One call, as for their derivatives: each alone takes as long as all three.
    lengthscale, outputscale, noise = softplus(raw).unbind(-1)
    inducing = factorise(parameters.inducing, lengthscale, outputscale, kernel, frozen)
    lower = torch.cat([parameters.factor.tril(), parameters.mean.unsqueeze(-1)], -1)
    return Prepared(parameters, layout, raw, noise + NOISE_FLOOR, inducing, lower)


@dataclass(frozen=True)
class Forward:
    """A forward pass: marginal posteriors of `b` SVGPs at `n` points each, with their vector-Jacobian products.

    Attributes:
        prepared: the point-independent parts.
        whitened: `A`, `b x m x n`.
        B: `b x (m + 1) x n`, `C' A` and, in the last row, `mean' A`.
    """

    prepared: Prepared
    whitened: Whitened
    B: Tensor

    @property
    def parameters(self) -> Parameters:
        """Parameters of the SVGPs."""
        return self.prepared.parameters

    @property
    def mean(self) -> Tensor:
        """Posterior means of f, `b x n`."""
        return self.parameters.constant.unsqueeze(-1) + self.B[..., -1, :]

    @property
    def variance(self) -> Tensor:
        """Posterior variances of f, `b x n`, jitter included."""
        explained = (self.B[..., :-1, :].square() - self.whitened.A.square()).sum(-2)
        return (self.prepared.inducing.outputscale + JITTER).unsqueeze(-1) + explained

    def divergence(self) -> Tensor:
        """Return the Kullback-Leibler divergence of `q(v)` from its prior, `b`; MATH: `(|C|^2 + |mean|^2 - m) / 2 - sum
        log |C_ii|`."""
        lower = self.prepared.lower
        diagonal = lower.diagonal(dim1=-2, dim2=-1)
        return 0.5 * (lower.square().sum((-1, -2)) - lower.shape[-2]) - diagonal.abs().log().sum(-1)

    def vjp(
        self,
        grad_whitened: Tensor,
        grad_product: Tensor,
        grad_constant: Tensor,
        grad_lengthscale: Tensor,
        grad_outputscale: Tensor,
        grad_noise: Tensor,
        divergence: Tensor,
    ) -> Tensor:
        """Return the gradient in the rows of parameters, `b x size`.

        Args:
            grad_whitened, grad_product: partial derivatives of the value in `A` and `B`, with `B` an independent input.
            grad_constant, grad_lengthscale, grad_outputscale, grad_noise: `b`, the value's other partial derivatives.
            divergence: `b`, weight of the divergence in the value.
        """
        A, lower = self.whitened.A, self.prepared.lower
        slopes = self.whitened.vjp(grad_whitened + product(lower, grad_product))
        grad_lower = add_product(lower * divergence[:, None, None], A, grad_product.mT)
        grad_factor = grad_lower[..., :-1].tril()
        grad_factor.diagonal(dim1=-2, dim2=-1).sub_(divergence.unsqueeze(-1) / lower.diagonal(dim1=-2, dim2=-1))
        scales = torch.stack(
            [slopes.lengthscale + grad_lengthscale, slopes.outputscale + grad_outputscale, grad_noise], -1
        )
        # In the order of a row.
        parts = [slopes.inducing.flatten(1), grad_lower[..., -1], grad_factor.flatten(1), grad_constant.unsqueeze(-1)]
        return torch.cat([*parts, scales.mul_(sigmoid(self.prepared.raw))], -1)

    def vjp_to_points(self, grad_whitened: Tensor, grad_product: Tensor) -> Tensor:
        """Return the gradient in the points, `b x n x d`.

        Args:
            grad_whitened, grad_product: as for `vjp`.
        """
        return self.whitened.vjp_to_points(grad_whitened + product(self.prepared.lower, grad_product))


def forward(rows: Tensor, layout: Layout, X: Tensor, kernel: SparseKernel) -> Forward:
    """Return the forward pass of SVGPs with parameters `rows` (`b x size`) at the points `X` (`b x n x d`)."""
    return prepare(rows, layout, kernel).at(X)


class Terms(NamedTuple):
    """Terms of an objective, one per datum (`b x n`), and their derivatives in mean, variance and noise variance."""

    value: Tensor
    mean: Tensor
    variance: Tensor
    noise: Tensor


def expected_log_likelihood(y: Tensor, mean: Tensor, variance: Tensor, noise: Tensor) -> Terms:
    """Return `E log N(y; f, noise)` under `f ~ N(mean, variance)`: the data term of the ELBO; Hensman et al. (2013).

    Args:
        y, mean, variance: `b x n`.
        noise: `b x 1`.
    """
    residual = y - mean
    square = residual.square() + variance
    ratio = square / noise
    value = -0.5 * (ratio + (noise.log() + LOG_2PI))
    grad_variance = (-0.5 / noise).expand_as(mean)
    return Terms(value, residual / noise, grad_variance, (1 - ratio) * grad_variance)


def predictive_log_likelihood(y: Tensor, mean: Tensor, variance: Tensor, noise: Tensor) -> Terms:
    """Return `log N(y; mean, variance + noise)`: the data term of PPGPR's objective; Jankowiak et al. (2020).

    Args:
        y, mean, variance: `b x n`.
        noise: `b x 1`.
    """
    residual, total = y - mean, variance + noise
    value = -0.5 * (residual.square() / total + total.log() + LOG_2PI)
    grad_variance = 0.5 * (residual.square() / total - 1) / total
    return Terms(value, residual / total, grad_variance, grad_variance)


Objective = Literal["elbo", "ppgpr"]

OBJECTIVES: dict[Objective, Callable[[Tensor, Tensor, Tensor, Tensor], Terms]] = {
    "elbo": expected_log_likelihood,
    "ppgpr": predictive_log_likelihood,
}


class Batch(NamedTuple):
    """A minibatch of each of `b` seeds.

    Attributes:
        X: `b x n x d`.
        y: `b x n`.
        data: `b`, numbers of data that the minibatches are drawn from.
    """

    X: Tensor
    y: Tensor
    data: Tensor


class Cotangents(NamedTuple):
    """Gradients of a value with respect to the parts of a forward pass: the arguments of `Forward.vjp`."""

    grad_whitened: Tensor
    grad_product: Tensor
    grad_constant: Tensor
    grad_lengthscale: Tensor
    grad_outputscale: Tensor
    grad_noise: Tensor


def fidelity(passed: Forward, batch: Batch, objective: Objective) -> tuple[Tensor, Cotangents]:
    """Return an objective per datum, divergence included, and its derivatives without those of the divergence.

    `Forward.vjp` adds those of the divergence, whose weight is `-1 / data`.

    Args:
        passed: forward pass at the points of the batch.
        batch: the data.
        objective: ELBO or PPGPR.
    """
    A, B = passed.whitened.A, passed.B
    noise, variance = passed.prepared.noise.unsqueeze(-1), passed.variance
    bounded = variance.clamp_min(LEAST_VARIANCE) if passed.prepared.inducing.frozen else variance
    terms = OBJECTIVES[objective](batch.y, passed.mean, bounded, noise)
    value = terms.value.mean(-1) - passed.divergence() / batch.data
    n = batch.y.shape[-1]
    grad_mean, grad_variance = terms.mean / n, terms.variance / n
    if bounded is not variance:
        grad_variance = grad_variance * (variance >= LEAST_VARIANCE)
    twice = 2 * grad_variance.unsqueeze(-2)
    cotangents = Cotangents(
        -twice * A,
        torch.cat([twice * B[..., :-1, :], grad_mean.unsqueeze(-2)], -2),
        grad_mean.sum(-1),
        torch.zeros_like(value),
        grad_variance.sum(-1),
        terms.noise.mean(-1),
    )
    return value, cotangents

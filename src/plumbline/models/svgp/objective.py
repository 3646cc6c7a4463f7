"""Sparse variational Gaussian processes, many at once: parameters, moments, objectives and their gradients.

The process has a constant mean, a stationary kernel with one lengthscale, Gaussian noise, and inducing values
`u = constant + L v` at inducing points `Z`, where `L L' = K(Z, Z)` and `q(v) = N(mean, C C')` (Hensman et al., 2013, in
the whitened form). Points are in the unit cube and observations standardised; a leading dimension `b` is that of seeds
that run together. All parameters of a seed are one row of a matrix, so that seeds are stacked, saved and left out as
rows are.
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

NOISE_FLOOR = 1e-4
"""Least noise variance: that of GPyTorch's Gaussian likelihood."""

LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Layout:
    """Where each parameter of a process with `m` inducing points in `d` inputs is in its row."""

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
        """Return views of the parameters of `b` processes.

        Args:
            rows: `b x size`.
        """
        b, m, d = len(rows), self.m, self.d
        Z, mean, factor, scalars = rows.split([m * d, m, m * m, 4], dim=-1)
        return Parameters(Z.view(b, m, d), mean, factor.view(b, m, m), *scalars.unbind(-1))


class Parameters(NamedTuple):
    """Parameters of `b` processes; a positive number is the softplus of its raw one, as in GPyTorch.

    Attributes:
        inducing: `b x m x d`, inducing points.
        mean: `b x m`, of the whitened inducing values.
        factor: `b x m x m`, whose lower triangle C has `C C'` as their covariance.
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
        """Lengthscale of all inputs, `b`."""
        return softplus(self.raw_lengthscale)

    @property
    def outputscale(self) -> Tensor:
        """Variance of the process, `b`."""
        return softplus(self.raw_outputscale)

    @property
    def noise(self) -> Tensor:
        """Variance of the noise, `b`."""
        return softplus(self.raw_noise) + NOISE_FLOOR


def inverse_softplus(value: Tensor) -> Tensor:
    """Return what softplus maps to `value` > 0."""
    return value + torch.log(-torch.expm1(-value))


def initial_row(inducing: Tensor) -> Tensor:
    """Return the parameters that training begins with: GPyTorch's defaults, `q(v)` the prior.

    Args:
        inducing: `m x d`.
    """
    m = len(inducing)
    parts = [inducing.flatten(), inducing.new_zeros(m), torch.eye(m).to(inducing).flatten(), inducing.new_zeros(4)]
    return torch.cat(parts)


def rescaled(row: Tensor, layout: Layout, ratio: float, shift: float) -> Tensor:
    """Return the parameters of the process `ratio * f + shift`: the same beliefs in other units.

    Whitened inducing values do not change: their factor L carries the units.

    Args:
        row: `size`.
        layout: of the row.
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
    """What a forward pass needs of `b` processes, whatever the points are.

    Attributes:
        parameters: of the processes.
        layout: of their rows.
        raw: `b x 3`, the raw lengthscale, outputscale and noise, which end the rows.
        noise: `b`, variance of the noise.
        inducing: inducing points and the factor of their covariance.
        lower: `b x m x (m + 1)`, the lower triangle C of the factor, and the mean.
    """

    parameters: Parameters
    layout: Layout
    raw: Tensor
    noise: Tensor
    inducing: Inducing
    lower: Tensor

    def at(self, X: Tensor) -> "Forward":
        """Return what the processes say of points `X`, `b x n x d`."""
        whitened = self.inducing.whiten(X)
        return Forward(self, whitened, product(self.lower.mT, whitened.A))


def prepare(rows: Tensor, layout: Layout, kernel: SparseKernel) -> Prepared:
    """Return the processes with parameters `rows` (`b x size`), ready for points; to be made anew when rows change."""
    parameters, raw = layout.parts(rows), rows[:, -3:]
    # At once, as is their derivative: each alone takes as long as all three.
    lengthscale, outputscale, noise = softplus(raw).unbind(-1)
    inducing = factorise(parameters.inducing, lengthscale, outputscale, kernel)
    lower = torch.cat([parameters.factor.tril(), parameters.mean.unsqueeze(-1)], -1)
    return Prepared(parameters, layout, raw, noise + NOISE_FLOOR, inducing, lower)


@dataclass(frozen=True)
class Forward:
    """What `b` processes say of `n` points each, with what gradients need.

    Attributes:
        prepared: the processes.
        whitened: `A`, `b x m x n`.
        B: `b x (m + 1) x n`, `C' A` and, in the last row, the mean's product with `A`.
    """

    prepared: Prepared
    whitened: Whitened
    B: Tensor

    @property
    def parameters(self) -> Parameters:
        """Parameters of the processes."""
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
            to_whitened, to_product: of the value with respect to `A` and `B`, where `B` is a quantity of its own.
            to_constant, to_lengthscale, to_outputscale, to_noise: `b`, of what else depends on them.
            divergence: the weight of the divergence in the value, `b`.
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
            to_whitened, to_product: as of `vjp`.
        """
        return self.whitened.vjp_to_points(grad_whitened + product(self.prepared.lower, grad_product))


def forward(rows: Tensor, layout: Layout, X: Tensor, kernel: SparseKernel) -> Forward:
    """Return what the processes with parameters `rows` (`b x size`) say of the points `X` (`b x n x d`)."""
    return prepare(rows, layout, kernel).at(X)


class Terms(NamedTuple):
    """What each datum adds to an objective, `b x n`, with its derivatives in mean, variance and noise variance."""

    value: Tensor
    mean: Tensor
    variance: Tensor
    noise: Tensor


def expected_log_likelihood(y: Tensor, mean: Tensor, variance: Tensor, noise: Tensor) -> Terms:
    """Return `E log N(y; f, noise)` under `f ~ N(mean, variance)`: the data's part of the ELBO; Hensman et al. (2013).

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
    """Return `log N(y; mean, variance + noise)`: the data's part of PPGPR's objective; Jankowiak et al. (2020).

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
        data: `b`, how many data the batches are from.
    """

    X: Tensor
    y: Tensor
    data: Tensor


class Cotangents(NamedTuple):
    """Derivatives of a value in the parts of a forward pass; arguments of `Forward.vjp`."""

    grad_whitened: Tensor
    grad_product: Tensor
    grad_constant: Tensor
    grad_lengthscale: Tensor
    grad_outputscale: Tensor
    grad_noise: Tensor


def fidelity(passed: Forward, batch: Batch, objective: Objective) -> tuple[Tensor, Cotangents]:
    """Return an objective per datum, divergence included, and its derivatives; of the divergence they are left to
    `Forward.vjp`, whose weight is `-1 / data`.

    Args:
        passed: at the points of the batch.
        batch: the data.
        objective: ELBO or PPGPR.
    """
    A, B = passed.whitened.A, passed.B
    noise = passed.prepared.noise.unsqueeze(-1)
    terms = OBJECTIVES[objective](batch.y, passed.mean, passed.variance, noise)
    value = terms.value.mean(-1) - passed.divergence() / batch.data
    n = batch.y.shape[-1]
    grad_mean, grad_variance = terms.mean / n, terms.variance / n
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

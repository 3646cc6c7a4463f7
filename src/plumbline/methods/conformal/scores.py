"""Full conformal Bayes for exact Gaussian processes, in closed form: scores, masses, relaxed and randomised masks.

CBO's Algorithm 1 refits the model on each candidate label. Here the refitted residuals are lines in the label and the
refitted variances do not depend on it, from one block inverse; differences of scores are then quadratics in the label's
whitened residual, and all labels of all test points are scored by one matrix product. Batches of `q` test points are
augmented together, and the scores of several independent outputs are added up.

Notation: `K + s2n I = R R'`, `B = (R R')^-1`, `a = B (y - mean)`; at `q` test points `u = B k_X`, and `S = L L'` is the
predictive covariance of their observations. A label `y` enters as `z = L^-1 (y - mean)`. Everything is in the process's
standardised space. Each differentiated function has its vector-Jacobian product (VJP) beside it: a map of the gradient
of a scalar in the output to that in the input. The gradient in `C` is called `grad_C`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from plumbline.models.algebra import cholesky_vjp
from plumbline.models.gp.process import GP

LEAST_SQUARE = 1e-30
"""Least variance whose root is taken: smaller ones are rounding errors."""


@dataclass(frozen=True)
class Augmented:
    """The model refitted on `q` more observations, at each of `b` batches of test points.

    Attributes:
        mean: `b x q`, predictive mean.
        root: `b x q x q`, lower Cholesky factor `L` of the predictive covariance of the observations.
        dual_root: `b x q x q`, `L^-T`.
        own_slope: `b x q x q`, `s2n L^-T`: the refitted residuals at the test points are `own_slope z`.
        slope: `b x (n + q) x q`, `s2n u L^-T` and `own_slope`: the refitted residuals at the data and at the test
            points are `intercept - slope z`, up to a sign that no score depends on.
        intercept: `(n + q) x 1`, refitted residuals far from any label: `s2n a`, and 0 at the test points.
        spare: `(n + q) x 1`, refitted variances far from any label: `2 s2n - s2n^2 B_ii`, and `2 s2n`.
        noise: the noise variance `s2n`.
        cross: `b x q x n`, prior covariances of `f` at the test points with the data.
        prior: `b x q x q` (or one row for all), prior covariances among the test points.
        constant: the prior mean.
    """

    mean: Tensor
    root: Tensor
    dual_root: Tensor
    own_slope: Tensor
    slope: Tensor
    intercept: Tensor
    spare: Tensor
    noise: Tensor
    cross: Tensor
    prior: Tensor
    constant: float

    @property
    def sd(self) -> Tensor:
        """Predictive standard deviations of the observations, `b x q`."""
        return self.root.square().sum(dim=-1).sqrt()

    @property
    def variances(self) -> Tensor:
        """The refitted predictive variances at the data and at the test points, `b x (n + q) x 1`.

        `s2n (2 - s2n A_ii)` with the augmented inverse `A`: they do not depend on the labels.
        """
        return self.spare - squares(self.slope)

    def function_mean(self, z: Tensor) -> Tensor:
        """Return the mean of `f` at the test points after refitting on labels `b x k x q`, of the same shape."""
        return self.mean.unsqueeze(-2) + times_transpose(z, self.root - self.own_slope)

    def function_root(self) -> Tensor:
        """Return a root of the covariance of `f` at the test points after refitting: `b x q x q`, for any label."""
        return cholesky(diagonal_minus(self.noise, times_transpose(self.own_slope, self.own_slope)))


def times(A: Tensor, S: Tensor) -> Tensor:
    """Return `A S` for a small square `S`, `... x q x q`; elementwise at q = 1, which is cheaper."""
    return A * S if S.shape[-1] == 1 else A @ S


def times_transpose(A: Tensor, S: Tensor) -> Tensor:
    """Return `A S'`, likewise."""
    return A * S if S.shape[-1] == 1 else A @ S.mT


def inner(A: Tensor, B: Tensor) -> Tensor:
    """Return `A' B`, `... x q x q`, of two `... x k x q`; a sum of products at q = 1, which is cheaper."""
    return (A * B).sum(dim=-2, keepdim=True) if B.shape[-1] == 1 else A.mT @ B


def wide_times_narrow(A: Tensor, B: Tensor) -> Tensor:
    """Return `A B` of a `B` with few columns as `(B' A')'`, which BLAS computes in half the time."""
    return (B.mT @ A.mT).mT


def squares(A: Tensor) -> Tensor:
    """Return the sums of squares of the rows of `... x n x q`: `... x n x 1`."""
    return A * A if A.shape[-1] == 1 else A.square().sum(dim=-1, keepdim=True)


def diagonal_minus(number: Tensor, S: Tensor) -> Tensor:
    """Return `number I - S`, `... x q x q`."""
    return number - S if S.shape[-1] == 1 else number * torch.eye(S.shape[-1], dtype=S.dtype) - S


def cholesky(S: Tensor) -> Tensor:
    """Return the lower Cholesky factor of `... x q x q`; a square root at q = 1, which is cheaper."""
    if S.shape[-1] == 1:
        return S.clamp_min(LEAST_SQUARE).sqrt()
    eye = torch.eye(S.shape[-1], dtype=S.dtype)
    return torch.linalg.cholesky(S + 1e-12 * S.diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None] * eye)


def dual(root: Tensor) -> Tensor:
    """Return `L^-T` of lower triangular `L`, `... x q x q`."""
    if root.shape[-1] == 1:
        return root.reciprocal()
    eye = torch.eye(root.shape[-1], dtype=root.dtype).expand_as(root)
    return torch.linalg.solve_triangular(root, eye, upper=False).mT


CovariancesVJP = Callable[[Tensor, Tensor], Tensor]


def covariances_with_vjp(process: GP, U: Tensor) -> tuple[Tensor, Tensor, CovariancesVJP]:
    """Return prior covariances with the data and among test points, and the VJP of both in the points.

    Args:
        process: fitted, with the same noise variance for all observations.
        U: `b x q x d`, in the unit cube.

    Returns:
        `b x q x n`; `b x q x q`, or `1 x 1 x 1` where it is constant; a function of the gradients in these, the second
        one symmetric.
    """
    b, q, d = U.shape
    cross, vjp_cross = process.prior_with_vjp(U.reshape(1, b * q, d), process.U.unsqueeze(0))
    cross = cross.view(b, q, -1)
    if q == 1:
        prior = U.new_full((1, 1, 1), process.at.outputscale)
        return cross, prior, lambda grad_cross, grad_prior: vjp_cross(grad_cross.view(1, b * q, -1)).view(U.shape)
    prior, vjp_prior = process.prior_with_vjp(U, U)

    def vjp(grad_cross: Tensor, grad_prior: Tensor) -> Tensor:
        # Points enter the symmetric matrix on the left and on the right.
        return vjp_cross(grad_cross.reshape(1, b * q, -1)).view(U.shape) + 2 * vjp_prior(grad_prior)

    return cross, prior, vjp


class Cotangents(NamedTuple):
    """Gradients of a scalar in the parts of an `Augmented` other than the slope of its data; None for zero.

    Each has the shape of its part; the one in the prior is symmetric. `grad_own_slope` adds to the gradient in the
    last rows of `slope`.
    """

    grad_mean: Tensor
    grad_root: Tensor
    grad_own_slope: Tensor | None = None
    grad_dual_root: Tensor | None = None
    grad_cross: Tensor | None = None
    grad_prior: Tensor | None = None


def augment(process: GP, U: Tensor) -> Augmented:
    """Return the augmented system at test points.

    Args:
        process: fitted, with the same noise variance for all observations.
        U: `b x q x d`, in the unit cube.
    """
    return augment_with_vjp(process, U)[0]


def augment_with_vjp(process: GP, U: Tensor) -> tuple[Augmented, Callable[[Cotangents, Tensor], Tensor]]:
    """Return the augmented system at test points, and its VJP: gradients in its parts, its slope last, to the points.

    From `W = (u P, P)`, `P = s2n D`, `D = L^-T`, `L L' = k + s2n - u' k_X`, `u' = k_X' B` and `mean = k_X' a` follow
    `grad_P = u' grad_uP + grad_P`, `grad_D = s2n grad_P`, `grad_L -= D grad_D' D`, and in the cross-covariances `k_X'`
    `(grad_uP P')' B - 2 grad_LL' u' + grad_mean a'`.
    """
    cross, prior, vjp_covariances = covariances_with_vjp(process, U)
    _, q, n = cross.shape
    noise, own = process.noise, U.new_zeros(q)
    half = cross @ process.inverse_root.mT
    explained = half.square().sum(dim=-1, keepdim=True) if q == 1 else half @ half.mT
    root = cholesky(diagonal_minus(noise, explained - prior))
    dual_root = dual(root)
    own_slope = noise * dual_root
    u = (half @ process.inverse_root).mT
    system = Augmented(
        mean=process.at.constant + half @ process.whitened,
        root=root,
        dual_root=dual_root,
        own_slope=own_slope,
        slope=torch.cat([times(u, own_slope), own_slope], dim=-2),
        intercept=torch.cat([process.residuals, own]).unsqueeze(-1),
        spare=torch.cat([process.forecast_variances, own + 2 * noise]).unsqueeze(-1),
        noise=noise,
        cross=cross,
        prior=prior,
        constant=process.at.constant,
    )

    def vjp(to: Cotangents, grad_slope: Tensor) -> Tensor:
        grad_data, grad_own_slope = grad_slope.split([n, q], dim=-2)
        grad_own_slope = grad_own_slope + inner(u, grad_data)
        if to.grad_own_slope is not None:
            grad_own_slope = grad_own_slope + to.grad_own_slope
        grad_dual_root = noise * grad_own_slope
        if to.grad_dual_root is not None:
            grad_dual_root = grad_dual_root + to.grad_dual_root
        grad_root = to.grad_root - times(times_transpose(dual_root, grad_dual_root), dual_root)
        grad_square = cholesky_vjp(root, grad_root)
        # All terms of the gradient in the cross-covariances have the factor R^-1 on the right, as a' = whitened' R^-1.
        grad_half = times_transpose(grad_data, own_slope).mT @ process.inverse_root.mT
        grad_half = torch.addcmul(grad_half, to.grad_mean.unsqueeze(-1), process.whitened)
        grad_half = torch.sub(grad_half, grad_square * half if q == 1 else grad_square @ half, alpha=2)
        grad_cross = grad_half @ process.inverse_root
        if to.grad_cross is not None:
            grad_cross = grad_cross + to.grad_cross
        return vjp_covariances(grad_cross, grad_square if to.grad_prior is None else grad_square + to.grad_prior)

    return system, vjp


def scores(system: Augmented, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log predictive densities after refitting on candidate labels; CBO, Algorithm 1.

    Args:
        system: augmented system at `b` batches of `q` test points.
        z: `b x k x q` whitened candidate labels.

    Returns:
        The densities of the data, `b x k x n`, and of the test points themselves, `b x k x q`.
    """
    variance = system.variances.mT
    residual = system.intercept.mT - z @ system.slope.mT
    both = -0.5 * (torch.log(2 * torch.pi * variance) + residual.square() / variance)
    of_data, own = both.tensor_split([-z.shape[-1]], dim=-1)
    return of_data, own


def powers(z: Tensor) -> Tensor:
    """Return `1, z, z (x) z` of labels `b x k x q x m`: `b x k x m (1 + q + q^2)`."""
    b, k, q, m = z.shape
    z = z.mT
    square = (z.unsqueeze(-1) * z.unsqueeze(-2)).reshape(b, k, m, q * q)
    return torch.cat([torch.ones_like(z[..., :1]), z, square], dim=-1).reshape(b, k, -1)


def powers_vjp(z: Tensor, grad_powers: Tensor) -> Tensor:
    """Map a gradient in `powers` to that in the labels, `b x k x q x m`: `grad_1 + (grad_2 + grad_2') z`."""
    b, k, q, m = z.shape
    _, linear, square = grad_powers.reshape(b, k, m, -1).split([1, q, q * q], dim=-1)
    return (linear + 2 * symmetric_times(square, z.mT)).mT


def quadratics(systems: Sequence[Augmented]) -> Tensor:
    """Return the coefficients, on `powers`, of the score of each test point minus that of each datum.

    A datum conforms no more than the label where the difference is not negative.

    Args:
        systems: one an output, at `b` batches of `q` test points with `n` data.

    Returns:
        `b x q x n x m (1 + q + q^2)`.
    """
    return quadratics_with_vjp(systems)[0]


def quadratics_with_vjp(systems: Sequence[Augmented]) -> tuple[Tensor, Callable[[Tensor], list[Tensor]]]:
    """Return the coefficients and their vector-Jacobian product in the slopes of the systems."""
    parts = [_score_with_vjp(system) for system in systems]
    n, q = systems[0].slope.shape[-2] - systems[0].slope.shape[-1], systems[0].slope.shape[-1]
    scores = parts[0][0] if len(parts) == 1 else torch.cat([score for score, _ in parts], dim=-1)
    of_data, own = scores.split([n, q], dim=-2)

    def vjp(grad_differences: Tensor) -> list[Tensor]:
        grad_scores = torch.cat([-grad_differences.sum(dim=1), grad_differences.sum(dim=2)], dim=-2)
        shares = grad_scores.chunk(len(parts), dim=-1)
        return [vjp_score(share) for (_, vjp_score), share in zip(parts, shares, strict=True)]

    return own.unsqueeze(2) - of_data.unsqueeze(1), vjp


def _score_with_vjp(system: Augmented) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return scores as quadratics in `z`, `b x (n + q) x (1 + q + q^2)`, and their VJP in the slope `W`.

    The score `-(log v + (r - W z)^2 / v) / 2` has, with `V = W / v`, the coefficients `-(log v + r^2 / v) / 2`, `r V`
    and `-V W' / 2`; `v` is the spare variance minus `W W'`. Let `s = (grad_2 + grad_2') V / 2` and `e = r grad_1 / v`.
    Then the gradient in `W` is `e - s - 2 grad_v W`, where `-2 grad_v = (1 / v - r^2 / v^2) grad_0 + (2 e - s)' V`.
    """
    W, r = system.slope, system.intercept
    q = W.shape[-1]
    v = system.variances
    over_v = v.reciprocal()
    V, ratio = W * over_v, r * over_v
    square = V * W if q == 1 else (V.unsqueeze(-1) * W.unsqueeze(-2)).flatten(-2)
    score = torch.cat([-0.5 * torch.addcmul(v.log(), r, ratio), r * V, -0.5 * square], dim=-1)

    def vjp(grad_score: Tensor) -> Tensor:
        grad_constant, grad_linear, grad_square = grad_score.split([1, q, q * q], dim=-1)
        s, e = symmetric_times(grad_square, V), grad_linear * ratio
        directly = e - s
        by_v = (directly + e) * V if q == 1 else ((directly + e) * V).sum(dim=-1, keepdim=True)
        twice = torch.addcmul(by_v, torch.addcmul(over_v, ratio, ratio, value=-1), grad_constant)
        return torch.addcmul(directly, twice, W)

    return score, vjp


def symmetric_times(S: Tensor, x: Tensor) -> Tensor:
    """Return `(S + S') x / 2`, `... x q`, of flattened square matrices, `... x q^2`."""
    if x.shape[-1] == 1:
        return S * x
    S = S.unflatten(-1, (x.shape[-1], x.shape[-1]))
    return 0.5 * ((S + S.mT) @ x.unsqueeze(-1)).squeeze(-1)


def importance_weights(log_ratio_data: Tensor, log_ratio_test: Tensor) -> Tensor:
    """Return normalised weights under covariate shift; CBO, definition 2.1 and Algorithm 4.

    Args:
        log_ratio_data: `n`, log density ratio (query over data) at the data.
        log_ratio_test: `b x q`, at the test points.

    Returns:
        `b x q x (n + 1)`, the test point's own last; they sum to one.
    """
    data = log_ratio_data.expand(*log_ratio_test.shape, -1)
    return torch.softmax(torch.cat([data, log_ratio_test.unsqueeze(-1)], dim=-1), dim=-1)


def effective_sample_size(weights: Tensor) -> Tensor:
    """Return `1 / sum w^2` of normalised weights `... x (n + 1)`: between 1 and n + 1 (Kish, 1965)."""
    return weights.square().sum(dim=-1).reciprocal()


def conformity_mass(coefficients: Tensor, weights: Tensor, z: Tensor, tau: float = 0.0) -> Tensor:
    """Return the total weight of the data that conform no more than the label, the label's own included.

    A label is in the set where this exceeds alpha. With `tau > 0` the comparisons of scores are sigmoids, but the
    label's own weight counts in full at any `tau`.

    Args:
        coefficients: `b x q x n x p` of `quadratics`.
        weights: `b x q x (n + 1)`.
        z: `b x k x q x m` whitened labels.
        tau: strength of the relaxation.

    Returns:
        `b x q x k`.
    """
    monomials = powers(z).unsqueeze(1)
    if tau > 0:
        return relaxed_mass_with_vjp(coefficients, weights, monomials, tau)[0]
    return _weighted((coefficients @ monomials.mT >= 0).to(weights.dtype), *weights.tensor_split([-1], dim=-1))


def _weighted(conforms: Tensor, of_data: Tensor, own: Tensor) -> Tensor:
    return (of_data.unsqueeze(-2) @ conforms).squeeze(-2) + own


@dataclass(frozen=True)
class MassVJP:
    """The vector-Jacobian product of the relaxed mass `sum_n w_n s_n + w_(n+1)`, `s = sigmoid(C Z' / tau)`.

    Two further products with coefficients and monomials give all derivatives, as `s' = s (1 - s)`.

    Attributes:
        coefficients: `C`, `b x q x n x p`.
        of_data: `w`, the weights of the data, `b x q x n`.
        own: the weight of each test point, `b x q x 1`.
        monomials: `Z`, `b x 1 x k x p`, or `k x p` where labels are the same at all points.
        tau: strength of the relaxation.
        conforms: `s`, `b x q x n x k`; overwritten by `s'`, since another matrix of this size slows later operations.
        mass: `b x q x k`.
    """

    coefficients: Tensor
    of_data: Tensor
    own: Tensor
    monomials: Tensor
    tau: float
    conforms: Tensor
    mass: Tensor

    @cached_property
    def slope(self) -> Tensor:
        """The slopes `s'` of the sigmoids, `b x q x n x k`."""
        return self.conforms.addcmul_(self.conforms, self.conforms, value=-1)

    @property
    def scale(self) -> Tensor:
        """The data's weights divided by tau, `b x q x n x 1`."""
        return self.of_data.unsqueeze(-1) / self.tau

    def grad_coefficients(self, grad_mass: Tensor) -> Tensor:
        """Return `w / tau * (s' (grad_mass * Z))`, `b x q x n x p`, for a gradient in the mass, `b x q x k`."""
        return self.scale * wide_times_narrow(self.slope, grad_mass.unsqueeze(-1) * self.monomials)

    def grad_monomials(self, grad_mass: Tensor) -> Tensor:
        """Return `grad_mass * (s'^T (w / tau * C))`, `b x q x k x p`."""
        return grad_mass.unsqueeze(-1) * wide_times_narrow(self.slope.mT, self.scale * self.coefficients)

    def grad_log_ratio(self, grad_mass: Tensor, grad_own: Tensor) -> Tensor:
        """Return the gradient in the log density ratio at each test point, `b x q`.

        The derivatives are `-w_(n+1) w` of the data's weights, `w_(n+1) (1 - w_(n+1))` of the point's own and
        `w_(n+1) (1 - mass)` of the mass.

        Args:
            grad_mass: `b x q x k`.
            grad_own: further gradient in the test point's own weight, `b x q x 1`.
        """
        by_mass = (grad_mass * (1 - self.mass)).sum(dim=-1, keepdim=True)
        return (self.own * torch.addcmul(by_mass, grad_own, 1 - self.own)).squeeze(-1)


def relaxed_mass_with_vjp(
    coefficients: Tensor, weights: Tensor, monomials: Tensor, tau: float
) -> tuple[Tensor, MassVJP]:
    """Return the relaxed mass, `b x q x k`, and its vector-Jacobian product.

    Arguments are those of `conformity_mass`, with the labels' monomials in their place: see `MassVJP`.
    """
    # Dividing the small coefficients by tau is cheaper than dividing the product over all labels and data.
    conforms = ((coefficients / tau) @ monomials.mT).sigmoid_()
    of_data, own = weights.tensor_split([-1], dim=-1)
    mass = _weighted(conforms, of_data, own)
    return mass, MassVJP(coefficients, of_data, own, monomials, tau, conforms, mass)


def acceptance(mass: Tensor, own_weight: Tensor, alpha: float, tau: float = 0.0, randomised: bool = False) -> Tensor:
    """Return the probability that the set accepts a label; CBO, Algorithms 1 and 2.

    Args:
        mass: from `conformity_mass`.
        own_weight: the label's own weight; broadcasts to `mass`.
        alpha: miscoverage.
        tau: strength of the relaxation; 0 for the sharp set.
        randomised: flip Algorithm 2's coin, which makes the sets exactly valid: its expectation is returned.
    """
    if not randomised:
        return _above(mass, alpha, tau)
    heads = ((mass - alpha) / own_weight).clamp(0.0, 1.0)
    return heads * _above(mass, alpha, tau) + (1 - heads) * _above(mass - own_weight, alpha, tau)


def _above(mass: Tensor, alpha: float, tau: float) -> Tensor:
    return torch.sigmoid((mass - alpha) / tau) if tau > 0 else (mass > alpha).to(mass.dtype)

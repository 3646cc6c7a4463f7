"""Full conformal Bayes for exact Gaussian processes, in closed form: scores, masses, relaxed and randomised masks.

CBO's Algorithm 1 refits the model on each candidate label. Here the refitted residuals are lines in the label and the
refitted variances do not depend on it, from one block inverse; differences of scores are then quadratics in the label's
whitened residual, and all labels of all test points are scored by one matrix product. Batches of `q` test points are
augmented together, and the scores of several independent outputs are added up.

Notation: `K + s2n I = R R'`, `B = (R R')^-1`, `a = B (y - mean)`; at `q` test points `u = B k_X`, and `S = L L'` is the
predictive covariance of their observations. A label `y` enters as `z = L^-1 (y - mean)`. Everything is in the model's
standardised space, and differentiable in the test points.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from plumbline.models.exact import whitened_residuals
from plumbline.models.stationary import Covariance, Stationary, covariance_of


@dataclass(frozen=True)
class Factors:
    """What one Cholesky of a fitted model gives, once a fit.

    Attributes:
        model: an exact Gaussian process in evaluation mode, with one outcome and homoscedastic noise.
        inverse_root: `n x n`, `R^-1`.
        whitened: `n`, `R^-1 (y - mean)`.
        a: `n`, `B (y - mean)`.
        precision: `n`, the diagonal of `B`.
        noise: the noise variance `s2n`.
        covariance: the prior covariance of `f`.
    """

    model: SingleTaskGP
    inverse_root: Tensor
    whitened: Tensor
    a: Tensor
    precision: Tensor
    noise: Tensor
    covariance: Covariance

    @property
    def inputs(self) -> Tensor:
        """The data's inputs in the unit cube, `n x d`."""
        return self.model.train_inputs[0]


def factorise(model: SingleTaskGP) -> Factors:
    """Return the factors of a model; no gradient flows into its hyperparameters."""
    with torch.no_grad():
        R, whitened = whitened_residuals(model)
        inverse = torch.linalg.solve_triangular(R, torch.eye(len(R), dtype=R.dtype), upper=False)
        return Factors(
            model=model,
            inverse_root=inverse,
            whitened=whitened,
            a=inverse.mT @ whitened,
            precision=inverse.square().sum(dim=0),
            noise=model.likelihood.noise.detach().squeeze(),
            covariance=covariance_of(model.covar_module),
        )


@dataclass(frozen=True)
class Augmented:
    """What refitting on `q` more observations needs, at each of `b` batches of test points.

    Attributes:
        mean: `b x q`, predictive mean.
        root: `b x q x q`, lower Cholesky factor `L` of the predictive covariance of the observations.
        dual_root: `b x q x q`, `L^-T`.
        own_slope: `b x q x q`, `s2n L^-T`: the refitted residuals at the test points are `own_slope z`.
        slope: `b x n x q`, `s2n u L^-T`: the refitted residuals at the data are `intercept - slope z`.
        intercept: `n`, `s2n a`.
        spare: `n`, `2 s2n - s2n^2 B_ii`: the refitted variances at the data where no label is near.
        noise: the noise variance `s2n`.
    """

    mean: Tensor
    root: Tensor
    dual_root: Tensor
    own_slope: Tensor
    slope: Tensor
    intercept: Tensor
    spare: Tensor
    noise: Tensor

    @property
    def sd(self) -> Tensor:
        """Predictive standard deviations of the observations, `b x q`."""
        return self.root.square().sum(dim=-1).sqrt()

    def variances(self) -> tuple[Tensor, Tensor]:
        """Return the refitted predictive variances at the data, `b x n`, and at the test points, `b x q`.

        `s2n (2 - s2n A_ii)` with the augmented inverse `A`: they do not depend on the labels.
        """
        return self.spare - self.slope.square().sum(dim=-1), 2 * self.noise - self.own_slope.square().sum(dim=-1)

    def function_mean(self, z: Tensor) -> Tensor:
        """Return the mean of `f` at the test points after refitting on labels: `b x k x q` in and out."""
        return self.mean.unsqueeze(-2) + times(z, (self.root - self.own_slope).mT)

    def function_root(self) -> Tensor:
        """Return a root of the covariance of `f` at the test points after refitting: `b x q x q`, for any label."""
        eye = torch.eye(self.root.shape[-1], dtype=self.root.dtype)
        return cholesky(self.noise * eye - times(self.own_slope, self.own_slope.mT))


def times(A: Tensor, S: Tensor) -> Tensor:
    """Return `A S` for a small square `S`, `... x q x q`; elementwise at q = 1, which is cheaper."""
    return A * S if S.shape[-1] == 1 else A @ S


def cholesky(S: Tensor) -> Tensor:
    """Return the lower Cholesky factor of `... x q x q`; a square root at q = 1, which is cheaper."""
    if S.shape[-1] == 1:
        return S.clamp_min(1e-30).sqrt()
    eye = torch.eye(S.shape[-1], dtype=S.dtype)
    return torch.linalg.cholesky(S + 1e-12 * S.diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None] * eye)


def dual(root: Tensor) -> Tensor:
    """Return `L^-T` of lower triangular `L`, `... x q x q`."""
    if root.shape[-1] == 1:
        return root.reciprocal()
    eye = torch.eye(root.shape[-1], dtype=root.dtype).expand_as(root)
    return torch.linalg.solve_triangular(root, eye, upper=False).mT


def covariances(factors: Factors, U: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return prior means `b x q`, cross-covariances with the data `b x q x n`, and prior covariances `b x q x q`.

    Args:
        factors: of a fitted model.
        U: `b x q x d`, in the unit cube.
    """
    b, q, d = U.shape
    rows = U.reshape(b * q, d)
    covariance = factors.covariance
    cross = covariance(rows, factors.inputs).reshape(b, q, -1)
    prior = covariance.variance.expand(b, 1, 1) if q == 1 and isinstance(covariance, Stationary) else covariance(U, U)
    return factors.model.mean_module(rows).reshape(b, q), cross, prior


def augment(factors: Factors, U: Tensor) -> Augmented:
    """Return the augmented system at test points.

    Args:
        factors: of a fitted model.
        U: `b x q x d`, in the unit cube.
    """
    mean, cross, prior = covariances(factors, U)
    half = cross @ factors.inverse_root.mT
    q = U.shape[-2]
    eye = torch.eye(q, dtype=U.dtype)
    explained = half.square().sum(dim=-1, keepdim=True) if q == 1 else half @ half.mT
    root = cholesky(prior + factors.noise * eye - explained)
    dual_root = dual(root)
    own_slope = factors.noise * dual_root
    return Augmented(
        mean=mean + half @ factors.whitened,
        root=root,
        dual_root=dual_root,
        own_slope=own_slope,
        slope=times((half @ factors.inverse_root).mT, own_slope),
        intercept=factors.noise * factors.a,
        spare=2 * factors.noise - factors.noise.square() * factors.precision,
        noise=factors.noise,
    )


def scores(system: Augmented, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log predictive densities after refitting on candidate labels; CBO, Algorithm 1.

    Args:
        system: at `b` batches of `q` test points.
        z: `b x k x q` whitened candidate labels.

    Returns:
        Of the data, `b x k x n`, and of the test points themselves, `b x k x q`.
    """
    data_variance, own_variance = system.variances()
    residual = system.intercept - z @ system.slope.mT
    own = z @ system.own_slope.mT
    return _log_density(residual, data_variance.unsqueeze(-2)), _log_density(own, own_variance.unsqueeze(-2))


def _log_density(residual: Tensor, variance: Tensor) -> Tensor:
    return -0.5 * (torch.log(2 * torch.pi * variance) + residual.square() / variance)


def powers(z: Tensor) -> Tensor:
    """Return `1, z, z (x) z` of labels `b x k x q x m`: `b x k x m (1 + q + q^2)`."""
    b, k, q, m = z.shape
    z = z.mT
    square = (z.unsqueeze(-1) * z.unsqueeze(-2)).reshape(b, k, m, q * q)
    return torch.cat([torch.ones_like(z[..., :1]), z, square], dim=-1).reshape(b, k, -1)


def quadratics(systems: Sequence[Augmented]) -> Tensor:
    """Return the coefficients, on `powers`, of the score of each test point minus that of each datum.

    A datum conforms no more than the label where the difference is not negative.

    Args:
        systems: one an output, at `b` batches of `q` test points with `n` data.

    Returns:
        `b x q x n x m (1 + q + q^2)`.
    """
    return torch.cat([_quadratics(system) for system in systems], dim=-1)


def _quadratics(system: Augmented) -> Tensor:
    data_variance, own_variance = system.variances()
    W, P = system.slope, system.own_slope
    b, n, q = W.shape
    weighted = W / data_variance.unsqueeze(-1)
    constant = data_variance.log() + system.intercept.square() / data_variance
    linear = -system.intercept.unsqueeze(-1) * weighted
    of_data = (weighted.unsqueeze(-1) * W.unsqueeze(-2)).reshape(b, 1, n, q * q)
    own = P / own_variance.unsqueeze(-1)
    of_own = (own.unsqueeze(-1) * P.unsqueeze(-2)).reshape(b, q, 1, q * q)
    return torch.cat(
        [
            0.5 * (constant.unsqueeze(-2) - own_variance.log().unsqueeze(-1)).unsqueeze(-1),
            linear.unsqueeze(1).expand(b, q, n, q),
            0.5 * (of_data - of_own),
        ],
        dim=-1,
    )


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
    """Return the weight of the data that conform no more than the label, the label's own included.

    A label is in the set where this exceeds alpha. With `tau > 0` the comparisons of scores are sigmoids; the label is
    always as good as itself, so that its own weight counts in full at any `tau`.

    Args:
        coefficients: `b x q x n x p` of `quadratics`.
        weights: `b x q x (n + 1)`.
        z: `b x k x q x m` whitened labels.
        tau: strength of the relaxation.

    Returns:
        `b x q x k`.
    """
    # What is small is divided by tau, not the product over all labels and data.
    difference = (coefficients / tau if tau > 0 else coefficients) @ powers(z).mT.unsqueeze(1)
    conforms = torch.sigmoid(difference) if tau > 0 else (difference >= 0).to(weights.dtype)
    return (weights[..., None, :-1] @ conforms).squeeze(-2) + weights[..., -1:]


def acceptance(mass: Tensor, own_weight: Tensor, alpha: float, tau: float = 0.0, randomised: bool = False) -> Tensor:
    """Return the probability that a label is put into the set; CBO, Algorithms 1 and 2.

    Args:
        mass: of `conformity_mass`.
        own_weight: broadcasts to `mass`; the label's own weight.
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

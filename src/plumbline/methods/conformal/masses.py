"""Weights of the data under covariate shift, the mass of those that conform less than a label, and what a set accepts.

CBO, Algorithms 1, 2 and 4: sharp, relaxed and randomised masks.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from plumbline.methods.conformal.scores import powers
from plumbline.methods.conformal.small_matrices import wide_times_narrow


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

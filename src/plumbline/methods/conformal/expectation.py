"""The expectation of an integrand over labels inside and outside a conformal set, with gradient; CBO, eq. 7."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from plumbline.core.numbers import Array
from plumbline.core.vjp import VJP, with_vjp

TINY = 1e-12
"""Least distance from 0 of the log probability that all labels of a batch are accepted: at 0, log rejection is -inf."""


class Labelled(NamedTuple):
    """Draws at `b` batches of `q` points given each of `k` labels, or the gradients in them.

    Attributes:
        f: draws of `f`, `b x k x q x m`.
        mean: the posterior mean, `b x 1 x q x m`.
        accept: logit of the acceptance of each point's label, `b x q x k`.
        log_density: log density of the labels up to a constant, `b x k`, or `1 x k` where all points share it.
        bounded: logit of the relaxed indicator that a point's set is bounded, `b x q`.
    """

    f: Tensor
    mean: Tensor
    accept: Tensor
    log_density: Tensor
    bounded: Tensor


Value = Callable[[Tensor, Tensor], Tensor]
"""Maps `f` and the mean to the values of an integrand, `b x k`."""


def expectation(
    integrand: Value, labelled: Labelled, alpha: float, record: bool = True
) -> tuple[Tensor, Callable[[Tensor], Labelled]]:
    """Return the expected integrand of batches, `b`, masked where a set is the whole line, and its VJP.

    The gradient in the density of the labels is always `b x k`.

    Args:
        integrand: its values under known `f`.
        labelled: draws given each label.
        alpha: miscoverage.
        record: as in `vjp.with_vjp`.
    """
    values, vjp_values = with_vjp(integrand, labelled.f, labelled.mean, record=record)
    expected, vjp_expected = expected_with_vjp(labelled.accept, labelled.log_density, values, alpha)
    bounded = labelled.bounded.sigmoid()
    in_distribution = bounded.prod(dim=-1)
    value = expected * in_distribution

    def vjp(grad_value: Tensor) -> Labelled:
        grad_accept, grad_log_density, grad_values = vjp_expected(in_distribution * grad_value)
        grad_f, grad_mean = vjp_values(grad_values)
        return Labelled(
            grad_f, grad_mean, grad_accept, grad_log_density, (1 - bounded) * (value * grad_value).unsqueeze(-1)
        )

    return value, vjp


def greatest_expectation(
    integrand: Value, labelled: Labelled, alpha: float, record: bool = True
) -> tuple[Tensor, Callable[[Tensor], Labelled]]:
    """Return the greatest of the expected integrands of a batch's single points, as CBO's code does.

    Each point has its own mask, but the density is that of all labels jointly. Arguments and returns are those of
    `expectation`.
    """
    b, k, q, m = labelled.f.shape
    alone = Labelled(
        f=labelled.f.transpose(1, 2).reshape(b * q, k, 1, m),
        mean=labelled.mean.reshape(b * q, 1, 1, m),
        accept=labelled.accept.reshape(b * q, 1, k),
        log_density=labelled.log_density.unsqueeze(1).expand(b, q, k).reshape(b * q, k),
        bounded=labelled.bounded.reshape(b * q, 1),
    )
    values, vjp_alone = expectation(integrand, alone, alpha, record)
    value, where = values.view(b, q).max(dim=-1)

    def vjp(grad_value: Tensor) -> Labelled:
        grad_values = torch.zeros_like(values).view(b, q).scatter_(1, where.unsqueeze(-1), grad_value.unsqueeze(-1))
        to = vjp_alone(grad_values.flatten())
        return Labelled(
            f=to.f.view(b, q, k, m).transpose(1, 2),
            mean=to.mean.view(b, 1, q, m),
            accept=to.accept.view(b, q, k),
            log_density=to.log_density.view(b, q, k).sum(dim=1),
            bounded=to.bounded.view(b, q),
        )

    return value, vjp


def expected_with_vjp(
    logits: Tensor, log_density: Tensor, values: Tensor, alpha: float
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]]:
    """Return `(1 - alpha) u'v + alpha u'v'` (CBO, eq. 7) and the vector-Jacobian product in all but alpha.

    With `A` the log probability that a batch of labels is accepted and `R` that it is not, `v` is the softmax of `A`
    minus the log density, and `v'` that of `R`. So `grad_A = (1 - alpha) v (u - u'v)`,
    `grad_R = alpha v' (u - u'v')` and `grad_u = (1 - alpha) v + alpha v'`. The derivative of `A` in a
    logit is 1 minus its sigmoid; that of `R` is this divided by `1 - exp(-A)`, at q = 1 minus the sigmoid.

    Args:
        logits: `b x q x k`, logits of the acceptance of each label of a batch.
        log_density: log density of the labels up to a constant, `b x k` or `1 x k`.
        values: `u`, `b x k`.
        alpha: miscoverage.

    Returns:
        `b`, and a function of the gradient in it.
    """
    each = logsigmoid(logits)
    inside = each.sum(dim=1)
    # For one label the log probability of rejection is that of acceptance minus the logit.
    alone = logits.shape[1] == 1
    outside = inside - logits.squeeze(1) if alone else _log_complement(inside)
    v_inside, v_outside = (inside - log_density).softmax(dim=-1), outside.softmax(dim=-1)
    u_inside, u_outside = torch.linalg.vecdot(v_inside, values), torch.linalg.vecdot(v_outside, values)

    def vjp(grad_expected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale = grad_expected.unsqueeze(-1)
        grad_inside = (values - u_inside.unsqueeze(-1)) * v_inside * ((1 - alpha) * scale)
        grad_outside = (values - u_outside.unsqueeze(-1)) * v_outside * (alpha * scale)
        grad_each = grad_inside + (grad_outside if alone else grad_outside * _log_complement_slope(inside))
        grad_logits = -grad_each.unsqueeze(1) * torch.expm1(each)
        if alone:
            grad_logits = grad_logits - grad_outside.unsqueeze(1)
        return grad_logits, -grad_inside, torch.lerp(v_inside, v_outside, alpha) * scale

    return torch.lerp(u_inside, u_outside, alpha), vjp


def _log_complement(log_p: Tensor) -> Tensor:
    """Return `log(1 - p)` of log probabilities."""
    return torch.log(-torch.expm1(log_p.clamp_max(-TINY)))


def _log_complement_slope(log_p: Tensor) -> Tensor:
    """Return the derivative `-1 / (1 / p - 1)` of `log(1 - p)` in `log p`; 0 where `log p` is clamped."""
    return torch.where(log_p > -TINY, 0.0, -torch.expm1(-log_p.clamp_max(-TINY)).reciprocal())


Heights = Callable[..., tuple[Array, Callable[[Array], tuple[Array, Array]]]]
"""An integrand of single points of one outcome, in arrays: maps f minus its mean, `m x b x k`, the mean, `m x b x 1`,
and the integrand's parameters to values, `m x b x k`, and their VJP in the first two."""


def improvements(away: Array, mean: Array, best: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return the improvement over `best`, `m x 1 x 1` or `m x 1 x k`: `Heights`."""
    improvement = np.maximum(away + (mean - best), 0.0)

    def vjp(grad: Array) -> tuple[Array, Array]:
        grad_f = grad * (improvement > 0)
        return grad_f, grad_f.sum(-1, keepdims=True)

    return improvement, vjp


def upper_bounds(away: Array, mean: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return `mean + |mean - f|`: `Heights`."""
    return mean + np.abs(away), lambda grad: (grad * np.sign(away), grad.sum(-1, keepdims=True))


@dataclass(frozen=True)
class Improvement:
    """The improvement of the best point of a batch over `best`, a number or one a draw (`k`)."""

    best: Tensor

    @property
    def at_single_points(self) -> tuple[Heights, tuple[Array, ...]]:
        """The same of single points of one outcome, with its parameters."""
        return improvements, (self.best.reshape(1, 1, -1).numpy(),)

    def __call__(self, f: Tensor, mean: Tensor) -> Tensor:
        """Return `max(max_q f - best, 0)`."""
        return self.with_vjp(f, mean)[0]

    def with_vjp(self, f: Tensor, mean: Tensor) -> tuple[Tensor, VJP]:
        """Return the improvement and its vector-Jacobian product: in the best point's `f` alone."""
        top, vjp_top = greatest(f)
        improvement = (top - self.best).clamp_min(0.0)
        return improvement, lambda grad: (vjp_top(grad * (improvement > 0)), torch.zeros_like(mean))


@dataclass(frozen=True)
class UpperBound:
    """The bound of a batch reparameterised as by Wilson et al. (2017): `max_q mean + |mean - f|`."""

    @property
    def at_single_points(self) -> tuple[Heights, tuple[Array, ...]]:
        """The same of single points of one outcome, with its parameters."""
        return upper_bounds, ()

    def __call__(self, f: Tensor, mean: Tensor) -> Tensor:
        """Return the bound."""
        return self.with_vjp(f, mean)[0]

    def with_vjp(self, f: Tensor, mean: Tensor) -> tuple[Tensor, VJP]:
        """Return the bound and its vector-Jacobian product: in `f` by `sign(f - mean)`, the rest in the mean."""
        away = f - mean
        top, vjp_top = greatest(mean + away.abs())

        def vjp(grad_bound: Tensor) -> tuple[Tensor, Tensor]:
            grad_height = vjp_top(grad_bound)
            grad_f = grad_height * away.sign()
            return grad_f, (grad_height - grad_f).sum(dim=1, keepdim=True)

        return top, vjp


def greatest(f: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return the maximum over a batch, `b x k x q x 1` to `b x k`, and its vector-Jacobian product."""
    if f.shape[-2] == 1:
        return f.flatten(start_dim=1), lambda grad_top: grad_top.view(f.shape)
    top, where = f.squeeze(-1).max(dim=-1)

    def vjp(grad_top: Tensor) -> Tensor:
        return torch.zeros_like(f).scatter_(-2, where[..., None, None], grad_top[..., None, None])

    return top, vjp

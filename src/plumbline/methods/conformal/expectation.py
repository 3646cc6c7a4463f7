"""The expectation of a utility over labels inside and outside of a conformal set; CBO, eq. 7, and its gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from plumbline.core.vjp import VJP, with_vjp

TINY = 1e-12
"""The log probability that all labels of a batch are accepted is kept this far from 0, where rejection has no log."""


class Labelled(NamedTuple):
    """What is known of `b` batches of `q` points given each of `k` labels, or the gradients in it.

    Attributes:
        f: draws of `f`, `b x k x q x m`.
        mean: the posterior mean, `b x 1 x q x m`.
        accept: logit of the acceptance of each point's label, `b x q x k`.
        log_density: of the labels up to a constant, `b x k`, or `1 x k` where it is the same at all points.
        bounded: logit of how far each point's set is from being the whole line, `b x q`.
    """

    f: Tensor
    mean: Tensor
    accept: Tensor
    log_density: Tensor
    bounded: Tensor


Value = Callable[[Tensor, Tensor], Tensor]
"""A utility: maps `f` and the mean to `b x k`."""


def expectation(
    utility: Value, labelled: Labelled, alpha: float, record: bool = True
) -> tuple[Tensor, Callable[[Tensor], Labelled]]:
    """Return the expected utility of batches, `b`, masked where a set is the whole line, and what pulls back.

    The gradient in the density of the labels is of `b x k` always.

    Args:
        utility: of a batch whose `f` is known.
        labelled: what is known given each label.
        alpha: miscoverage.
        record: as of `vjp.with_vjp`.
    """
    worth, vjp_worth = with_vjp(utility, labelled.f, labelled.mean, record=record)
    expected, vjp_expected = expected_with_vjp(labelled.accept, labelled.log_density, worth, alpha)
    bounded = labelled.bounded.sigmoid()
    in_distribution = bounded.prod(dim=-1)
    value = expected * in_distribution

    def vjp(grad_value: Tensor) -> Labelled:
        grad_accept, grad_log_density, grad_worth = vjp_expected(in_distribution * grad_value)
        grad_f, grad_mean = vjp_worth(grad_worth)
        return Labelled(
            grad_f, grad_mean, grad_accept, grad_log_density, (1 - bounded) * (value * grad_value).unsqueeze(-1)
        )

    return value, vjp


def greatest_expectation(
    utility: Value, labelled: Labelled, alpha: float, record: bool = True
) -> tuple[Tensor, Callable[[Tensor], Labelled]]:
    """Return the greatest expected utility of a batch's points, each taken alone: CBO's code has the maximum there.

    Labels are joint all the same: each point's own mask, and the density of all labels together. Arguments and returns
    are those of `expectation`.
    """
    b, k, q, m = labelled.f.shape
    alone = Labelled(
        f=labelled.f.transpose(1, 2).reshape(b * q, k, 1, m),
        mean=labelled.mean.reshape(b * q, 1, 1, m),
        accept=labelled.accept.reshape(b * q, 1, k),
        log_density=labelled.log_density.unsqueeze(1).expand(b, q, k).reshape(b * q, k),
        bounded=labelled.bounded.reshape(b * q, 1),
    )
    values, vjp_alone = expectation(utility, alone, alpha, record)
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
    logits: Tensor, log_density: Tensor, worth: Tensor, alpha: float
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]]:
    """Return `(1 - alpha) u'v + alpha u'v'`, CBO, eq. 7, and what pulls gradients back to all but alpha.

    With `A` the log probability that a batch of labels is accepted and `R` that it is not, `v` is the softmax of `A`
    less the log density, and `v'` that of `R`. So `to_A = (1 - alpha) v (u - u'v)`, `to_R = alpha v' (u - u'v')` and
    `to_u = (1 - alpha) v + alpha v'`. The derivative of `A` in a logit is 1 less its sigmoid; that of `R` is as much
    over `1 - exp(-A)`, which at q = 1 is minus the sigmoid.

    Args:
        logits: `b x q x k`, of the acceptance of each label of a batch.
        log_density: of the labels up to a constant, `b x k` or `1 x k`.
        worth: `u`, `b x k`.
        alpha: miscoverage.

    Returns:
        `b`, and a function of the gradient in it.
    """
    each = logsigmoid(logits)
    inside = each.sum(dim=1)
    # For one label the log probability of rejection is that of acceptance less the logit.
    alone = logits.shape[1] == 1
    outside = inside - logits.squeeze(1) if alone else _log_complement(inside)
    v_inside, v_outside = (inside - log_density).softmax(dim=-1), outside.softmax(dim=-1)
    u_inside, u_outside = torch.linalg.vecdot(v_inside, worth), torch.linalg.vecdot(v_outside, worth)

    def vjp(grad_expected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale = grad_expected.unsqueeze(-1)
        grad_inside = (worth - u_inside.unsqueeze(-1)) * v_inside * ((1 - alpha) * scale)
        grad_outside = (worth - u_outside.unsqueeze(-1)) * v_outside * (alpha * scale)
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
    """Return the derivative `-1 / (1 / p - 1)` of `log(1 - p)` in `log p`; 0 where that is kept from 0."""
    return torch.where(log_p > -TINY, 0.0, -torch.expm1(-log_p.clamp_max(-TINY)).reciprocal())


@dataclass(frozen=True)
class Improvement:
    """What the best of a batch gains over `best`, a number or one a draw (`k`)."""

    best: Tensor

    def __call__(self, f: Tensor, mean: Tensor) -> Tensor:
        """Return `max(max_q f - best, 0)`."""
        return self.with_vjp(f, mean)[0]

    def with_vjp(self, f: Tensor, mean: Tensor) -> tuple[Tensor, VJP]:
        """Return the gain, and what pulls gradients back to the best point's `f`, and to the mean: none."""
        top, vjp_top = greatest(f)
        gain = (top - self.best).clamp_min(0.0)
        return gain, lambda grad_gain: (vjp_top(grad_gain * (gain > 0)), torch.zeros_like(mean))


@dataclass(frozen=True)
class UpperBound:
    """The bound of a batch reparameterised as by Wilson et al. (2017): `max_q mean + |mean - f|`."""

    def __call__(self, f: Tensor, mean: Tensor) -> Tensor:
        """Return the bound."""
        return self.with_vjp(f, mean)[0]

    def with_vjp(self, f: Tensor, mean: Tensor) -> tuple[Tensor, VJP]:
        """Return the bound, and what pulls gradients back: to `f` by `sign(f - mean)`, the rest to the mean."""
        away = f - mean
        top, vjp_top = greatest(mean + away.abs())

        def vjp(grad_bound: Tensor) -> tuple[Tensor, Tensor]:
            grad_height = vjp_top(grad_bound)
            grad_f = grad_height * away.sign()
            return grad_f, (grad_height - grad_f).sum(dim=1, keepdim=True)

        return top, vjp


def greatest(f: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return the greatest of a batch, `b x k x q x 1` to `b x k`, and what pulls gradients back to where it is."""
    if f.shape[-2] == 1:
        return f.flatten(start_dim=1), lambda grad_top: grad_top.view(f.shape)
    top, where = f.squeeze(-1).max(dim=-1)

    def vjp(grad_top: Tensor) -> Tensor:
        return torch.zeros_like(f).scatter_(-2, where[..., None, None], grad_top[..., None, None])

    return top, vjp

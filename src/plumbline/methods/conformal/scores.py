"""Conformity scores of full conformal Bayes with exact Gaussian processes, in closed form.

CBO's Algorithm 1 refits the model on each candidate label. Here the refitted residuals are lines in the label and the
refitted variances do not depend on it, from one block inverse (`Augmented`); differences of scores are then quadratics
in the label's whitened residual, and all labels of all test points are scored by one matrix product. Batches of `q`
test points are augmented together, and the scores of several independent outputs are added up.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from plumbline.methods.conformal.augmented import Augmented
from plumbline.methods.conformal.small_matrices import symmetric_times


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
    """Map a gradient in `powers` to that in the labels, `b x k x q x m`: `grad_1 + (grad_2 + grad_2') z`.

    The labels may be `1 x k x q x m`, the same at all points.
    """
    q, m = z.shape[-2:]
    _, linear, square = grad_powers.unflatten(-1, (m, -1)).split([1, q, q * q], dim=-1)
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

"""Expectation propagation for normal distributions truncated to the positive orthant."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.special import log_ndtr

SWEEPS = 50
"""Greatest number of sweeps through all variables."""

SETTLED = 1e-3
"""Convergence: a sweep changes no mean by more than this many standard deviations, and none of these by this share."""

CERTAIN = 1e-10
"""A variable with a variance below this is not truncated: it is a constant with a known sign."""

LEAST_SHARE = 1e-8
"""Least share of a variance that truncation leaves."""


class Sites(NamedTuple):
    """Sites of expectation propagation: factors `exp(nu x - tau x^2 / 2)` that approximate the truncations.

    Attributes:
        tau, nu: `batch x n`.
    """

    tau: Tensor
    nu: Tensor


def cut(bound: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of a standard normal variable truncated to above `-bound`."""
    ratio = (-0.5 * bound.square() - 0.5 * math.log(2 * math.pi) - log_ndtr(bound)).exp()
    return ratio, (1 - (bound + ratio) * ratio).clamp_min(LEAST_SHARE)


def positive_sites(mean: Tensor, covariance: Tensor) -> Sites:
    """Return the sites of expectation propagation for normal variables that are all positive.

    Variables are updated in turn, for all distributions of a batch; Cunningham, Hennig & Lacoste-Julien (2011).

    Args:
        mean: `batch x n`.
        covariance: `batch x n x n`; may be singular.
    """
    m, S = mean.clone(), covariance.clone()
    tau, nu = torch.zeros_like(mean), torch.zeros_like(mean)
    for _ in range(SWEEPS):
        before, spread = m.clone(), deviations(S)
        for i in range(mean.shape[-1]):
            variance = S[:, i, i].clamp_min(CERTAIN)
            precision = 1 / variance - tau[:, i]
            cuttable = (covariance[:, i, i] > CERTAIN) & (precision > 0)
            precision = torch.where(cuttable, precision, 1.0)
            away, deviation = (m[:, i] / variance - nu[:, i]) / precision, precision.rsqrt()
            shift, share = cut(away / deviation)
            new_tau = (precision / share - precision).clamp_min(0.0)
            new_nu = (away + deviation * shift) * (new_tau + precision) - away * precision
            more_tau = (new_tau - tau[:, i]).where(cuttable, 0.0)
            more_nu = (new_nu - nu[:, i]).where(cuttable, 0.0)
            column, divisor = S[:, :, i].clone(), 1 + more_tau * S[:, i, i]
            m += ((more_nu - more_tau * m[:, i]) / divisor).unsqueeze(-1) * column
            S -= (more_tau / divisor)[:, None, None] * column.unsqueeze(-1) * column.unsqueeze(-2)
            tau[:, i] += more_tau
            nu[:, i] += more_nu
        moved = torch.maximum((m - before).abs(), (deviations(S) - spread).abs())
        if (moved <= SETTLED * spread).all():
            break
    return Sites(tau, nu)


def deviations(covariance: Tensor) -> Tensor:
    """Return the standard deviations of covariances, `batch x n`, at least the root of `CERTAIN`."""
    return covariance.diagonal(dim1=-2, dim2=-1).clamp_min(CERTAIN).sqrt()


class Correction(NamedTuple):
    """Effect of the sites on another variable that is jointly normal with the truncated ones.

    Its mean changes by `c w` and its variance by `-c M c'`, with `c` its covariances with the truncated variables.

    Attributes:
        weight: `w`, `batch x n`.
        matrix: `M`, `batch x n x n`.
    """

    weight: Tensor
    matrix: Tensor


def correction(mean: Tensor, covariance: Tensor, sites: Sites) -> Correction:
    """Return `w = (I + T D)^-1 (nu - T d)` and `M = T^1/2 (I + T^1/2 D T^1/2)^-1 T^1/2`, T the diagonal of tau.

    Args:
        mean: d, `batch x n`.
        covariance: D, `batch x n x n`.
        sites: sites of the truncations.
    """
    root = sites.tau.sqrt()
    B = root.unsqueeze(-1) * covariance * root.unsqueeze(-2)
    B.diagonal(dim1=-2, dim2=-1).add_(1.0)
    factor = torch.linalg.cholesky(B)
    half = torch.linalg.solve_triangular(factor, torch.diag_embed(root), upper=False)
    M = half.mT @ half
    # (I + T D)^-1 = I - M D, which avoids division by a zero tau.
    moved = sites.nu - sites.tau * mean
    return Correction(moved - (M @ (covariance @ moved.unsqueeze(-1))).squeeze(-1), M)

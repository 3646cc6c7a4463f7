"""Placement of inducing points by a greedy, quality-weighted determinantal point process, and their optimal `q(u)`."""

from collections.abc import Callable
from typing import Literal

import torch
from botorch.utils.probability.utils import ndtr, phi
from torch import Tensor

from plumbline.models.algebra import CORRELATIONS, SparseKernel, squared_distances
from plumbline.models.svgp.cross_covariance import factorise
from plumbline.models.svgp.objective import Layout, Parameters
from plumbline.models.svgp.process import SVGP

DISTINCT = 1e-6
"""Least conditional variance, given the points chosen before, at which a point is chosen."""

AT_ONCE = 4096
"""Number of data per block of a computation over all data."""


def greedy_dpp(columns: Callable[[int], Tensor], variance: Tensor, quality: Tensor, size: int) -> Tensor:
    """Return the indices of up to `size` diverse points of high quality, best first.

    The set is the greedy approximation of the mode of a determinantal point process whose kernel is `q_i k_ij q_j`
    (Moss, Ober & Picheny, 2023, section 4; Chen, Zhang & Zhou, 2018, algorithm 1). BoTorch's version needs the full
    matrix. This one computes only the columns of the chosen points, and takes memory in `n x size`.

    Args:
        columns: maps an index i to column `k_i` of the kernel matrix, `n`.
        variance: `n`, the diagonal of the kernel.
        quality: `n`, nonnegative.
        size: greatest number of points; fewer are returned where the chosen ones determine all others.
    """
    left = variance.clone()
    weight = quality.square()
    factors = variance.new_zeros(size, len(variance))
    chosen: list[int] = []
    while len(chosen) < min(size, len(variance)):
        best = int(torch.where(left > DISTINCT, left * weight, -torch.inf).argmax())
        if not left[best] > DISTINCT:
            break
        k = len(chosen)
        factors[k] = (columns(best) - factors[:k, best] @ factors[:k]) / left[best].sqrt()
        left = left - factors[k].square()
        left[best] = -torch.inf
        chosen.append(best)
    return torch.tensor(chosen, dtype=torch.long, device=variance.device)


def place_inducing(
    X: Tensor, layout: Layout, process: SVGP, quality: Tensor, fill: Tensor, fill_first: bool = False
) -> Tensor:
    """Return inducing points chosen from the data, completed from `fill` where the data are too few or too similar.

    Args:
        X: `n x d`, standardised inputs.
        layout: gives the number of inducing points.
        process: SVGP whose kernel measures similarity.
        quality: `n`, quality of the data.
        fill: `m x d`, other points.
        fill_first: whether the points of `fill` come before those of the data.
    """
    parts = process.parameters
    scaled = X / parts.lengthscale
    correlation = CORRELATIONS[process.kernel]

    def column(i: int) -> Tensor:
        r2 = squared_distances(scaled.unsqueeze(0), scaled[i].view(1, 1, -1)).flatten()
        return parts.outputscale * correlation(r2)[0]

    chosen = greedy_dpp(column, parts.outputscale.expand(len(X)), quality, layout.m)
    parts_in_order = [X[chosen], fill[: layout.m - len(chosen)]]
    return torch.cat(parts_in_order[::-1] if fill_first else parts_in_order)


Baseline = Literal["greatest mean", "least mean"]
"""What the improvement of a point is over: the greatest posterior mean among the points, or the least."""


def improvement_quality(process: SVGP, X: Tensor, noisy: bool = False, baseline: Baseline = "greatest mean") -> Tensor:
    """Return the expected improvement of points over the greatest or the least posterior mean among them: `n`.

    Moss et al. (2023), section 4; BoTorch's `ExpectedImprovementQualityFunction`, from marginals alone. Over the
    greatest mean most points have next to no quality; the library of Moss et al. takes the least, which spreads points.

    Args:
        process: the SVGP of the previous round.
        X: `n x d`, in the problem's bounds.
        noisy: whether improvement is that of observations instead of f.
        baseline: what it is over.
    """
    mean, variance = process.posterior_moments(X.unsqueeze(-2), joint=False)
    mean, sd = mean.squeeze(-1), (variance.squeeze(-1) + noisy * process.noise_variance).sqrt()
    u = (mean - (mean.max() if baseline == "greatest mean" else mean.min())) / sd
    return (sd * (phi(u) + u * ndtr(u))).clamp_min(0.0)


def best_beliefs(
    parameters: Parameters, layout: Layout, X: Tensor, y: Tensor, kernel: SparseKernel
) -> tuple[Tensor, Tensor]:
    """Return the variational mean and factor that maximise the ELBO of all data; all other parameters are given.

    For Gaussian noise they are closed-form: covariance `(I + A A' / noise)^-1` and mean
    `covariance A (y - constant) / noise` (Titsias, 2009, whitened).

    Args:
        parameters: parameters of one SVGP, `b = 1`.
        layout: layout of the SVGP's row.
        X: `n x d`.
        y: `n`.
        kernel: kernel of the SVGP.

    Returns:
        `m` and `m x m`, lower triangular.

    Raises:
        torch.linalg.LinAlgError: the covariance of the inducing points has no Cholesky factor.
    """
    precision = torch.eye(layout.m).to(X)
    weighted = X.new_zeros(layout.m)
    noise = parameters.noise.squeeze(0)
    inducing = factorise(parameters.inducing, parameters.lengthscale, parameters.outputscale, kernel)
    if bool(inducing.broken.any()):
        raise torch.linalg.LinAlgError("the covariance of the inducing points has no Cholesky factor")
    for rows, values in zip(X.split(AT_ONCE), y.split(AT_ONCE), strict=True):
        A = inducing.whiten(rows.unsqueeze(0)).A.squeeze(0)
        precision += A @ A.mT / noise
        weighted += A @ (values - parameters.constant) / noise
    # With J the exchange matrix, which reverses the order, `covariance = (J R^-T J)(J R^-T J)'` for
    # `J precision J = R R'`: this factor is lower triangular, and the covariance is never formed.
    reverse = torch.linalg.cholesky(precision.flip(0, 1))
    identity = torch.eye(layout.m).to(X)
    factor = torch.linalg.solve_triangular(reverse.mT, identity, upper=True).flip(0, 1)
    return factor @ (factor.mT @ weighted), factor

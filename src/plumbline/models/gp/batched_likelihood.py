"""Batched marginal likelihoods of data sets of one size, and their maxima: one by one, most of the time is overhead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from plumbline.models.algebra import CORRELATIONS, Kernel, squared_distances
from plumbline.models.gp.likelihood import LOG_2PI, Hyperparameters, Sample, Unknowns, Values
from plumbline.models.gp.priors import Array

ELEMENTS = 2**17
"""Greatest number of elements of a batch of covariances: larger ones exceed the processor's cache."""


class StackedHyperparameters(NamedTuple):
    """Hyperparameters of m GPs; see `Hyperparameters`.

    Attributes:
        constant, outputscale: `m`.
        noise: `m x 1`.
        lengthscale: `m x d`, or `m x 1`.
    """

    constant: Tensor
    noise: Tensor
    outputscale: Tensor
    lengthscale: Tensor

    def of(self, i: int) -> Hyperparameters:
        """Return the hyperparameters of GP i."""
        return Hyperparameters(float(self.constant[i]), self.noise[i], float(self.outputscale[i]), self.lengthscale[i])


@dataclass(frozen=True)
class SampleStack:
    """Data sets of one size; see `Sample`.

    Attributes:
        X: `m x n x d`, the inputs of each data set minus their mean, which avoids cancellation.
        squares: `m x n x d`, squares of their coordinates.
        y: `m x n`.
    """

    X: Tensor
    squares: Tensor
    y: Tensor

    def only(self, rows: list[int]) -> "SampleStack":
        """Return the samples with numbers `rows`."""
        return self if len(rows) == len(self.y) else SampleStack(self.X[rows], self.squares[rows], self.y[rows])

    def log_likelihoods(self, at: StackedHyperparameters, kernel: Kernel) -> tuple[Tensor, StackedHyperparameters]:
        """Return the log marginal likelihood of each sample at its hyperparameters, `m`, and the gradients.

        A sample whose covariance has no Cholesky factor is computed separately with jitter; NaN if that fails too.
        """
        X, y = self.X, self.y
        scaled = X / at.lengthscale.unsqueeze(-2)
        r2 = squared_distances(scaled, scaled)
        r2.diagonal(dim1=-2, dim2=-1).zero_()
        correlation, slope = CORRELATIONS[kernel](r2)
        covariance = correlation * at.outputscale[:, None, None]
        covariance.diagonal(dim1=-2, dim2=-1).add_(at.noise)
        L, broken = torch.linalg.cholesky_ex(covariance)
        inverse = torch.cholesky_inverse(L)
        residual = y - at.constant.unsqueeze(-1)
        a = (inverse @ residual.unsqueeze(-1)).squeeze(-1)
        values = -0.5 * ((residual * a).sum(-1) + y.shape[-1] * LOG_2PI)
        values -= L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        G = torch.baddbmm(inverse, a.unsqueeze(-1), a.unsqueeze(-2), beta=-0.5, alpha=0.5)
        grad_scale = torch.linalg.vecdot(G.flatten(1), correlation.flatten(1))
        grad_noise = G.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
        P = G.mul_(slope)
        grad_squares = (P.sum(-2).unsqueeze(-2) @ self.squares).squeeze(-2) - (X * (P @ X)).sum(-2)
        grad_squares.mul_(2 * at.outputscale.unsqueeze(-1))
        if at.lengthscale.shape[-1] < X.shape[-1]:
            grad_squares = grad_squares.sum(-1, keepdim=True)
        gradients = StackedHyperparameters(a.sum(-1), grad_noise, grad_scale, grad_squares / at.lengthscale**3)
        for i in broken.nonzero().flatten().tolist():
            self._alone(i, at, kernel, values, gradients)
        return values, gradients

    def _alone(
        self, i: int, at: StackedHyperparameters, kernel: Kernel, values: Tensor, gradients: StackedHyperparameters
    ) -> None:
        """Write the value and the gradient of sample i, computed separately, into `values` and `gradients`."""
        try:
            values[i], own = Sample(self.X[i], self.y[i]).log_likelihood(at.of(i), kernel)
        except (NanError, NotPSDError):
            values[i] = math.nan
            own = Hyperparameters(math.nan, at.noise[i] * math.nan, math.nan, at.lengthscale[i] * math.nan)
        for part, number in zip(gradients, own, strict=True):
            part[i] = torch.as_tensor(number)


def stack_of(samples: Sequence[Sample]) -> SampleStack:
    """Return samples of one size as one batch."""
    X = torch.stack([sample.X for sample in samples])
    X = X - X.mean(-2, keepdim=True)
    return SampleStack(X, X.square(), torch.stack([sample.y for sample in samples]))


def penalised_each(raw: Array, unknowns: Unknowns, samples: SampleStack, kernel: Kernel) -> tuple[Array, Array]:
    """Return the penalised log likelihood of each sample, `m`, and its gradients in the raw parameters, `m x k`.

    Args:
        raw: `m x k`.
        unknowns: the fitted hyperparameters; the noise is one.
        samples: m data sets.
        kernel: kernel of unit variance.
    """
    positive = unknowns.positive(raw)
    values, to = samples.log_likelihoods(_hyperparameters(raw, unknowns, positive), kernel)
    derivatives = to.noise.numpy(), to.outputscale.unsqueeze(-1).numpy(), to.lengthscale.numpy()
    value, gradient = unknowns.with_priors(values.numpy(), to.constant.numpy(), derivatives, positive)
    n = samples.y.shape[-1]
    return value / n, gradient / n


def _hyperparameters(raw: Array, unknowns: Unknowns, positive: Values) -> StackedHyperparameters:
    m, known = len(raw), unknowns.known
    (noise, _), (outputscale, _), (lengthscale, _) = positive
    return StackedHyperparameters(
        torch.from_numpy(raw[:, 0]),
        torch.from_numpy(noise),
        torch.from_numpy(outputscale[:, 0] if unknowns.outputscale.size else np.full(m, known.outputscale)),
        torch.from_numpy(lengthscale) if unknowns.lengthscale.size else known.lengthscale.expand(m, -1),
    )


def maximise_each(unknowns: Unknowns, samples: SampleStack, kernel: Kernel) -> list[Array | None]:
    """Return the raw parameters of a (penalised) maximum for each of m samples, or None.

    The maxima are those that `maximise` finds from its first start, by the same L-BFGS-B, here batched over samples.
    None where L-BFGS-B ends without convergence.
    """

    def loss(raw: Array, batch_indices: list[int]) -> tuple[Array, Array]:
        values, gradients = penalised_each(raw, unknowns, samples.only(batch_indices), kernel)
        return -values, -gradients

    starts = np.tile(unknowns.start(), (len(samples.y), 1))
    ends, values, steps = fmin_l_bfgs_b_batched(loss, starts, bounds=unknowns.bounds(), pass_batch_indices=True)
    converged = [step.success and math.isfinite(value) for step, value in zip(steps, values, strict=True)]
    return [end if reached else None for end, reached in zip(ends, converged, strict=True)]

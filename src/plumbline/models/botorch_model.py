"""Fitted GPs and SVGPs as a BoTorch model."""

from typing import Any, Protocol

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor


class Process(Protocol):
    """A GP or an SVGP with its noise, in the units of the problem."""

    def posterior_moments(self, X: Tensor, joint: bool = True) -> tuple[Tensor, Tensor]:
        """Return posterior means of f, `batch_shape x q`, and covariances, `batch_shape x q x q`, or variances.

        Args:
            X: `batch_shape x q x d`.
            joint: whether to return covariances rather than variances.
        """
        ...

    @property
    def noise_variance(self) -> float:
        """Variance of the observations' noise."""
        ...


class ProcessModel(Model):
    """Independent GPs or SVGPs, one per outcome, as a model for BoTorch's acquisition functions.

    Args:
        processes: fitted GPs or SVGPs.
        noisy: whether posteriors are those of observations instead of f.
    """

    def __init__(self, *processes: Process, noisy: bool = False) -> None:
        super().__init__()
        self.processes = processes
        self.noisy = noisy

    @property
    def num_outputs(self) -> int:
        """Number of outcomes."""
        return len(self.processes)

    @property
    def batch_shape(self) -> torch.Size:
        """The empty shape: one model."""
        return torch.Size()

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
        **_: Any,
    ) -> GPyTorchPosterior:
        """Return the joint posterior at `X` (`batch_shape x q x d`, in the problem's bounds)."""
        noisy = bool(observation_noise) or self.noisy
        outcomes = [self._outcome(process, X, noisy) for process in self.processes]
        joint = outcomes[0] if len(outcomes) == 1 else MultitaskMultivariateNormal.from_independent_mvns(outcomes)
        posterior = GPyTorchPosterior(joint)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def _outcome(self, process: Process, X: Tensor, noisy: bool) -> MultivariateNormal:
        mean, covariance = process.posterior_moments(X)
        if noisy:
            covariance = covariance + process.noise_variance * torch.eye(X.shape[-2]).to(X)
        # Lazy, as in GPyTorch: a covariance that rounding left without a Cholesky factor still has variances.
        return MultivariateNormal(mean, to_linear_operator(covariance))

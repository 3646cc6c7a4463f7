"""A fitted process as a model of BoTorch."""

from typing import Any, Protocol

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor


class Process(Protocol):
    """What is known of a function, in the problem's units."""

    def moments(self, X: Tensor, joint: bool = True) -> tuple[Tensor, Tensor]:
        """Return means of f, `batch_shape x q`, and covariances, `batch_shape x q x q`, or variances alone.

        Args:
            X: `batch_shape x q x d`.
            joint: covariances rather than variances.
        """
        ...

    @property
    def noise_variance(self) -> float:
        """Variance of the observations' noise."""
        ...


class ProcessModel(Model):
    """A process as BoTorch's acquisition functions want it.

    Args:
        process: trained.
        noisy: whether to pass observations for the function.
    """

    def __init__(self, process: Process, noisy: bool = False) -> None:
        super().__init__()
        self.process = process
        self.noisy = noisy

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """None."""
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
        mean, covariance = self.process.moments(X)
        if observation_noise or self.noisy:
            covariance = covariance + self.process.noise_variance * torch.eye(X.shape[-2]).to(X)
        # A lazy matrix, as GPyTorch's own: one with no Cholesky factor, such as a stale one may leave, has variances.
        posterior = GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(covariance)))
        return posterior if posterior_transform is None else posterior_transform(posterior)

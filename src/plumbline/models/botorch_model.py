"""A fitted process as a model of BoTorch."""

from typing import Any, Protocol

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
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
    """Processes, one an outcome, as BoTorch's acquisition functions want them.

    Args:
        processes: fitted, independent of each other.
        noisy: whether to pass observations for the functions.
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
        noisy = bool(observation_noise) or self.noisy
        outcomes = [self._outcome(process, X, noisy) for process in self.processes]
        joint = outcomes[0] if len(outcomes) == 1 else MultitaskMultivariateNormal.from_independent_mvns(outcomes)
        posterior = GPyTorchPosterior(joint)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def _outcome(self, process: Process, X: Tensor, noisy: bool) -> MultivariateNormal:
        mean, covariance = process.moments(X)
        if noisy:
            covariance = covariance + process.noise_variance * torch.eye(X.shape[-2]).to(X)
        # A lazy matrix, as GPyTorch's own: one with no Cholesky factor, such as a stale one may leave, has variances.
        return MultivariateNormal(mean, to_linear_operator(covariance))

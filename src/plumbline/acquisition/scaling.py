"""A posterior with its standard deviation multiplied: how a recalibrated model enters any BoTorch acquisition."""

from botorch.acquisition.objective import PosteriorTransform
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from torch import Tensor


class ScaledDeviation(PosteriorTransform):
    """Keep the mean, multiply the covariance by the square of a factor.

    Example:
        >>> ExpectedImprovement(model, best_f=0.0, posterior_transform=ScaledDeviation(2.0))
    """

    scalarize = True  # BoTorch's word for: one outcome goes out

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def evaluate(self, Y: Tensor, X: Tensor | None = None) -> Tensor:
        """Return outcomes as they are: `batch_shape x q x 1` in, `batch_shape x q` out."""
        return Y.squeeze(-1)

    def forward(self, posterior: GPyTorchPosterior, X: Tensor | None = None) -> GPyTorchPosterior:
        """Return the posterior with `factor` times the standard deviation."""
        joint = posterior.distribution
        return GPyTorchPosterior(MultivariateNormal(joint.mean, joint.lazy_covariance_matrix * self.factor**2))

"""What a search asks of a process: moments of f, with what pulls gradients in them back to the points."""

from typing import Protocol

from botorch.models.model import Model
from torch import Tensor


class MarginalPosterior(Protocol):
    """What is said of f at `b` points, each on its own, in the units of the observations."""

    @property
    def mean(self) -> Tensor:
        """Means, `b`."""
        ...

    @property
    def sd(self) -> Tensor:
        """Standard deviations, `b`."""
        ...

    def vjp(self, grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
        """Return the gradient in the points, `b x d`, of a function of `mean` and `sd`.

        Args:
            to_mean, to_sd: `b`, its derivatives in them.
        """
        ...


class JointPosterior(Protocol):
    """What is said of f at `b` batches of q points, likewise."""

    @property
    def mean(self) -> Tensor:
        """Means, `b x q`."""
        ...

    @property
    def root(self) -> Tensor:
        """Cholesky factors of the covariances, `b x q x q`."""
        ...

    def vjp(self, grad_mean: Tensor, grad_root: Tensor) -> Tensor:
        """Return the gradient in the points, `b x q x d`, of a function of `mean` and `root`.

        Args:
            to_mean: `b x q`, its derivatives in the means.
            to_root: `b x q x q`, in the factors; what is above their diagonals does not count.
        """
        ...


class GaussianProcess(Protocol):
    """A process, exact or sparse."""

    @property
    def model(self) -> Model:
        """The process as a model of BoTorch."""
        ...

    def marginal_posterior(self, X: Tensor) -> MarginalPosterior:
        """Return what is said of f at points, `b x d` in the problem's bounds."""
        ...

    def joint_posterior(self, X: Tensor) -> JointPosterior:
        """Return what is said of f at batches, `b x q x d` in the problem's bounds."""
        ...

"""Posteriors that a search needs of a GP or SVGP: means and deviations of f, with their vector-Jacobian products."""

from typing import Protocol

from botorch.models.model import Model
from torch import Tensor


class MarginalPosterior(Protocol):
    """Marginal posteriors of f at `b` points, in the units of the observations."""

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
            grad_mean, grad_sd: `b`, its derivatives in them.
        """
        ...


class JointPosterior(Protocol):
    """Joint posteriors of f at `b` batches of q points, in the units of the observations."""

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
            grad_mean: `b x q`, its derivatives in the means.
            grad_root: `b x q x q`, in the factors; entries above their diagonals are ignored.
        """
        ...


class GaussianProcess(Protocol):
    """A GP or an SVGP."""

    @property
    def model(self) -> Model:
        """The GP or SVGP as a BoTorch model."""
        ...

    def marginal_posterior(self, X: Tensor) -> MarginalPosterior:
        """Return the marginal posteriors of f at points, `b x d` in the problem's bounds."""
        ...

    def joint_posterior(self, X: Tensor) -> JointPosterior:
        """Return the joint posteriors of f at batches, `b x q x d` in the problem's bounds."""
        ...

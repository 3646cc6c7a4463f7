"""Expected log-utilities of queries under SVGPs: the term that the EULBO adds to the ELBO.

Maus et al. (2024), section 3. A utility is a function of the posteriors of `b` processes at `k` points each: the `q`
queries and, for the knowledge gradient, a maximiser of the mean for each sample. Softplus makes improvements positive;
its logarithm neither underflows nor overflows. Gradients are by hand: most of these tensors are small, and automatic
differentiation takes several times as long as the operations themselves.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.methods.sparse.point_posteriors import PointPosteriors, Prior
from plumbline.models.svgp.numerics import log_softplus
from plumbline.models.svgp.objective import Cotangents, Forward


def greatest_log_softplus(values: Tensor, best: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean over samples of `log softplus(max_j values_ij - best)`, `b`, and its gradient in the values.

    Args:
        values: `b x S x q`.
        best: `b`.
    """
    greatest, where = values.max(-1, keepdim=True)
    logs, slopes = log_softplus(greatest.squeeze(-1) - best.unsqueeze(-1))
    slopes = slopes / values.shape[-2]
    return logs.mean(-1), torch.zeros_like(values).scatter_(-1, where, slopes.unsqueeze(-1))


@dataclass(frozen=True)
class ExpectedLog:
    """`E log u` of `b` processes, and its derivatives in their posteriors at `k` points.

    Attributes:
        value: `b`.
        grad_whitened: `b x m x k`, in `A`.
        grad_product: `b x (m + 1) x k`, in `B`.
        grad_constant: `b`.
        grad_outputscale: `b`, at fixed `A`, `B` and prior covariances.
        grad_priors: prior covariances, with the derivatives in them.
        grad_noise: `b`, in the variance of the noise; None where no value depends on it.
    """

    value: Tensor
    grad_whitened: Tensor
    grad_product: Tensor
    grad_constant: Tensor
    grad_outputscale: Tensor
    grad_priors: tuple[tuple[Prior, Tensor], ...] = ()
    grad_noise: Tensor | None = None

    def cotangents(self) -> Cotangents:
        """Return the derivatives in the parts of the processes' forward pass."""
        grad_lengthscale, grad_outputscale = torch.zeros_like(self.value), self.grad_outputscale
        for prior, grad_value in self.grad_priors:
            lengthwise, outward = prior.vjp(grad_value)
            grad_lengthscale, grad_outputscale = grad_lengthscale + lengthwise, grad_outputscale + outward
        grad_noise = torch.zeros_like(self.value) if self.grad_noise is None else self.grad_noise
        return Cotangents(
            self.grad_whitened, self.grad_product, self.grad_constant, grad_lengthscale, grad_outputscale, grad_noise
        )

    def grad_points(self, passed: Forward) -> Tensor:
        """Return the gradient in the points of a forward pass, `b x k x d`."""
        gradient = passed.vjp_to_points(self.grad_whitened, self.grad_product)
        for prior, grad_value in self.grad_priors:
            gradient += prior.vjp_to_points(grad_value)
        return gradient


class SoftUtility(ABC):
    """A utility with a computable expected logarithm.

    Attributes:
        best: `b`, the value to improve on.
        q: number of queries; the points after them are the utility's own.
    """

    best: Tensor
    q: int

    @abstractmethod
    def expected_log(self, posteriors: PointPosteriors) -> ExpectedLog:
        """Return `E log u` of each process, with its derivatives."""

    @abstractmethod
    def of(self, going: Tensor) -> "SoftUtility":
        """Return the utility of the processes with the indices `going`."""

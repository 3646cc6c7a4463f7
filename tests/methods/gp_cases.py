"""Gaussian processes with fixed hyperparameters, and points of their unit cube."""

import torch

from plumbline.methods.conformal.augmented import Augmented
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned

BOUNDS = torch.tensor([[-1.0, 0.0], [2.0, 3.0]], dtype=torch.float64)


def made_process(n: int, noise: float = 1e-2, seed: int = 0) -> GP:
    """Return a process of `n` noisy data in two dimensions."""
    generator = torch.Generator().manual_seed(seed)
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * torch.rand(n, 2, generator=generator, dtype=torch.float64)
    Y = torch.sin(3 * X).sum(dim=-1, keepdim=True) + 0.1 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    at = Hyperparameters(0.0, X.new_tensor([noise]), 0.7, X.new_tensor([0.3]))
    return conditioned(X, Y, BOUNDS, "matern52", at)


def cube(b: int, q: int = 1, seed: int = 1) -> torch.Tensor:
    """Return `b x q x 2` points of the unit cube."""
    return torch.rand(b, q, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_weights(b: int, q: int, n: int, seed: int) -> torch.Tensor:
    """Return `b x q x (n + 1)` weights that sum to one."""
    w = torch.rand(b, q, n + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 1e-3
    return w / w.sum(dim=-1, keepdim=True)


def refitted(process: GP, U: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Algorithm 1 by the letter: put the labels into the data and predict; posterior mean and covariance of f."""
    inputs = torch.cat([process.U, U])
    mean = torch.full((len(inputs),), process.at.constant, dtype=torch.float64)
    targets = torch.cat([process.y, labels]) - mean
    K = process.prior(inputs, inputs)
    inverse = torch.linalg.inv(K + process.noise * torch.eye(len(K)).double())
    return mean + K @ inverse @ targets, K - K @ inverse @ K


def refitted_scores(process: GP, U: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the log predictive densities of the data, and of the labels after them."""
    mean, covariance = refitted(process, U, labels)
    sd = (covariance.diagonal() + process.noise).sqrt()
    return torch.distributions.Normal(mean, sd).log_prob(torch.cat([process.y, labels]))


def labels_of(system: Augmented, z: torch.Tensor) -> torch.Tensor:
    """Return the labels whose whitened residuals are `z`, `b x k x q`."""
    return system.mean.unsqueeze(-2) + z @ system.root.mT


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return standard normal draws."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def assert_same_gradient(found: torch.Tensor, value: torch.Tensor, grad_value: torch.Tensor, at: torch.Tensor) -> None:
    """Assert that a gradient that was pulled back is that of automatic differentiation."""
    (expected,) = torch.autograd.grad((grad_value * value).sum(), at, retain_graph=True)
    torch.testing.assert_close(found.detach(), expected, rtol=1e-9, atol=1e-10)

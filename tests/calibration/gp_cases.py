"""Gaussian processes with fixed hyperparameters, and points of their unit cube."""

import torch
from botorch.models import SingleTaskGP
from gpytorch.constraints import GreaterThan

from plumbline.models.exact import ModelOptions, make_gp

BOUNDS = torch.tensor([[-1.0, 0.0], [2.0, 3.0]], dtype=torch.float64)


def made_model(n: int, noise: float = 1e-2, seed: int = 0) -> SingleTaskGP:
    """Return a model of `n` noisy data in two dimensions."""
    generator = torch.Generator().manual_seed(seed)
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * torch.rand(n, 2, generator=generator, dtype=torch.float64)
    Y = torch.sin(3 * X).sum(dim=-1, keepdim=True) + 0.1 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    model = make_gp(X, Y, BOUNDS, ModelOptions(priors="none"))
    model.covar_module.base_kernel.lengthscale = 0.3
    model.likelihood.noise_covar.register_constraint("raw_noise", GreaterThan(1e-10))
    model.likelihood.noise = noise
    return model.eval()


def cube(b: int, q: int = 1, seed: int = 1) -> torch.Tensor:
    """Return `b x q x 2` points of the unit cube."""
    return torch.rand(b, q, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_weights(b: int, q: int, n: int, seed: int) -> torch.Tensor:
    """Return `b x q x (n + 1)` weights that sum to one."""
    w = torch.rand(b, q, n + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 1e-3
    return w / w.sum(dim=-1, keepdim=True)


def refitted(model: SingleTaskGP, U: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Algorithm 1 by the letter: put the labels into the data and predict; posterior mean and covariance of f."""
    inputs = torch.cat([model.train_inputs[0], U])
    mean = model.mean_module(inputs)
    targets = torch.cat([model.train_targets, labels]) - mean
    K = model.covar_module(inputs).to_dense()
    inverse = torch.linalg.inv(K + model.likelihood.noise * torch.eye(len(K)))
    return mean + K @ inverse @ targets, K - K @ inverse @ K


def refitted_scores(model: SingleTaskGP, U: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the log predictive densities of the data, and of the labels after them."""
    mean, covariance = refitted(model, U, labels)
    sd = (covariance.diagonal() + model.likelihood.noise).sqrt()
    return torch.distributions.Normal(mean, sd).log_prob(torch.cat([model.train_targets, labels]))

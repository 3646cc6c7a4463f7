"""Covariances as plain functions, against GPyTorch's kernels."""

import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel

from plumbline.models.stationary import Stationary, covariance_of, covariance_with_pull_back


def kernels() -> dict[str, torch.nn.Module]:
    matern, rbf = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=3)), RBFKernel(ard_num_dims=3)
    matern.base_kernel.lengthscale = torch.tensor([0.2, 1.0, 3.0])
    matern.outputscale = 2.5
    rbf.lengthscale = torch.tensor([0.5, 0.3, 0.7])
    known = {"scaled matern": matern, "rbf": rbf, "one lengthscale": ScaleKernel(RBFKernel())}
    other = {"rough matern": MaternKernel(nu=1.5), "linear": LinearKernel()}
    return {name: kernel.double() for name, kernel in (known | other).items()}


@pytest.mark.parametrize("name", kernels())
@pytest.mark.parametrize("shape", [(), (4,)])
def test_values_and_gradients_are_gpytorchs(name: str, shape: tuple[int, ...]) -> None:
    kernel = kernels()[name]
    generator = torch.Generator().manual_seed(0)
    A, B = (torch.rand(*shape, n, 3, generator=generator, dtype=torch.float64, requires_grad=True) for n in (2, 40))
    ours, theirs = covariance_of(kernel)(A, B), kernel(A, B).to_dense()
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    weights = torch.rand(ours.shape, generator=generator, dtype=torch.float64)
    for mine, expected in zip(
        torch.autograd.grad((weights * ours).sum(), (A, B)),
        torch.autograd.grad((weights * theirs).sum(), (A, B)),
        strict=True,
    ):
        torch.testing.assert_close(mine, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", kernels())
def test_gradients_in_the_points_are_pulled_back_as_by_automatic_differentiation(name: str) -> None:
    covariance, generator = covariance_of(kernels()[name]), torch.Generator().manual_seed(0)
    A, B = (torch.rand(n, 3, generator=generator, dtype=torch.float64) for n in (2, 40))
    A.requires_grad_()
    K = covariance(A, B)
    weights = torch.rand(K.shape, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        found, pull_back = covariance_with_pull_back(covariance, A, B)
        (gradient,) = pull_back(weights)
    torch.testing.assert_close(found, K.detach(), rtol=1e-14, atol=0)
    torch.testing.assert_close(gradient, *torch.autograd.grad((weights * K).sum(), A), rtol=1e-10, atol=1e-12)


def test_known_kernels_are_plain_and_others_are_themselves() -> None:
    plain = {name for name, kernel in kernels().items() if isinstance(covariance_of(kernel), Stationary)}
    assert plain == {"scaled matern", "rbf", "one lengthscale"}


def test_at_no_distance_the_gradient_is_zero() -> None:
    A = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    covariance = covariance_of(kernels()["scaled matern"])
    (gradient,) = torch.autograd.grad(covariance(A, A.detach()).diagonal().sum(), A)
    assert torch.equal(gradient, torch.zeros_like(gradient))
    (gradient,) = covariance_with_pull_back(covariance, A.detach(), A.detach())[1](torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-14)

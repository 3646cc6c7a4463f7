"""Moments of a sparse process against its own, their gradients against automatic ones, utilities against BoTorch's."""

from collections.abc import Callable

import pytest
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    ExpectedImprovement,
    LogExpectedImprovement,
    qExpectedImprovement,
    qLogExpectedImprovement,
)
from botorch.sampling import SobolQMCNormalSampler
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_cases import ELSEWHERE, KERNELS, normal, process, uniform
from torch import Size, Tensor

from plumbline.acquisition.analytic import AnalyticAcquisition, expected_improvement, log_expected_improvement
from plumbline.acquisition.monte_carlo import MonteCarloAcquisition, batch_expected_improvement, log_batch_improvement
from plumbline.models.algebra import SparseKernel
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.svgp.posterior import SVGPPosterior
from plumbline.spaces.with_gradient import Differentiated

BEST = torch.tensor(-65.0, dtype=torch.float64)


def sampler() -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(Size([64]), seed=3)


Pair = tuple[int, Callable[[SVGPPosterior], Differentiated], Callable[[ProcessModel], AcquisitionFunction]]
PAIRS: dict[str, Pair] = {
    "ei": (1, lambda own: AnalyticAcquisition(own, expected_improvement(BEST)), lambda m: ExpectedImprovement(m, BEST)),
    "logei": (
        1,
        lambda own: AnalyticAcquisition(own, log_expected_improvement(BEST)),
        lambda m: LogExpectedImprovement(m, BEST),
    ),
    "qei": (
        3,
        lambda own: MonteCarloAcquisition(own, batch_expected_improvement(BEST), 64, 3),
        lambda m: qExpectedImprovement(m, BEST, sampler=sampler()),
    ),
    "qlogei": (
        3,
        lambda own: MonteCarloAcquisition(own, log_batch_improvement(BEST), 64, 3),
        lambda m: qLogExpectedImprovement(m, BEST, sampler=sampler()),
    ),
}


def places(*size: int, near: bool = False, seed: int = 3) -> Tensor:
    """Return points, some of them at inducing points where `near`."""
    X = uniform(*size, 3, seed=seed)
    if near:
        X.flatten(0, -2)[:2] = process().parameters.inducing[0, :2] + 1e-6
    return ELSEWHERE.points(X)


@pytest.mark.parametrize("noisy", [False, True])
@settings(max_examples=20)
@given(kernel=st.sampled_from(KERNELS), near=st.booleans(), seed=st.integers(0, 99))
def test_moments_of_points_and_their_gradients(noisy: bool, kernel: SparseKernel, near: bool, seed: int) -> None:
    own, X = process(kernel, seed=seed), places(5, near=near, seed=seed).requires_grad_()
    mean, variance = own.posterior_moments(X.unsqueeze(-2), joint=False)
    sd = (variance + noisy * own.noise_variance).sqrt()
    seen = SVGPPosterior(own, noisy).marginal_posterior(X.detach())
    torch.testing.assert_close(seen.mean, mean.detach().flatten())
    torch.testing.assert_close(seen.sd, sd.detach().flatten())
    weights = normal(2, 5, seed=seed)
    (slope,) = torch.autograd.grad((weights[0] * mean.flatten()).sum() + (weights[1] * sd.flatten()).sum(), X)
    torch.testing.assert_close(seen.vjp(*weights), slope, rtol=1e-6, atol=1e-9 * float(slope.abs().max()))


@pytest.mark.parametrize("noisy", [False, True])
@settings(max_examples=20)
@given(kernel=st.sampled_from(KERNELS), near=st.booleans(), q=st.integers(1, 4), seed=st.integers(0, 99))
def test_moments_of_batches_and_their_gradients(
    noisy: bool, kernel: SparseKernel, near: bool, q: int, seed: int
) -> None:
    own, X = process(kernel, seed=seed), places(3, q, near=near, seed=seed).requires_grad_()
    mean, covariance = own.posterior_moments(X)
    covariance = covariance + noisy * own.noise_variance * torch.eye(q).to(X)
    root = torch.linalg.cholesky(covariance)
    seen = SVGPPosterior(own, noisy).joint_posterior(X.detach())
    torch.testing.assert_close(seen.mean, mean.detach())
    torch.testing.assert_close(seen.root @ seen.root.mT, covariance.detach(), rtol=1e-7, atol=1e-9)
    grad_mean, grad_root = normal(3, q, seed=seed), normal(3, q, q, seed=seed + 1)
    (slope,) = torch.autograd.grad((grad_mean * mean).sum() + (grad_root * root).sum(), X)
    torch.testing.assert_close(seen.vjp(grad_mean, grad_root), slope, rtol=1e-6, atol=1e-8 * float(slope.abs().max()))


def test_a_batch_with_a_point_twice_has_a_factor() -> None:
    X = places(2, 3)
    X[:, 2] = X[:, 0]
    seen = SVGPPosterior(process()).joint_posterior(X)
    assert torch.isfinite(seen.root).all()
    assert torch.isfinite(seen.vjp(normal(2, 3), normal(2, 3, 3))).all()


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.filterwarnings("ignore:.*known numerical issues")
def test_utilities_and_their_gradients_are_botorchs(name: str, kernel: SparseKernel, noisy: bool) -> None:
    q, ours, theirs = PAIRS[name]
    own, X = process(kernel), places(6, q).requires_grad_()
    utility = ours(SVGPPosterior(own, noisy))
    value, gradient = utility.value_and_gradient(X.detach())
    expected = theirs(ProcessModel(own, noisy=noisy))(X)
    (slope,) = torch.autograd.grad(expected.sum(), X)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradient, slope, rtol=1e-7, atol=1e-9 * float(slope.abs().max()))
    assert torch.equal(utility(X.detach()), value)

"""A scaled deviation is what an acquisition sees: closed forms written out with `s * sd`."""

import numpy as np
import pytest
import torch
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
    qNoisyExpectedImprovement,
    qUpperConfidenceBound,
)
from botorch.acquisition.analytic import LogProbabilityOfImprovement
from botorch.models import SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from scipy.stats import norm
from torch import Size, Tensor

from plumbline.acquisition.scaling import ScaledDeviation

SCALES = [0.1, 0.7, 1.0, 3.0]
BEST = 44.0


def moments(model: SingleTaskGP, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        posterior = model.posterior(X)
    return posterior.mean.flatten().numpy(), posterior.variance.sqrt().flatten().numpy()


@pytest.mark.parametrize("s", SCALES)
def test_keeps_the_mean_and_multiplies_the_deviation(model: SingleTaskGP, points: Tensor, s: float) -> None:
    mean, sd = moments(model, points)
    with torch.no_grad():
        scaled = model.posterior(points, posterior_transform=ScaledDeviation(s))
    np.testing.assert_allclose(scaled.mean.flatten(), mean, rtol=1e-12)
    np.testing.assert_allclose(scaled.variance.sqrt().flatten(), s * sd, rtol=1e-9)
    assert scaled.mean.shape == (*points.shape[:-1], 1)


def test_multiplies_the_whole_covariance(model: SingleTaskGP, points: Tensor) -> None:
    X = points.transpose(0, 1)  # 1 x 5 x 2: five points, jointly
    plain = model.posterior(X).distribution.covariance_matrix
    scaled = model.posterior(X, posterior_transform=ScaledDeviation(2.5)).distribution.covariance_matrix
    torch.testing.assert_close(scaled, 2.5**2 * plain)
    noisy = model.posterior(X, observation_noise=True)
    both = model.posterior(X, observation_noise=True, posterior_transform=ScaledDeviation(2.5))
    torch.testing.assert_close(both.variance, 2.5**2 * noisy.variance)


@pytest.mark.parametrize("s", SCALES)
def test_expected_improvement(model: SingleTaskGP, points: Tensor, s: float) -> None:
    mean, sd = moments(model, points)
    u = (mean - BEST) / (s * sd)
    expected = s * sd * (u * norm.cdf(u) + norm.pdf(u))
    transform = ScaledDeviation(s)
    value = ExpectedImprovement(model, BEST, posterior_transform=transform)(points).detach()
    np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-12)
    log_value = LogExpectedImprovement(model, BEST, posterior_transform=transform)(points).detach()
    keep = expected > 1e-12
    np.testing.assert_allclose(log_value[keep], np.log(expected[keep]), rtol=1e-4)


@pytest.mark.parametrize("s", SCALES)
def test_upper_confidence_bound(model: SingleTaskGP, points: Tensor, s: float) -> None:
    mean, sd = moments(model, points)
    value = UpperConfidenceBound(model, 1.7**2, posterior_transform=ScaledDeviation(s))(points).detach()
    np.testing.assert_allclose(value, mean + 1.7 * s * sd, rtol=1e-7)


@pytest.mark.parametrize("s", SCALES)
def test_probability_of_improvement(model: SingleTaskGP, points: Tensor, s: float) -> None:
    mean, sd = moments(model, points)
    value = LogProbabilityOfImprovement(model, BEST, posterior_transform=ScaledDeviation(s))(points).detach()
    np.testing.assert_allclose(value, norm.logcdf((mean - BEST) / (s * sd)), rtol=1e-6, atol=1e-9)


def joint_samples(model: SingleTaskGP, X: Tensor, s: float, sampler: SobolQMCNormalSampler) -> Tensor:
    """Return posterior samples at `X` whose deviation from the mean is `s` times the model's."""
    posterior = model.posterior(X)
    return (posterior.mean + s * (sampler(posterior) - posterior.mean)).squeeze(-1)


@pytest.mark.parametrize("s", SCALES)
def test_batch_expected_improvement(model: SingleTaskGP, points: Tensor, s: float) -> None:
    X = points[:4].reshape(2, 2, 2)
    sampler = SobolQMCNormalSampler(Size([256]), seed=0)
    value = qExpectedImprovement(model, BEST, sampler=sampler, posterior_transform=ScaledDeviation(s))(X)
    samples = joint_samples(model, X, s, SobolQMCNormalSampler(Size([256]), seed=0))
    expected = (samples - BEST).clamp_min(0).amax(dim=-1).mean(dim=0)
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("s", SCALES)
def test_batch_expected_improvement_of_one_is_the_closed_form(model: SingleTaskGP, points: Tensor, s: float) -> None:
    sampler = SobolQMCNormalSampler(Size([8192]), seed=0)
    transform = ScaledDeviation(s)
    sampled = qExpectedImprovement(model, 40.0, sampler=sampler, posterior_transform=transform)(points)
    closed = ExpectedImprovement(model, 40.0, posterior_transform=transform)(points)
    torch.testing.assert_close(sampled, closed, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("s", SCALES)
def test_batch_upper_confidence_bound_of_one_is_the_closed_form(model: SingleTaskGP, points: Tensor, s: float) -> None:
    mean, sd = moments(model, points)
    sampler = SobolQMCNormalSampler(Size([8192]), seed=0)
    value = qUpperConfidenceBound(model, 1.7**2, sampler=sampler, posterior_transform=ScaledDeviation(s))(points)
    np.testing.assert_allclose(value.detach(), mean + 1.7 * s * sd, rtol=5e-3)


@pytest.mark.parametrize("s", SCALES)
def test_noisy_expected_improvement_scales_the_incumbents_too(model: SingleTaskGP, points: Tensor, s: float) -> None:
    seen = model.input_transform.untransform(model.train_inputs[0])
    sampler = SobolQMCNormalSampler(Size([8192]), seed=0)
    utility = qNoisyExpectedImprovement(
        model, seen, sampler=sampler, posterior_transform=ScaledDeviation(s), prune_baseline=False
    )
    joint = torch.cat([points, seen.expand(len(points), -1, -1)], dim=-2)
    samples = joint_samples(model, joint, s, SobolQMCNormalSampler(Size([8192]), seed=1))
    gains = (samples[..., 0] - samples[..., 1:].amax(dim=-1)).clamp_min(0).mean(dim=0)
    torch.testing.assert_close(utility(points), gains, rtol=5e-2, atol=s * 2e-2)


@pytest.mark.parametrize("make", [ExpectedImprovement, LogExpectedImprovement, LogProbabilityOfImprovement])
def test_gradients(model: SingleTaskGP, points: Tensor, make) -> None:
    utility = make(model, 40.0, posterior_transform=ScaledDeviation(1.8))
    assert torch.autograd.gradcheck(utility, points.clone().requires_grad_(True), atol=1e-4, rtol=1e-3)


def test_gradient_of_the_confidence_bound_is_that_of_mean_and_deviation(model: SingleTaskGP, points: Tensor) -> None:
    X = points.clone().requires_grad_(True)
    UpperConfidenceBound(model, 4.0, posterior_transform=ScaledDeviation(3.0))(X).sum().backward()
    Z = points.clone().requires_grad_(True)
    posterior = model.posterior(Z)
    (posterior.mean + 6.0 * posterior.variance.sqrt()).sum().backward()
    torch.testing.assert_close(X.grad, Z.grad, rtol=1e-6, atol=1e-9)


def test_outcomes_are_left_as_they_are() -> None:
    Y = torch.randn(4, 3, 1, dtype=torch.float64)
    assert torch.equal(ScaledDeviation(2.0).evaluate(Y), Y.squeeze(-1))

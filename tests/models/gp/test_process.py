"""An exact process, against GPyTorch's model of the same numbers and against dense solves."""

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import qUpperConfidenceBound
from botorch.sampling import SobolQMCNormalSampler
from exact_cases import BOUNDS, CHOICES, data, made, normal, uniform
from exact_gpytorch import gpytorch_model
from linear_operator.utils.errors import NotPSDError
from torch import Size

from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import conditioned


@pytest.mark.parametrize("kernel", ["matern52", "matern32", "matern12", "rbf"])
@pytest.mark.parametrize("lengthscales", [1, 2])
@pytest.mark.parametrize("known", [False, True])
def test_moments_are_gpytorchs(kernel: str, lengthscales: int, known: bool) -> None:
    process = made(kernel, known, lengthscales)
    X = uniform(3, 4, seed=1)
    expected = gpytorch_model(process).posterior(X)
    mean, covariance = process.posterior_moments(X)
    torch.testing.assert_close(mean, expected.mean.squeeze(-1).detach(), rtol=1e-9, atol=1e-8)
    torch.testing.assert_close(covariance, expected.covariance_matrix.detach(), rtol=1e-6, atol=1e-5)
    mean, variance = process.posterior_moments(X, joint=False)
    torch.testing.assert_close(variance, expected.variance.squeeze(-1).detach(), rtol=1e-6, atol=1e-5)
    if not known:
        noisy = gpytorch_model(process).posterior(X, observation_noise=True)
        torch.testing.assert_close(
            process.model.posterior(X, observation_noise=True).variance, noisy.variance.detach(), rtol=1e-6, atol=1e-5
        )


def test_values_that_it_is_told_leave_the_means_and_take_their_covariances_away() -> None:
    process, B, X = replace(made(), deviation=1.3), uniform(3, seed=4), uniform(5, 2, seed=5)
    told = process.condition_on_mean(B)
    mean, covariance = process.posterior_moments(torch.cat([B.expand(5, -1, -1), X], -2))
    cross, among = covariance[:, 3:, :3], covariance[:, :3, :3]
    seen = told.joint_posterior(X)
    torch.testing.assert_close(seen.mean, mean[:, 3:])
    left = covariance[:, 3:, 3:] - cross @ torch.linalg.solve(among, cross.mT)
    torch.testing.assert_close(seen.root @ seen.root.mT, left, rtol=1e-6, atol=1e-6)
    # Where f moves by L z at B, its mean moves by half z elsewhere.
    scale = process.standardisation.scale * process.deviation
    L = torch.linalg.cholesky(among[0])
    torch.testing.assert_close(scale * told.root[-3:, -3:], L)
    moved = cross @ torch.cholesky_inverse(L) @ L
    torch.testing.assert_close(scale * seen.half[..., -3:], moved, rtol=1e-6, atol=1e-6)


def test_the_deviation_of_forecasts_is_multiplied() -> None:
    process, X = made(), uniform(5, seed=1)
    wide = replace(process, deviation=3.0)
    plain, noisy = (one.model.posterior(X, observation_noise=True) for one in (process, wide))
    torch.testing.assert_close(noisy.mean, plain.mean)
    torch.testing.assert_close(noisy.variance, 9 * plain.variance)


def test_a_joint_utility_of_botorch_runs_on_it() -> None:
    process, X = made(), uniform(4, 3, seed=5).requires_grad_()
    sampler = SobolQMCNormalSampler(Size([64]), seed=0)
    here, there = (qUpperConfidenceBound(model, 2.0, sampler)(X) for model in (process.model, gpytorch_model(process)))
    torch.testing.assert_close(here, there, rtol=1e-6, atol=1e-6)
    slopes = [torch.autograd.grad(value.sum(), X)[0] for value in (here, there)]
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-6)


def test_more_data_at_the_same_hyperparameters() -> None:
    X, Y = data(12)
    part = conditioned(X[:9], Y[:9], BOUNDS, "rbf", made("rbf").at)
    whole = conditioned(X, Y, BOUNDS, "rbf", made("rbf").at, part.standardisation)
    here, there = (
        one.posterior_moments(uniform(5, seed=3)) for one in (part.condition_on_observations(X[9:], Y[9:]), whole)
    )
    torch.testing.assert_close(here[0], there[0])
    torch.testing.assert_close(here[1], there[1])


@pytest.mark.parametrize("known", [False, True])
def test_residuals_and_forecasts_at_the_data(known: bool) -> None:
    process = made(known=known)
    mean, variance = process.posterior_moments(data()[0], joint=False)
    torch.testing.assert_close(process.residuals, process.y - process.standardisation.outputs(mean))
    forecast = variance / process.standardisation.scale**2 + process.at.noise
    torch.testing.assert_close(process.forecast_variances, forecast)


def test_what_is_kept_may_be_differentiated_through() -> None:
    process, X = made(), uniform(2, 1, seed=1).requires_grad_()
    with torch.inference_mode():
        process.marginal_posterior(X.detach()[:, 0])
    assert all(
        torch.isfinite(gradient).all() for gradient in torch.autograd.grad(process.posterior_moments(X)[0].sum(), X)
    )


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_factors_are_those_of_a_dense_solve(options: ModelOptions) -> None:
    process = fit_process(*data(), BOUNDS, options)
    covariance = process.prior(process.U, process.U) + process.noise * torch.eye(9, dtype=torch.float64)
    residual = process.y - process.at.constant
    torch.testing.assert_close(process.root @ process.root.mT, covariance)
    torch.testing.assert_close(process.root @ process.whitened, residual)
    torch.testing.assert_close(covariance @ process.a, residual)
    torch.testing.assert_close(process.precision, torch.linalg.inv(covariance).diagonal(), rtol=1e-6, atol=1e-6)


def test_no_factor_is_an_error() -> None:
    process = made(n=4)
    broken = replace(process, at=process.at._replace(noise=torch.tensor([-5.0], dtype=torch.float64)))
    with pytest.raises(NotPSDError), pytest.warns(match="not p.d."):
        _ = broken.root


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_values_that_it_is_told_twice(scale: float) -> None:
    """Jitter is a share of the prior variance, and enough where that is large."""
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(30, 1, generator=generator, dtype=torch.float64)
    X[5] = X[4]
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    at = Hyperparameters(0.0, X.new_tensor([0.01]), scale, X.new_tensor([5.0]))
    process = conditioned(X, 1e3 * torch.sin(5 * X), bounds, "rbf", at)
    batches = X[:24].view(8, 3, 1)
    with pytest.warns(match="not p.d."):
        seen = process.condition_on_mean(X).joint_posterior(batches)
    assert torch.isfinite(seen.vjp(normal(8, 3, seed=0), normal(8, 3, 3, seed=1))).all()
    torch.testing.assert_close(seen.mean, process.posterior_moments(batches)[0], rtol=1e-4, atol=1e-2)

"""A GP as BoTorch's model: the same posterior, and all else that BoTorch asks of a model."""

import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient, qMultiStepLookahead
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from exact_cases import BOUNDS, made, uniform
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Size, Tensor

from plumbline.models.algebra import CORRELATIONS
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned
from plumbline.models.gp.single_task import single_task_gp

UNITS = st.floats(-6.0, 6.0).map(lambda power: 10.0**power)


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings(action="error"):
        yield


def observed(n: int, d: int, seed: int, unit: float) -> tuple[Tensor, Tensor]:
    """Return `n x d` points of the unit cube with something smooth and noisy there, `n x 1`."""
    generator = torch.Generator().manual_seed(seed)
    U = torch.rand(n, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    return U, unit * (3 + torch.sin(4 * U.sum(-1, keepdim=True)) + 0.1 * noise)


def tolerance(process: GP) -> float:
    """Return 1e-8, or more for Matern-1/2, whose kink shows the root of a rounding error where points coincide."""
    return 1e-6 if process.kernel == "matern12" else 1e-8


def assert_same_posterior(process: GP, model: SingleTaskGP, X: Tensor) -> None:
    """Assert that posteriors of f are the same up to a small part of the standard deviation of the prior."""
    small = tolerance(process)
    prior = process.standardisation.scale * process.deviation * process.at.outputscale**0.5
    mean, covariance = process.posterior_moments(X)
    with torch.no_grad():
        posterior = model.posterior(X)
        there = posterior.distribution.covariance_matrix
    torch.testing.assert_close(posterior.mean.squeeze(-1), mean, rtol=small, atol=small * prior)
    torch.testing.assert_close(there, covariance, rtol=small, atol=small * prior**2)


def answered_by_gpytorch(process: GP) -> SingleTaskGP:
    """Return a process as BoTorch's model, without our closed form."""
    same = process.absorbed
    return single_task_gp(same.U, same.y, same.standardisation, same.kernel, same.at)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    kernel=st.sampled_from(sorted(CORRELATIONS)),
    priors=st.sampled_from([("botorch", True), ("botorch-0.9", False), ("conformal", True), ("none", False)]),
    n=st.integers(2, 14),
    d=st.integers(1, 5),
    unit=UNITS,
    width=UNITS,
    deviation=st.sampled_from([1.0, 1.7]),
    seed=st.integers(0, 99),
)
def test_the_posterior_of_a_fit_is_the_same_in_any_units(
    kernel: str, priors: tuple[str, bool], n: int, d: int, unit: float, width: float, deviation: float, seed: int
) -> None:
    name, ard = priors
    U, Y = observed(n, d, seed, unit)
    low = torch.linspace(-1.0, 1.0, d, dtype=torch.float64) * width
    bounds = torch.stack([low, low + width])
    process = fit_process(low + width * U, Y, bounds, ModelOptions(kernel=kernel, priors=name, ard=ard))
    process, X = replace(process, deviation=deviation), low + width * observed(6, d, seed + 100, 1.0)[0].view(2, 3, d)
    for model in (process.as_botorch(), answered_by_gpytorch(process)):
        assert_same_posterior(process, model, X)
        assert_same_posterior(process, model, X[:, :1])
    with torch.no_grad():
        noisy = model.posterior(X, observation_noise=True).distribution.covariance_matrix.diagonal(dim1=-2, dim2=-1)
    variance = process.posterior_moments(X, joint=False)[1] + process.noise_variance
    prior = process.standardisation.scale**2 * process.at.outputscale
    torch.testing.assert_close(noisy, variance, rtol=tolerance(process), atol=tolerance(process) * prior)


def mean_and_sd(model: SingleTaskGP, X: Tensor, noisy: bool = False) -> tuple[Tensor, Tensor]:
    """Return posterior means and standard deviations at points."""
    posterior = model.posterior(X, observation_noise=noisy)
    return posterior.mean, posterior.variance.sqrt()


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("shape", [(1,), (3, 1), (2, 3, 1), (3, 2)])
@pytest.mark.parametrize("kernel", sorted(CORRELATIONS))
def test_its_posterior_and_gradient_are_gpytorchs(kernel: str, shape: tuple[int, ...], noisy: bool) -> None:
    process, X = made(kernel), uniform(*shape, seed=3).requires_grad_()
    found = []
    for model in (process.as_botorch(), answered_by_gpytorch(process)):
        mean, sd = mean_and_sd(model, X, noisy)
        value = (mean.sin() * sd).sum()
        found.append((mean.detach(), sd.detach(), *torch.autograd.grad(value, X)))
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("kernel", sorted(CORRELATIONS))
def test_its_posterior_can_be_differentiated_twice(kernel: str, q: int) -> None:
    model, X = made(kernel).as_botorch(), uniform(2, q, seed=3).requires_grad_()
    assert torch.autograd.gradcheck(lambda X: mean_and_sd(model, X), X)
    assert torch.autograd.gradgradcheck(lambda X: mean_and_sd(model, X), X)


def test_a_third_derivative_is_refused() -> None:
    X = uniform(1, seed=3).requires_grad_()
    value = mean_and_sd(made().as_botorch(), X)[0].sum()
    (gradient,) = torch.autograd.grad(value, X, create_graph=True)
    with pytest.raises(RuntimeError, match="twice, not three times"):
        torch.autograd.grad(gradient.square().sum(), X, create_graph=True)


def test_gpytorch_answers_once_it_is_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    X, where = uniform(3, seed=4), uniform(2, 1, seed=5)
    asked = []
    ours = ProcessModel.posterior
    monkeypatch.setattr(ProcessModel, "posterior", lambda *some, **others: asked.append(1) or ours(*some, **others))

    def closed(model: SingleTaskGP) -> bool:
        asked.clear()
        model.posterior(where)
        return bool(asked)

    model = made().as_botorch()
    assert closed(model)
    assert closed(model.eval())
    assert not closed(model.condition_on_observations(X, X[:, :1]))
    assert not closed(model.fantasize(X, SobolQMCNormalSampler(Size([2]), seed=0)))
    assert not closed(deepcopy(made().as_botorch()))
    assert closed(model)
    model.train()
    model.covar_module.outputscale = 3.0
    model.eval()
    assert not closed(model)
    model = made().as_botorch()
    model.set_train_data(targets=model.train_targets + 1)
    assert not closed(model)


@pytest.mark.parametrize("kernel", sorted(CORRELATIONS))
def test_the_noise_of_each_observation_is_kept_however_small(kernel: str) -> None:
    process = made(kernel, known=True)
    process = replace(process, at=process.at._replace(noise=process.at.noise * 1e-7))
    model = process.as_botorch()
    assert isinstance(model.likelihood, FixedNoiseGaussianLikelihood)
    assert_same_posterior(process, model, uniform(2, 3, seed=1))
    told = made(kernel).condition_on_mean(uniform(2, seed=8))
    assert_same_posterior(told, told.as_botorch(), uniform(4, seed=1))


def test_noise_that_is_known_to_be_none_stays_none() -> None:
    X, Y = uniform(4), uniform(4)[:, :1]
    one = torch.ones(1, dtype=torch.float64)
    process = conditioned(X, Y, BOUNDS, "matern32", Hyperparameters(0.1, 0 * one, 1.5, 0.4 * one))
    assert_same_posterior(process, process.as_botorch(), uniform(2, 3, seed=1))


def test_it_is_botorchs_model_with_data_in_the_problems_units() -> None:
    process = made()
    model = process.as_botorch()
    assert isinstance(model, SingleTaskGP)
    assert not model.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}
    torch.testing.assert_close(model.train().train_inputs[0], process.standardisation.points(process.U))
    targets, _ = model.outcome_transform.untransform(model.train_targets.unsqueeze(-1))
    torch.testing.assert_close(targets.squeeze(-1), process.standardisation.observations(process.y))
    torch.testing.assert_close(model.likelihood.noise, process.at.noise)


def test_conditioned_on_more_data_it_is_our_conditioned_process() -> None:
    process, X = made(), uniform(3, seed=4)
    Y, where = 1000.0 + X.sum(-1, keepdim=True), uniform(2, 3, seed=5)
    model = process.as_botorch()
    model.posterior(where)  # BoTorch asks for caches that this fills
    assert_same_posterior(process.condition_on_observations(X, Y), model.condition_on_observations(X, Y), where)


@pytest.mark.parametrize("known", [False, True])
def test_fantasies_have_the_posterior_given_them(known: bool) -> None:
    process, X, where = made(known=known), uniform(2, seed=4), uniform(3, seed=5)
    model = process.as_botorch()
    fantasies = model.fantasize(X, SobolQMCNormalSampler(Size([4]), seed=0))
    posterior = fantasies.posterior(where)
    assert posterior.mean.shape == (4, 3, 1)
    before = process.posterior_moments(where, joint=False)[1]
    assert (posterior.variance.squeeze(-1) < before).all()
    if not known:
        told = process.condition_on_observations(X, uniform(2)[:, :1])  # whatever the values
        torch.testing.assert_close(posterior.variance[0].squeeze(-1).detach(), told.posterior_moments(where, False)[1])


@pytest.mark.slow
def test_the_knowledge_gradient_and_two_steps_ahead_run_through_it() -> None:
    model = made().as_botorch()
    ahead = qMultiStepLookahead(model, batch_sizes=[1, 1], num_fantasies=[2, 2])
    # BoTorch adds the points after fantasies itself for the knowledge gradient alone.
    for utility, q in ((qKnowledgeGradient(model, num_fantasies=3), 1), (ahead, ahead.get_augmented_q_batch_size(1))):
        with warnings.catch_warnings(action="ignore"):
            X, value = optimize_acqf(
                utility, BOUNDS, q=q, num_restarts=2, raw_samples=8, options={"maxiter": 3, "seed": 0}
            )
        assert X.shape == (1, 2)
        assert ((BOUNDS[0] <= X) & (BOUNDS[1] >= X)).all()
        assert torch.isfinite(value)

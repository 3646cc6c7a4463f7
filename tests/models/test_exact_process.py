"""What an exact process says, against GPyTorch's model of the same numbers."""

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import qUpperConfidenceBound
from botorch.sampling import SobolQMCNormalSampler
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_operator.utils.errors import NotPSDError
from torch import Size, Tensor

from plumbline.errors import PlumblineError
from plumbline.models.exact_gpytorch import gpytorch_model
from plumbline.models.exact_process import (
    NOISE_FLOOR,
    ExactProcess,
    FitStoppedEarlyWarning,
    ModelOptions,
    conditioned,
    fit_process,
)
from plumbline.models.marginal_likelihood import Hyperparameters
from plumbline.options import parse

BOUNDS = torch.tensor([[-3.0, 100.0], [5.0, 300.0]], dtype=torch.float64)
CHOICES = [
    ModelOptions(kernel=kernel, priors=priors, ard=ard)
    for kernel in ("matern52", "rbf")
    for priors in ("botorch", "botorch-0.9", "conformal", "none")
    for ard in (True, False)
    if ard or priors != "botorch"
]


def uniform(*shape: int, seed: int = 0) -> Tensor:
    U = torch.rand(*shape, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U


def data(n: int = 9) -> tuple[Tensor, Tensor]:
    X = uniform(n)
    U = (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    return X, 1000.0 + 50.0 * torch.sin(6 * U[:, :1]) + 20.0 * U[:, 1:]


def made(kernel: str = "matern52", known: bool = False, lengthscales: int = 2, n: int = 9) -> ExactProcess:
    noise = torch.linspace(0.01, 0.2, n if known else 1, dtype=torch.float64)
    lengthscale = torch.linspace(0.3, 0.6, lengthscales, dtype=torch.float64)
    return conditioned(*data(n), BOUNDS, kernel, Hyperparameters(0.2, noise, 1.7, lengthscale))


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("lengthscales", [1, 2])
@pytest.mark.parametrize("known", [False, True])
def test_moments_are_gpytorchs(kernel: str, lengthscales: int, known: bool) -> None:
    process = made(kernel, known, lengthscales)
    X = uniform(3, 4, seed=1)
    expected = gpytorch_model(process).posterior(X)
    mean, covariance = process.moments(X)
    torch.testing.assert_close(mean, expected.mean.squeeze(-1).detach(), rtol=1e-9, atol=1e-8)
    torch.testing.assert_close(covariance, expected.covariance_matrix.detach(), rtol=1e-6, atol=1e-5)
    mean, variance = process.moments(X, joint=False)
    torch.testing.assert_close(variance, expected.variance.squeeze(-1).detach(), rtol=1e-6, atol=1e-5)
    if not known:
        noisy = gpytorch_model(process).posterior(X, observation_noise=True)
        torch.testing.assert_close(
            process.model.posterior(X, observation_noise=True).variance, noisy.variance.detach(), rtol=1e-6, atol=1e-5
        )


def test_moments_at_points_are_the_same() -> None:
    process = replace(made(), deviation=1.7)
    X = uniform(6, seed=2)
    mean, variance = process.moments(X.unsqueeze(-2), joint=False)
    seen = process.at_points(X)
    torch.testing.assert_close(seen.mean, mean.squeeze(-1))
    torch.testing.assert_close(seen.sd, variance.squeeze(-1).sqrt())


@settings(max_examples=30, deadline=None)
@given(kernel=st.sampled_from(["matern52", "rbf"]), known=st.booleans(), near=st.booleans(), seed=st.integers(0, 99))
def test_gradients_of_moments(kernel: str, known: bool, near: bool, seed: int) -> None:
    process = replace(made(kernel, known), deviation=0.8)
    X = data()[0][:4] + 1e-6 if near else uniform(4, seed=seed)
    weights = torch.randn(2, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    leaf = X.clone().requires_grad_()
    mean, variance = process.moments(leaf.unsqueeze(-2), joint=False)
    value = weights[0] @ mean.squeeze(-1) + weights[1] @ variance.squeeze(-1).sqrt()
    (slope,) = torch.autograd.grad(value, leaf)
    found = process.at_points(X).pull_back(*weights)
    torch.testing.assert_close(found, slope, rtol=1e-7, atol=1e-9 * float(slope.abs().max()))


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("known", [False, True])
def test_joint_moments_of_batches_are_the_same(kernel: str, known: bool) -> None:
    process = replace(made(kernel, known), deviation=1.7)
    X = uniform(4, 3, seed=2)
    mean, covariance = process.moments(X)
    seen = process.at_batches(X)
    torch.testing.assert_close(seen.mean, mean)
    torch.testing.assert_close(seen.root @ seen.root.mT, covariance)
    assert torch.equal(seen.root, seen.root.tril())


@settings(max_examples=30, deadline=None)
@given(
    kernel=st.sampled_from(["matern52", "rbf"]),
    known=st.booleans(),
    lengthscales=st.sampled_from([1, 2]),
    near=st.booleans(),
    q=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_gradients_of_joint_moments(kernel: str, known: bool, lengthscales: int, near: bool, q: int, seed: int) -> None:
    process = replace(made(kernel, known, lengthscales), deviation=0.8)
    X = uniform(3, q, seed=seed)
    if near:
        X[:, 0] = data()[0][:3] + 1e-4
    to_mean, to_root = normal(3, q, seed=seed), normal(3, q, q, seed=seed + 1)
    leaf = X.clone().requires_grad_()
    mean, covariance = process.moments(leaf)
    root = torch.linalg.cholesky(covariance)
    (slope,) = torch.autograd.grad((to_mean * mean).sum() + (to_root * root).sum(), leaf)
    # Rounding errors of a covariance count by its least conditional variance.
    share = 1e-15 / float(process.at_batches(X).factor.diagonal(dim1=-2, dim2=-1).min()) ** 2
    found = process.at_batches(X).pull_back(to_mean, to_root)
    torch.testing.assert_close(found, slope, rtol=1e-7, atol=(1e-9 + 10 * share) * float(slope.abs().max()))


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
def test_a_batch_with_a_point_twice_has_a_factor(kernel: str) -> None:
    process = made(kernel)
    X = uniform(3, 3, seed=2)
    X[1:, 2] = X[1:, 0]
    with pytest.warns(match="not p.d."):
        seen = process.at_batches(X)
    torch.testing.assert_close(seen.root @ seen.root.mT, process.moments(X)[1], rtol=1e-6, atol=1e-6 * 50**2)
    assert torch.isfinite(seen.pull_back(normal(3, 3, seed=0), normal(3, 3, 3, seed=1))).all()


def test_values_that_it_is_told_leave_the_means_and_take_their_covariances_away() -> None:
    process, B, X = replace(made(), deviation=1.3), uniform(3, seed=4), uniform(5, 2, seed=5)
    told = process.told(B)
    mean, covariance = process.moments(torch.cat([B.expand(5, -1, -1), X], -2))
    cross, among = covariance[:, 3:, :3], covariance[:, :3, :3]
    seen = told.at_batches(X)
    torch.testing.assert_close(seen.mean, mean[:, 3:])
    left = covariance[:, 3:, 3:] - cross @ torch.linalg.solve(among, cross.mT)
    torch.testing.assert_close(seen.root @ seen.root.mT, left, rtol=1e-6, atol=1e-6)
    # Where f moves by L z at B, its mean moves by half z elsewhere.
    scale = process.units.scale * process.deviation
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
    whole = conditioned(X, Y, BOUNDS, "rbf", made("rbf").at, part.units)
    here, there = (one.moments(uniform(5, seed=3)) for one in (part.joined(X[9:], Y[9:]), whole))
    torch.testing.assert_close(here[0], there[0])
    torch.testing.assert_close(here[1], there[1])


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_factors_are_those_of_a_dense_solve(options: ModelOptions) -> None:
    process = fit_process(*data(), BOUNDS, options)
    covariance = process.prior(process.U, process.U) + process.noise * torch.eye(9, dtype=torch.float64)
    residual = process.y - process.at.constant
    torch.testing.assert_close(process.root @ process.root.mT, covariance)
    torch.testing.assert_close(process.root @ process.whitened, residual)
    torch.testing.assert_close(covariance @ process.a, residual)
    torch.testing.assert_close(process.precision, torch.linalg.inv(covariance).diagonal(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_predicts_in_raw_units(options: ModelOptions) -> None:
    X, Y = data(8)
    process = fit_process(X, Y, BOUNDS, options)
    mean, _ = process.moments(X)
    assert mean.dtype == torch.float64
    assert (mean - Y[:, 0]).abs().max() < 0.5 * Y.std()
    assert process.noise_variance == pytest.approx(float(process.noise) * float(Y.var()))


def test_is_equivariant_to_units() -> None:
    X, Y = data()
    here = fit_process(X, Y, BOUNDS, ModelOptions()).moments(X)[0]
    there = fit_process(X * 10 - 3, Y * 1e3 + 7, BOUNDS * 10 - 3, ModelOptions()).moments(X * 10 - 3)[0]
    torch.testing.assert_close(there, here * 1e3 + 7, rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("priors", ["botorch", "botorch-0.9", "conformal", "none"])
def test_noise_stays_in_its_bounds_when_fitted_to_noise(priors: str) -> None:
    X, _ = data(20)
    Y = torch.randn(20, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    floors = {"botorch": 1e-4, "botorch-0.9": 1e-4, "conformal": 5e-4, "none": NOISE_FLOOR}
    low, high = floors[priors], 0.5 if priors == "conformal" else torch.inf
    noise = float(fit_process(X, Y, BOUNDS, ModelOptions(priors=priors)).noise)
    assert low * (1 - 1e-6) <= noise <= high * (1 + 1e-6)


def test_raw_inputs_have_lengthscales_in_their_own_units() -> None:
    """As if the box were the unit cube: a unit is short beside a side of 200, and the prior wants it no longer."""
    X, Y = data()
    raw = fit_process(X, Y, BOUNDS, ModelOptions(priors="botorch-0.9", inputs="raw"))
    unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    same = fit_process(X, Y, unit, ModelOptions(priors="botorch-0.9"))
    assert torch.equal(raw.lengthscale, same.lengthscale)
    assert torch.equal(raw.moments(X)[0], same.moments(X)[0])
    cube = fit_process(X, Y, BOUNDS, ModelOptions(priors="botorch-0.9"))
    assert not torch.allclose(raw.moments(uniform(3, seed=2))[0], cube.moments(uniform(3, seed=2))[0], rtol=1e-3)
    torch.testing.assert_close(raw.lengthscale_in(BOUNDS), raw.lengthscale / (BOUNDS[1] - BOUNDS[0]))
    assert torch.equal(cube.lengthscale_in(BOUNDS), cube.lengthscale)


def test_lengthscales_stay_above_their_bound() -> None:
    X = uniform(30)
    Y = torch.sign(torch.sin(200 * X.sum(-1, keepdim=True)))
    assert (fit_process(X, Y, BOUNDS, ModelOptions()).lengthscale >= 0.025).all()


def test_a_known_lengthscale_is_kept() -> None:
    process = fit_process(*data(), BOUNDS, ModelOptions(priors="none", ard=False, lengthscale=0.123))
    assert process.lengthscale.tolist() == [0.123]


@pytest.mark.parametrize("options", CHOICES, ids=str)
@pytest.mark.parametrize("case", ["one", "equal", "doubled"])
def test_awkward_data(options: ModelOptions, case: str) -> None:
    X, Y = data(1 if case == "one" else 6)
    if case == "equal":
        Y = torch.ones_like(Y)
    if case == "doubled":
        X, Y = X.repeat(3, 1), Y.repeat(3, 1)
    process = fit_process(X, Y, BOUNDS, options)
    mean, covariance = process.moments(uniform(4, seed=8))
    assert torch.isfinite(mean).all()
    assert (covariance.diagonal(dim1=-2, dim2=-1) > 0).all()


@pytest.mark.parametrize("d", [1, 100])
def test_any_dimension(d: int) -> None:
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    X = torch.rand(12, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    process = fit_process(X, X.sum(-1, keepdim=True), bounds, ModelOptions())
    assert torch.isfinite(process.moments(X)[0]).all()


def test_far_from_the_data_it_is_the_prior() -> None:
    process = made("rbf")
    seen = process.at_points(BOUNDS[1:] + 1e6)
    assert float(seen.location) == pytest.approx(process.at.constant)
    assert float(seen.spread) == pytest.approx(process.at.outputscale**0.5)
    assert torch.equal(seen.pull_back(torch.ones(1).double(), torch.ones(1).double()), torch.zeros(1, 2).double())


def test_no_factor_is_an_error() -> None:
    process = made(n=4)
    broken = replace(process, at=process.at._replace(noise=torch.tensor([-5.0], dtype=torch.float64)))
    with pytest.raises(NotPSDError), pytest.warns(match="not p.d."):
        _ = broken.root


def test_an_optimiser_that_stops_early_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbline.models import exact_process

    real = exact_process.maximise

    def stubborn(*given):
        raw, _ = real(*given)
        return raw, ["ABNORMAL: "]

    monkeypatch.setattr(exact_process, "maximise", stubborn)
    with pytest.warns(FitStoppedEarlyWarning, match="ABNORMAL"):
        fit_process(*data(), BOUNDS, ModelOptions())


def test_options_are_checked() -> None:
    with pytest.raises(PlumblineError, match="ard: true"):
        parse(ModelOptions, {"ard": False}, "model")
    with pytest.raises(PlumblineError, match="matern52"):
        parse(ModelOptions, {"kernel": "matern32"}, "model")


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
        seen = process.told(X).at_batches(batches)
    assert torch.isfinite(seen.pull_back(normal(8, 3, seed=0), normal(8, 3, 3, seed=1))).all()
    torch.testing.assert_close(seen.mean, process.moments(batches)[0], rtol=1e-4, atol=1e-2)

import numpy as np
import pytest
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior, LogNormalPrior

from plumbline.errors import PlumblineError
from plumbline.models.exact import (
    NOISE_FLOOR,
    ModelOptions,
    fit_gp,
    make_gp,
    make_kernel,
    make_likelihood,
    whitened_residuals,
)
from plumbline.options import parse

BOUNDS = torch.tensor([[-3.0, 100.0], [5.0, 300.0]], dtype=torch.float64)
CHOICES = [
    ModelOptions(kernel=kernel, priors=priors, ard=ard)
    for kernel in ("matern52", "rbf")
    for priors in ("botorch", "conformal", "none")
    for ard in (True, False)
    if ard or priors != "botorch"
]


def data(n: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    U = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U
    return X, 1000.0 + 50.0 * torch.sin(6 * U[:, :1]) + 20.0 * U[:, 1:]


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_kernel_is_the_one_asked_for(options: ModelOptions) -> None:
    kernel = make_kernel(3, options)
    base = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    assert type(base) is (RBFKernel if options.kernel == "rbf" else MaternKernel)
    if options.kernel == "matern52":
        assert base.nu == 2.5
    assert base.lengthscale.numel() == (3 if options.ard else 1)
    assert isinstance(kernel, ScaleKernel) == (options.priors != "botorch")


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
def test_conformal_priors_are_the_papers(kernel: str) -> None:
    options = ModelOptions(kernel=kernel, priors="conformal")
    covariance = make_kernel(2, options)
    lengthscale, scale = covariance.base_kernel.lengthscale_prior, covariance.outputscale_prior
    assert isinstance(lengthscale, GammaPrior)
    assert (lengthscale.concentration.item(), lengthscale.rate.item()) == pytest.approx((3.0, 6.0))
    assert isinstance(scale, GammaPrior)
    assert (scale.concentration.item(), scale.rate.item()) == pytest.approx((2.0, 0.15))
    noise = make_likelihood(options).noise_covar.raw_noise_constraint
    assert (noise.lower_bound.item(), noise.upper_bound.item()) == pytest.approx((5e-4, 0.5))


def test_botorchs_priors_scale_with_the_dimension() -> None:
    small, large = (make_kernel(dim, ModelOptions()).lengthscale_prior for dim in (1, 16))
    assert isinstance(small, LogNormalPrior)
    assert (large.loc - small.loc).item() == pytest.approx(np.log(16) / 2)


def test_maximum_likelihood_has_no_priors_and_a_noise_floor() -> None:
    options = ModelOptions(priors="none")
    kernel, likelihood = make_kernel(2, options), make_likelihood(options)
    assert not list(kernel.named_priors())
    assert not list(likelihood.named_priors())
    constraint = likelihood.noise_covar.raw_noise_constraint
    assert isinstance(constraint, GreaterThan)
    assert constraint.lower_bound.item() == pytest.approx(NOISE_FLOOR)


@pytest.mark.parametrize("priors", ["botorch", "conformal", "none"])
def test_noise_stays_in_its_bounds_when_fitted_to_noise(priors: str) -> None:
    X, _ = data(20)
    Y = torch.randn(20, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    model = fit_gp(X, Y, BOUNDS, ModelOptions(priors=priors))
    low, high = {"botorch": (1e-4, torch.inf), "conformal": (5e-4, 0.5), "none": (NOISE_FLOOR, torch.inf)}[priors]
    assert low * (1 - 1e-6) <= model.likelihood.noise.item() <= high * (1 + 1e-6)


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_predicts_in_raw_units(options: ModelOptions) -> None:
    X, Y = data(8)
    model = fit_gp(X, Y, BOUNDS, options)
    posterior = model.posterior(X)
    assert posterior.mean.dtype == torch.float64
    assert (posterior.mean - Y).abs().max() < 0.5 * Y.std()
    far = model.posterior(X, observation_noise=True).variance - posterior.variance
    noise = model.likelihood.noise * Y.var()
    torch.testing.assert_close(far, noise.expand_as(far).detach(), rtol=1e-6, atol=1e-8)


def test_is_equivariant_to_units() -> None:
    X, Y = data()
    here = fit_gp(X, Y, BOUNDS, ModelOptions()).posterior(X)
    there = fit_gp(X * 10 - 3, Y * 1e3 + 7, BOUNDS * 10 - 3, ModelOptions()).posterior(X * 10 - 3)
    torch.testing.assert_close(there.mean, here.mean * 1e3 + 7, rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_whitened_residuals_against_a_dense_solve(options: ModelOptions) -> None:
    X, Y = data()
    model = make_gp(X, Y, BOUNDS, options).eval()
    L, e = (part.detach().numpy() for part in whitened_residuals(model))
    U = ((X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])).double()
    K = model.covar_module(U).to_dense().detach().numpy() + model.likelihood.noise.item() * np.eye(len(X))
    y = ((Y - Y.mean()) / Y.std()).flatten().numpy() - model.mean_module.constant.item()
    np.testing.assert_allclose(np.triu(L, 1), 0)
    np.testing.assert_allclose(L @ L.T, K, atol=1e-12)
    np.testing.assert_allclose(L @ e, y, atol=1e-12)
    assert e @ e == pytest.approx(y @ np.linalg.solve(K, y))


def test_fit_finds_a_higher_marginal_likelihood_than_it_starts_from() -> None:
    X, Y = data(15)
    options = ModelOptions(priors="none")

    def log_likelihood(model) -> float:
        L, e = whitened_residuals(model.eval())
        return float(-0.5 * e @ e - L.diagonal().log().sum())

    assert log_likelihood(fit_gp(X, Y, BOUNDS, options)) > log_likelihood(make_gp(X, Y, BOUNDS, options)) + 1


def test_botorchs_priors_want_ard() -> None:
    with pytest.raises(PlumblineError, match="ard: true") as caught:
        parse(ModelOptions, {"ard": False}, "config")
    assert "\n" not in str(caught.value)
    assert parse(ModelOptions, {"ard": False, "priors": "none"}, "config").ard is False


@pytest.mark.parametrize(("field", "value"), [("kernel", "matern"), ("priors", "gamma")])
def test_allowed_values_are_named(field: str, value: str) -> None:
    with pytest.raises(PlumblineError, match=rf"{field}: .*(matern52|botorch).*got '{value}'"):
        parse(ModelOptions, {field: value}, "config")

"""What fitted exact processes are like; that the optimum is BoTorch's is tested beside the marginal likelihood."""

from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from exact_cases import BOUNDS, CHOICES, data, uniform

from plumbline.models.gp import fit as exact_fit
from plumbline.models.gp.fit import NOISE_FLOOR, FitStoppedEarlyWarning, ModelOptions, fit_each, fit_process
from plumbline.models.gp.maximum import Maximum


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_predicts_in_raw_units(options: ModelOptions) -> None:
    X, Y = data(8)
    process = fit_process(X, Y, BOUNDS, options)
    mean, _ = process.posterior_moments(X)
    assert mean.dtype == torch.float64
    assert (mean - Y[:, 0]).abs().max() < 0.5 * Y.std()
    assert process.noise_variance == pytest.approx(float(process.noise) * float(Y.var()))


def test_is_equivariant_to_units() -> None:
    X, Y = data()
    here = fit_process(X, Y, BOUNDS, ModelOptions()).posterior_moments(X)[0]
    there = fit_process(X * 10 - 3, Y * 1e3 + 7, BOUNDS * 10 - 3, ModelOptions()).posterior_moments(X * 10 - 3)[0]
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
    assert torch.equal(raw.posterior_moments(X)[0], same.posterior_moments(X)[0])
    cube = fit_process(X, Y, BOUNDS, ModelOptions(priors="botorch-0.9"))
    assert not torch.allclose(
        raw.posterior_moments(uniform(3, seed=2))[0], cube.posterior_moments(uniform(3, seed=2))[0], rtol=1e-3
    )
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
    mean, covariance = process.posterior_moments(uniform(4, seed=8))
    assert torch.isfinite(mean).all()
    assert (covariance.diagonal(dim1=-2, dim2=-1) > 0).all()


@pytest.mark.parametrize("d", [1, 100])
def test_any_dimension(d: int) -> None:
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    X = torch.rand(12, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    process = fit_process(X, X.sum(-1, keepdim=True), bounds, ModelOptions())
    assert torch.isfinite(process.posterior_moments(X)[0]).all()


def test_an_optimiser_that_stops_early_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    real = exact_fit.maximise

    def stubborn(*given):
        return [replace(maximum, failed=["ABNORMAL: "]) for maximum in real(*given)]

    monkeypatch.setattr(exact_fit, "maximise", stubborn)
    with pytest.warns(FitStoppedEarlyWarning, match="ABNORMAL"):
        fit_process(*data(), BOUNDS, ModelOptions())


@pytest.mark.parametrize("options", [*CHOICES, ModelOptions(inputs="raw", priors="none")], ids=str)
def test_data_sets_at_once_are_fitted_as_each_is_alone_to_the_last_bit(options: ModelOptions) -> None:
    X, Y = data(9)
    rows = torch.stack([torch.arange(9)[torch.arange(9) != i] for i in range(9)])
    for at_once, own in zip(fit_each(X[rows], Y[rows], BOUNDS, options), rows, strict=True):
        alone = fit_process(X[own], Y[own], BOUNDS, options)
        assert at_once is not None
        assert at_once.standardisation.scale == alone.standardisation.scale
        assert torch.equal(at_once.posterior_moments(X)[0], alone.posterior_moments(X)[0])


def test_larger_stacks_are_fitted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data(8)
    sets = X.expand(5, -1, -1), torch.stack([Y * (1 + i) - i for i in range(5)])
    whole = fit_each(*sets, BOUNDS, ModelOptions())
    sizes, real = [], exact_fit.maximise

    def noted(objective, unknowns, m, near):
        sizes.append(m)
        return real(objective, unknowns, m, near)

    monkeypatch.setattr(exact_fit, "ELEMENTS", 2 * 8**2)
    monkeypatch.setattr(exact_fit, "maximise", noted)
    for one, other in zip(fit_each(*sets, BOUNDS, ModelOptions()), whole, strict=True):
        assert torch.equal(one.lengthscale, other.lengthscale)
    assert sizes == [2, 2, 1]


def test_a_data_set_without_a_maximum_is_none_at_once_and_an_error_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data(8)
    real = exact_fit.maximise
    monkeypatch.setattr(exact_fit, "maximise", lambda *given: [Maximum(), *real(*given)[1:]])
    first, second = fit_each(torch.stack([X, X]), torch.stack([Y, Y]), BOUNDS, ModelOptions())
    assert first is None
    assert second is not None
    with pytest.raises(ModelFittingError, match="NaN or infinite"):
        fit_process(X, Y, BOUNDS, ModelOptions())

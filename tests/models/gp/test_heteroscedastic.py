import numpy as np
import pytest
import torch
from torch import Tensor

from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.heteroscedastic import (
    VARIANCE_FLOOR,
    HeteroscedasticGP,
    fit_heteroscedastic,
    group,
    log_variance_estimate,
)

BOUNDS = torch.tensor([[-10.0], [10.0]], dtype=torch.float64)
OPTIONS = ModelOptions()


def noise_sd(X: Tensor) -> Tensor:
    """Return a noise that falls from 2.0 to 0.1 across the domain: `... x 1` in, `...` out."""
    return (0.3 - 0.15 * X.squeeze(-1)).exp().clamp(0.1, 2.0)


def truth(X: Tensor) -> Tensor:
    return 3 * torch.sin(X.squeeze(-1) / 2)


def replicated(places: int, replicates: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    X = torch.linspace(-10, 10, places, dtype=torch.float64).unsqueeze(-1).repeat(replicates, 1)
    eps = torch.randn(len(X), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return X, scale * (truth(X) + noise_sd(X) * eps).unsqueeze(-1)


@pytest.fixture(scope="module")
def model() -> HeteroscedasticGP:
    return fit_heteroscedastic(*replicated(25, 10), BOUNDS, OPTIONS)


def test_groups_by_exactly_equal_rows() -> None:
    X = torch.tensor([[1.0, 2], [0, 5], [1, 2], [1, 2 + 1e-15], [0, 5], [1, 2]], dtype=torch.float64)
    Y = torch.tensor([[1.0], [4], [2], [9], [8], [6]], dtype=torch.float64)
    groups = group(X, Y)
    assert groups.X.tolist() == [[0, 5], [1, 2], [1, 2 + 1e-15]]
    assert groups.size.tolist() == [2, 3, 1]
    assert groups.mean.tolist() == [6, 3, 9]
    assert groups.variance[:2].tolist() == [8, 7]  # (4 + 4) / 1 and (4 + 1 + 9) / 2
    assert groups.variance[2].isnan()
    assert groups.replicated.tolist() == [True, True, False]


@pytest.mark.parametrize("size", [2, 4, 10])
def test_log_variance_is_unbiased_in_simulation(size: int) -> None:
    draws = 3.0 * np.random.default_rng(0).standard_normal((200_000, size))
    variance = torch.from_numpy(draws.var(axis=1, ddof=1))
    estimate, error = log_variance_estimate(variance, torch.full((len(draws),), float(size), dtype=torch.float64))
    spread = error[0].sqrt().item()
    assert estimate.mean().item() == pytest.approx(np.log(9.0), abs=4 * spread / len(draws) ** 0.5)
    assert estimate.var().item() == pytest.approx(spread**2, rel=0.03)
    assert abs(variance.log().mean().item() - np.log(9.0)) > 0.1  # what the correction is for


def test_recovers_a_known_noise(model: HeteroscedasticGP) -> None:
    X = torch.linspace(-9, 9, 37, dtype=torch.float64).unsqueeze(-1)
    with torch.no_grad():
        log_ratio = (model.noise_variance(X) / noise_sd(X).square()).log()
    assert log_ratio.abs().mean() < 0.35
    assert log_ratio.abs().max() < 0.9


def test_recovers_the_function_better_where_there_is_less_noise(model: HeteroscedasticGP) -> None:
    X = torch.linspace(-9, 9, 37, dtype=torch.float64).unsqueeze(-1)
    with torch.no_grad():
        posterior = model.mean.model.posterior(X)
    errors = posterior.mean.squeeze(-1) - truth(X)
    sd = posterior.variance.sqrt().squeeze(-1)
    assert errors.abs().max() < 1.0
    assert (errors.abs() < 3.5 * sd).all()
    assert sd[:10].mean() > 3 * sd[-10:].mean()


def test_bounds_hold_the_noise_and_are_the_log_normals(model: HeteroscedasticGP) -> None:
    X = torch.linspace(-10, 10, 41, dtype=torch.float64).unsqueeze(-1)
    with torch.no_grad():
        low, mid, high = model.noise_variance_lower(X, 2), model.noise_variance(X), model.noise_variance(X, 2)
        posterior = model.log_noise.model.posterior(X)
    truly = noise_sd(X).square()
    assert ((low < truly) & (truly < high)).double().mean() > 0.85
    torch.testing.assert_close(mid.log(), posterior.mean.squeeze(-1))
    torch.testing.assert_close((high / low).log(), 4 * posterior.variance.sqrt().squeeze(-1))


def test_noise_has_the_batch_shape_of_its_points_and_gradients(model: HeteroscedasticGP) -> None:
    X = torch.zeros(5, 3, 1, dtype=torch.float64, requires_grad=True)
    noise = model.noise_variance(X)
    assert noise.shape == (5, 3)
    noise.sum().backward()
    assert (X.grad < 0).all()


def test_is_equivariant_to_units() -> None:
    here = fit_heteroscedastic(*replicated(8, 4), BOUNDS, OPTIONS)
    there = fit_heteroscedastic(*replicated(8, 4, scale=100.0), BOUNDS, OPTIONS)
    X = torch.linspace(-9, 9, 7, dtype=torch.float64).unsqueeze(-1)
    with torch.no_grad():
        torch.testing.assert_close(there.noise_variance(X), 1e4 * here.noise_variance(X), rtol=1e-3, atol=0)
        torch.testing.assert_close(
            there.mean.posterior_moments(X)[0], 100 * here.mean.posterior_moments(X)[0], rtol=1e-3, atol=0.1
        )


def test_means_of_replicates_are_seen_through_the_smoothed_noise_over_their_number() -> None:
    X, Y = replicated(6, 4)
    single = torch.tensor([[-9.5], [9.5]], dtype=torch.float64)
    X, Y = torch.cat([X, single]), torch.cat([Y, truth(single).unsqueeze(-1)])
    model = fit_heteroscedastic(X, Y, BOUNDS, OPTIONS)
    groups = group(X, Y)
    assert sorted(groups.size.tolist()) == [1, 1, 4, 4, 4, 4, 4, 4]
    with torch.no_grad():
        expected = model.noise_variance(groups.X) / groups.size
    torch.testing.assert_close(model.mean.at.noise * model.mean.standardisation.scale**2, expected)
    error = torch.polygamma(1, torch.full((6,), 1.5, dtype=torch.float64))
    torch.testing.assert_close(model.log_noise.at.noise * model.log_noise.standardisation.scale**2, error)


@pytest.mark.parametrize("repeats", [0, 3])
def test_fewer_than_two_replicated_places_mean_constant_noise(repeats: int) -> None:
    X, Y = replicated(12, 1)
    X, Y = torch.cat([X, X[:1].expand(repeats, 1)]), torch.cat([Y, Y[:1] + torch.arange(repeats).unsqueeze(-1)])
    model = fit_heteroscedastic(X, Y, BOUNDS, OPTIONS)
    plain = fit_process(X, Y, BOUNDS, OPTIONS)
    with torch.no_grad():
        torch.testing.assert_close(
            model.noise_variance(X[:3]), X.new_full((3,), plain.noise_variance), rtol=1e-9, atol=0
        )
        torch.testing.assert_close(model.mean.posterior_moments(X)[0], plain.posterior_moments(X)[0])
        assert torch.equal(model.noise_variance_lower(X, 2.0), model.noise_variance(X, 2.0))
    assert model.noise_variance(X.reshape(-1, 3, 1)[:2] if repeats else X[:6].reshape(2, 3, 1)).shape == (2, 3)


@pytest.mark.parametrize("places", [2, 5])
@pytest.mark.parametrize("priors", ["botorch", "conformal", "none"])
@pytest.mark.filterwarnings("error::linear_operator.utils.warnings.NumericalWarning")
def test_replicates_that_agree_leave_a_floor(places: int, priors: str) -> None:
    X = torch.linspace(-10, 10, places, dtype=torch.float64).unsqueeze(-1).repeat(4, 1)
    Y = truth(X).unsqueeze(-1)
    model = fit_heteroscedastic(X, Y, BOUNDS, ModelOptions(priors=priors))
    with torch.no_grad():
        noise = model.noise_variance(X) / Y.var()
        errors = model.mean.posterior_moments(X)[0] - Y[:, 0]
    assert torch.isfinite(noise).all()
    assert (noise < 10 * VARIANCE_FLOOR).all()
    assert errors.abs().max() < 0.1


def test_observations_that_are_all_equal() -> None:
    X, Y = replicated(3, 2)
    model = fit_heteroscedastic(X, torch.ones_like(Y), BOUNDS, OPTIONS)
    with torch.no_grad():
        assert torch.isfinite(model.noise_variance(X)).all()
        torch.testing.assert_close(model.mean.posterior_moments(X)[0], torch.ones_like(Y[:, 0]))

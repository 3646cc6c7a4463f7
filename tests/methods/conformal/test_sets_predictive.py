"""Conformal forecasts against refits, and their widths and volumes against grids."""

import math
from dataclasses import replace

import pytest
import torch
from gp_cases import cube, made_process, random_weights, refitted_scores
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.conformal.augmented import augment
from plumbline.methods.conformal.masses import acceptance, conformity_mass
from plumbline.methods.conformal.scores import quadratics
from plumbline.methods.conformal.sets import ConformalPredictive


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def forecast(
    b: int, n: int, m: int = 1, noise: float = 0.05, seed: int = 0, even: bool = False, scale: float = 1.0
) -> ConformalPredictive:
    """Forecasts of `b` points of the cube from processes of `n` data, one an outcome; units of y are `scale` of z."""
    systems = [augment(made_process(n, noise, seed + i), cube(b, seed=seed + 50)) for i in range(m)]
    weights = random_weights(b, 1, n, seed)
    if even:
        weights = torch.full_like(weights, 1 / (n + 1))
    mean = torch.cat([system.mean for system in systems], dim=-1).detach()
    sd = torch.cat([system.sd for system in systems], dim=-1).detach()
    if m == 1:
        mean, sd = mean.squeeze(-1), sd.squeeze(-1)
    return ConformalPredictive(scale * mean, scale * sd, quadratics(systems).detach(), weights)


@pytest.mark.parametrize("m", [1, 2])
def test_covers_is_algorithm_1_by_refits(m: int) -> None:
    n, alpha = 9, 0.3
    processes, U = [made_process(n, 0.05, seed=i) for i in range(m)], cube(1, seed=50)
    weights = random_weights(1, 1, n, 0)
    generator = torch.Generator().manual_seed(1)
    predictive = forecast(1, n, m)
    found, expected = [], []
    for _ in range(60):
        y = predictive.mean + 2 * predictive.sd * torch.randn(predictive.mean.shape, generator=generator)
        found.append(predictive.covers(y, alpha).item())
        with torch.no_grad():
            scores = sum(
                refitted_scores(process, U[0], label) for process, label in zip(processes, y.reshape(m, 1), strict=True)
            )
        assert isinstance(scores, torch.Tensor)
        mass = weights[0, 0] @ (scores <= scores[-1]).double()
        expected.append(float(mass > alpha))
    assert found == expected
    assert 0 < sum(found) < 60, "the test must see both sides"


@settings(max_examples=25)
@given(st.integers(2, 15), st.floats(0.05, 0.6), st.integers(0, 100), st.floats(0.1, 50))
def test_covers_is_membership_of_the_exact_sets(n: int, alpha: float, seed: int, scale: float) -> None:
    predictive = forecast(3, n, seed=seed, scale=scale)
    for intervals in predictive.edges(alpha):
        assert all(low < high for low, high in intervals)
    for z in (-3.1, -1.07, -0.2, 0.01, 0.63, 1.9, 4.2):
        y = predictive.mean + z * predictive.sd
        edges = predictive.edges(alpha)
        inside = [any(low < value < high for low, high in rows) for value, rows in zip(y.tolist(), edges, strict=True)]
        assert predictive.covers(y, alpha).tolist() == [float(one) for one in inside]


@pytest.mark.parametrize("randomised", [False, True])
def test_width_is_the_measure_of_what_is_covered_in_units_of_y(randomised: bool) -> None:
    predictive, alpha = replace(forecast(1, 20, scale=7.0, even=True), randomised=randomised), 0.13
    span = 12 * predictive.sd.item()
    grid = predictive.mean + torch.linspace(-span / 2, span / 2, 20_001, dtype=torch.float64)
    many = ConformalPredictive(
        predictive.mean.expand(len(grid)),
        predictive.sd.expand(len(grid)),
        predictive.coefficients.expand(len(grid), -1, -1, -1),
        predictive.weights.expand(len(grid), -1, -1),
        randomised=randomised,
    )
    covered = many.covers(grid, alpha)
    measured = covered.mean().item() * span
    assert 0.1 * span < measured < 0.9 * span
    assert predictive.width(alpha).item() == pytest.approx(measured, abs=span / 20_000 * 10)
    if randomised:
        assert ((covered > 0) & (covered < 1)).any()
    else:
        (intervals,) = predictive.edges(alpha)
        assert sum(high - low for low, high in intervals) == pytest.approx(predictive.width(alpha).item())


@pytest.mark.parametrize("m", [1, 2])
def test_a_set_with_too_few_data_is_unbounded(m: int) -> None:
    predictive = forecast(2, 8, m, even=True)
    alpha = 0.9 / 9
    assert torch.isinf(predictive.width(alpha)).all()
    y = predictive.mean + 1e3 * predictive.sd
    assert predictive.covers(y, alpha).tolist() == [1.0, 1.0]
    assert torch.isfinite(predictive.width(0.5)).all()


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.2, 0.47])
def test_the_area_of_a_set_in_two_outcomes_is_that_on_a_grid(alpha: float) -> None:
    predictive = forecast(3, 15, 2, even=True, scale=3.0)
    side, reach = 801, 8.0
    axis = torch.linspace(-reach, reach, side, dtype=torch.float64)
    z = torch.cartesian_prod(axis, axis)[None, :, None, :].expand(3, -1, -1, -1)
    mass = conformity_mass(predictive.coefficients, predictive.weights, z).squeeze(1)
    area = (mass > alpha).double().mean(dim=-1) * (2 * reach) ** 2 * predictive.sd.prod(dim=-1)
    assert (area > 0).all()
    torch.testing.assert_close(predictive.width(alpha), area, rtol=0.05, atol=0.0)
    share = acceptance(mass, predictive.weights[:, 0, -1:], alpha, randomised=True)
    expected = share.mean(dim=-1) * (2 * reach) ** 2 * predictive.sd.prod(dim=-1)
    assert (expected < area).all()
    torch.testing.assert_close(replace(predictive, randomised=True).width(alpha), expected, rtol=0.05, atol=0.0)


def test_a_set_that_reaches_to_infinity_in_some_direction_is_unbounded() -> None:
    """Of a label far away, a datum whose residual grows even faster conforms less."""
    predictive = forecast(1, 9, 2, even=True)
    coefficients = predictive.coefficients.clone()
    # Along the first outcome's axis all data conform less than any label that is far enough.
    coefficients[..., 2] = 0.1
    unbounded = replace(predictive, coefficients=coefficients)
    far = predictive.mean + column(1e6, 0.0) * predictive.sd
    assert unbounded.covers(far, 0.2).item() == 1.0
    assert math.isinf(unbounded.width(0.2).item())


def test_randomised_coverage_is_the_coins() -> None:
    sharp = forecast(40, 10, even=True)
    randomised = replace(sharp, randomised=True)
    y = sharp.mean + torch.linspace(-2.5, 2.5, 40, dtype=torch.float64) * sharp.sd
    z = ((y - sharp.mean) / sharp.sd).reshape(-1, 1, 1, 1)
    mass = conformity_mass(sharp.coefficients, sharp.weights, z).reshape(-1)
    expected = acceptance(mass, sharp.weights[:, 0, -1], 0.25, randomised=True)
    torch.testing.assert_close(randomised.covers(y, 0.25), expected)
    assert (randomised.covers(y, 0.25) <= sharp.covers(y, 0.25)).all()
    assert ((expected > 0) & (expected < 1)).any()


def test_relaxed_coverage_tends_to_the_sharp_one() -> None:
    sharp = forecast(40, 10, even=True)
    y = sharp.mean + torch.linspace(-2.5, 2.5, 40, dtype=torch.float64) * sharp.sd
    exact = sharp.covers(y, 0.25)
    errors = [(replace(sharp, tau=tau).covers(y, 0.25) - exact).abs().mean().item() for tau in (1.0, 1e-1, 1e-4)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-2


def test_the_rest_is_the_gaussians() -> None:
    one, two = forecast(4, 8), forecast(4, 8, 2)
    y = one.mean + 0.3
    plain = GaussianPredictive(one.mean, one.sd)
    for name in ("cdf", "crps", "log_prob"):
        torch.testing.assert_close(getattr(one, name)(y), getattr(plain, name)(y))
    joint = torch.distributions.Normal(two.mean, two.sd).log_prob(two.mean + 0.3).sum(dim=-1)
    torch.testing.assert_close(two.log_prob(two.mean + 0.3), joint)


@pytest.mark.parametrize("m", [1, 3])
def test_shapes_are_those_of_the_points_for_any_number_of_outcomes(m: int) -> None:
    predictive = forecast(5, 8, m)
    y = predictive.mean + 0.1
    for result in (predictive.log_prob(y), predictive.covers(y, 0.3), predictive.width(0.3)):
        assert result.shape == (5,)

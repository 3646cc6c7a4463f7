"""LOCBO's label distribution against numerical integrals."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from torch import tensor

from plumbline.methods.localised.forecasts import LocalisedPredictive


def forecast(threshold: float = 0.1, alpha: float = 0.2, mean: float = 1.5, sd: float = 2.0) -> LocalisedPredictive:
    one = [tensor([value], dtype=torch.float64) for value in (mean, sd, threshold)]
    return LocalisedPredictive(one[0], one[1], one[2], alpha)


def at(value: float) -> torch.Tensor:
    return tensor([value], dtype=torch.float64)


def expectation(of: LocalisedPredictive, value: object, low: float = -60, high: float = 60) -> float:
    """Integrate a function of the label under the density, cut at its jumps."""
    half = of.labels.half_width.item() * of.model_sd.item()
    edges = [float(of.model_mean) - half, float(of.model_mean) + half]
    parts = [low, *sorted(min(max(edge, low), high) for edge in edges), high]
    density = lambda y: float(of.log_prob(at(y)).exp()) * value(y)  # type: ignore[operator]  # noqa: E731
    return sum(quad(density, a, b, limit=200)[0] for a, b in pairwise(parts) if b > a)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.floats(0.001, 0.95), st.floats(0.02, 0.9))
def test_density_cdf_and_moments_agree(threshold: float, alpha: float) -> None:
    of = forecast(threshold, alpha)
    assert expectation(of, lambda y: 1.0) == pytest.approx(1.0, abs=1e-6)
    assert expectation(of, lambda y: y) == pytest.approx(of.mean.item(), abs=1e-5)
    variance = expectation(of, lambda y: (y - 1.5) ** 2)
    assert variance**0.5 == pytest.approx(of.sd.item(), rel=1e-5)
    for y in (-2.0, 0.7, 1.5, 4.0):
        assert expectation(of, lambda _: 1.0, high=y) == pytest.approx(of.cdf(at(y)).item(), abs=1e-6)


@given(st.floats(1e-6, 0.999), st.floats(0.01, 0.95), st.floats(0.001, 0.999))
def test_quantiles_invert_the_cdf(threshold: float, alpha: float, p: float) -> None:
    of = forecast(threshold, alpha)
    assert of.cdf(of.quantile(at(p))).item() == pytest.approx(p, abs=1e-10)


def test_the_central_interval_of_its_level_is_the_set() -> None:
    """Eq. 26: `Q^-1(lambda / 2)` standard deviations to either side of the mean."""
    of = forecast(threshold=0.1, alpha=0.2)
    low, high = of.interval(0.2)
    assert (low.item(), high.item()) == pytest.approx((1.5 - 2 * 1.6448536, 1.5 + 2 * 1.6448536), abs=1e-6)
    assert of.width(0.2).item() == pytest.approx(4 * 1.6448536, abs=1e-6)
    assert of.width(0.05) > of.width(0.2) > of.width(0.5)
    inside, outside = at(1.5 + 2 * 1.64), at(1.5 + 2 * 1.65)
    assert of.covers(inside, 0.2).item() == 1
    assert of.covers(outside, 0.2).item() == 0


def test_without_correction_only_the_shape_differs_from_the_model() -> None:
    """At a threshold of alpha the set is the credible one."""
    of = forecast(threshold=0.2, alpha=0.2)
    assert of.width(0.2).item() == pytest.approx(2 * 2 * 1.2815516, abs=1e-6)


def test_a_threshold_of_one_is_the_mean_alone() -> None:
    of = forecast(threshold=1.0)
    assert of.width(0.2).item() == pytest.approx(0.0, abs=1e-12)
    assert of.covers(at(1.5 + 1e-9), 0.2).item() == 0
    assert of.covers(at(1.5), 0.2).item() == 1
    for value in (of.sd, of.cdf(at(2.0)), of.crps(at(2.0)), of.log_prob(at(2.0))):
        assert torch.isfinite(value).all()


@pytest.mark.parametrize("y", [30.0, -90.0, 1e4])
def test_the_log_density_is_finite_where_the_density_underflows(y: float) -> None:
    expected = math.log(0.3 / 0.2) - (y - 1.5) ** 2 / 8 - math.log(2 * math.sqrt(2 * math.pi))
    assert forecast(threshold=0.2, alpha=0.3).log_prob(at(y)).item() == pytest.approx(expected)


@pytest.mark.parametrize(("threshold", "kept", "covered"), [(-0.2, 1e-6, 1), (0.0, 1e-6, 1), (1.3, 1.0, 0)])
def test_beyond_zero_and_one_sets_are_everything_or_nothing(threshold: float, kept: float, covered: int) -> None:
    """Eq. 24 by the letter: scores lie in [0, 1]. The distribution is that of the threshold as it is kept."""
    of, clipped = forecast(threshold), forecast(kept)
    for y in (1.5, 1.6, 1e4):
        assert of.covers(at(y), 0.2).item() == covered
        assert of.cdf(at(y)).item() == clipped.cdf(at(y)).item()
    assert of.width(0.2).item() == clipped.width(0.2).item()
    assert of.sd.item() == clipped.sd.item()


@pytest.mark.parametrize("y", [-3.0, 1.5, 2.0, 9.0])
@pytest.mark.parametrize("threshold", [0.02, 0.2, 0.9])
def test_score_is_the_integral_that_defines_it(threshold: float, y: float) -> None:
    of = forecast(threshold)
    grid = np.linspace(-40, 43, 400_001)
    cdf = of.cdf(torch.from_numpy(grid)).numpy()
    exact = np.trapezoid((cdf - (grid >= y)) ** 2, grid)
    assert of.crps(at(y)).item() == pytest.approx(exact, rel=2e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("z", [-60.0, 60.0])
def test_the_score_of_what_is_out_of_reach_is_a_distance(z: float) -> None:
    """The level of such an observation is 0 or 1, whose quantiles are infinite."""
    of = forecast()
    far, farther = (of.crps(at(1.5 + 2 * times * z)).item() for times in (1, 2))
    assert farther - far == pytest.approx(120.0)

"""Stated power against fresh simulations of the test that comparisons use."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.statistics.inference import TAIL
from plumbline.statistics.means import Mean
from plumbline.statistics.power import (
    BLOCK,
    BLOCKS,
    MOST,
    Power,
    approximate_seeds,
    effects_of_resamples,
    seeds_interval,
)

STUDIES = 400


def quantiles(distribution: object, n: int = 4_000) -> np.ndarray:
    """Return a sample with the shape of a distribution, of mean zero and deviation one."""
    values = distribution.ppf((np.arange(n) + 0.5) / n)  # type: ignore[attr-defined]
    return (values - values.mean()) / values.std(ddof=1)


SHAPES = {"normal": stats.norm(), "exponential": stats.expon(), "lognormal": stats.lognorm(0.5)}


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "sign"), [("normal", 1), ("exponential", 1), ("exponential", -1), ("lognormal", -1)])
@pytest.mark.parametrize(("seeds", "effect"), [(5, 1.6), (8, 1.2), (20, 0.7)])
def test_the_stated_power_is_found(shape: str, sign: int, seeds: int, effect: float) -> None:
    stated = Power(quantiles(SHAPES[shape]), sign * effect, "stated").of(seeds)
    one, rng = SHAPES[shape], np.random.default_rng(7)
    draws = (one.rvs((STUDIES, seeds), random_state=rng) - one.mean()) / one.std()
    studies = (Mean(sign * row + effect, f"study {i}") for i, row in enumerate(draws))
    found = np.mean([study.p_above(0.0) <= TAIL for study in studies])
    error = np.sqrt(stated * (1 - stated) * (1 / STUDIES + 1 / (BLOCKS * BLOCK)))
    assert abs(found - stated) < 3 * error + 0.01


def test_of_normal_differences_and_many_seeds_it_is_students() -> None:
    n, effect = 60, 0.4
    exact = stats.nct.sf(stats.t.ppf(1 - TAIL, n - 1), n - 1, effect * np.sqrt(n))
    assert Power(quantiles(SHAPES["normal"]), effect, "a").of(n) == pytest.approx(exact, abs=0.035)


def test_no_effect_is_seen_no_oftener_than_the_level_allows() -> None:
    assert Power(quantiles(SHAPES["normal"]), 1e-9, "a").of(10) <= TAIL + 0.011


@pytest.mark.slow
def test_the_seeds_are_the_first_with_the_power() -> None:
    simulated = Power(quantiles(SHAPES["normal"]), 0.8, "a")
    seeds = int(simulated.seeds(0.8))
    assert simulated.of(seeds) >= 0.8 > simulated.of(seeds - 1)
    assert seeds >= approximate_seeds(0.8, 0.8) - 1
    assert simulated.seeds(0.9) > seeds
    assert Power(quantiles(SHAPES["normal"]), 1e-3, "a").seeds(0.8) == np.inf


@given(st.floats(0.05, 1.2), st.sampled_from([0.8, 0.9]))
def test_the_approximation_is_that_of_students_test(effect: float, power: float) -> None:
    n = float(np.ceil(approximate_seeds(effect, power)))
    exact = stats.nct.sf(stats.t.ppf(1 - TAIL, n - 1), n - 1, effect * np.sqrt(n))
    before = stats.nct.sf(stats.t.ppf(1 - TAIL, max(n - 3, 1)), max(n - 3, 1), effect * np.sqrt(max(n - 2, 2)))
    assert exact > power - 0.04
    assert n <= 5 or before < power


@given(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=20).filter(lambda one: np.std(one) > 1e-3))
def test_draws_have_the_mean_and_the_deviation_of_their_name(values: list[float]) -> None:
    power = Power(np.asarray(values), 1.0, "a")
    drawn = power.draw(np.random.default_rng(0), (200, 100))
    assert drawn.mean() == pytest.approx(0, abs=0.05)
    assert drawn.std() == pytest.approx(1, abs=0.1)


@pytest.mark.slow
@given(st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(scale: float) -> None:
    values = np.random.default_rng(0).normal(size=12)
    ours, theirs = Power(values, 1.0, "a"), Power(scale * values, scale, "a")
    assert ours.effect == pytest.approx(theirs.effect)
    assert ours.of(6) == theirs.of(6) or ours.of(6) == pytest.approx(theirs.of(6), abs=0.002)


def _covered(rng: np.random.Generator, n: int, effect: float, truth: float) -> bool:
    values = rng.normal(size=n)
    low, high = seeds_interval(effects_of_resamples(values, effect, rng.integers(n, size=(400, n))), 0.8)
    return low <= truth <= high


def test_the_interval_has_the_truth_about_as_often_as_it_says() -> None:
    """Percentile intervals of a deviation are too short with few seeds: 85% to 95% with twenty."""
    rng, truth = np.random.default_rng(0), float(np.ceil(approximate_seeds(0.3, 0.8)))
    share = np.mean([_covered(rng, 20, 0.3, truth) for _ in range(300)])
    assert 0.83 < share <= 0.98


def test_ends_above_the_most_are_infinite() -> None:
    low, high = seeds_interval(np.array([1.0] * 50 + [1e-3] * 50), 0.8, more=2.0)
    assert low <= 20 < MOST < high == np.inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from plumbline.methods.calibrated.recalibration import (
    LEVEL_MAPS,
    SCALE_BOUNDS,
    gp_level_map,
    isotonic_level_map,
    recalibrated_scale,
    recalibration_set,
    sd_scale,
)

LEARNERS = ["gp", "isotonic"]
LOW, HIGH = SCALE_BOUNDS


def forecasts(n: int, truth: float, seed: int = 0) -> np.ndarray:
    """CDF values of forecasts whose standard deviation is `1 / truth` times what it should be."""
    return ndtr(truth * np.random.default_rng(seed).standard_normal(n))


def literal_set(pit: list[float]) -> list[tuple[float, float]]:
    """CAL, Algorithm 3, step 1, as it is written."""
    return sorted((p, sum(value <= p for value in pit) / len(pit)) for p in pit)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_recalibration_set_is_the_papers(pit: list[float]) -> None:
    p, phat = recalibration_set(np.array(pit))
    np.testing.assert_allclose(np.stack([p, phat], axis=1), literal_set(pit), atol=1e-12)


@pytest.mark.parametrize("recalibrator", LEARNERS)
@pytest.mark.parametrize("truth", [0.5, 1.0, 2.0])
def test_learns_the_true_scale(recalibrator, truth: float) -> None:
    scale = recalibrated_scale(forecasts(400, truth), recalibrator)
    assert scale == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize("recalibrator", LEARNERS)
@pytest.mark.parametrize("seed", range(3))
def test_direction_from_thirty_forecasts(recalibrator, seed: int) -> None:
    assert recalibrated_scale(forecasts(30, 3.0, seed), recalibrator) > 1.3
    assert recalibrated_scale(forecasts(30, 1 / 3, seed), recalibrator) < 0.7


@pytest.mark.parametrize("recalibrator", LEARNERS)
def test_exact_quantiles_give_the_exact_scale(recalibrator) -> None:
    uniform = (np.arange(200) + 0.5) / 200
    for truth in (0.5, 1.0, 2.0):
        assert recalibrated_scale(ndtr(truth * ndtri(uniform)), recalibrator) == pytest.approx(truth, rel=0.02)


@given(st.floats(0.15, 8.0))
@settings(max_examples=60)
def test_sd_scale_recovers_a_gaussian_rescaling(s: float) -> None:
    assert sd_scale(lambda p: ndtr(ndtri(p) / s)) == pytest.approx(s, rel=1e-4)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=99, max_size=99))
@settings(max_examples=40)
def test_sd_scale_is_bounded_and_the_best_of_a_grid(target: list[float]) -> None:
    levels = np.arange(1, 100) / 100

    def mismatch(s: float) -> float:
        return float(np.sum((ndtr(ndtri(levels) / s) - target) ** 2))

    found = sd_scale(lambda p: np.array(target))
    assert LOW <= found <= HIGH
    assert mismatch(found) <= min(mismatch(s) for s in np.geomspace(LOW, HIGH, 40)) + 1e-3


@pytest.mark.parametrize("truth", [1e-3, 1e3])
@pytest.mark.parametrize("recalibrator", LEARNERS)
def test_scale_stays_within_its_bounds(recalibrator, truth: float) -> None:
    scale = recalibrated_scale(forecasts(20, truth), recalibrator)
    assert LOW <= scale <= HIGH


@pytest.mark.parametrize("recalibrator", [*LEARNERS, "none"])
def test_no_evidence_changes_nothing(recalibrator) -> None:
    assert recalibrated_scale(np.empty(0), recalibrator) == 1.0


@pytest.mark.parametrize("recalibrator", LEARNERS)
@pytest.mark.parametrize("pit", [[0.5], [0.02], [1.0], [0.2, 0.9], [0.5] * 7, [0.0, 0.0, 1.0, 1.0], [0.0] * 4])
def test_few_tied_or_extreme_values_are_survived(recalibrator, pit: list[float]) -> None:
    scale = recalibrated_scale(np.array(pit), recalibrator)
    assert np.isfinite(scale)
    assert LOW <= scale <= HIGH


def test_none_is_the_identity() -> None:
    assert recalibrated_scale(forecasts(50, 4.0), "none") == 1.0
    assert sd_scale(LEVEL_MAPS["none"](forecasts(50, 4.0))) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("recalibrator", LEARNERS)
def test_is_deterministic_and_blind_to_order(recalibrator) -> None:
    pit = forecasts(15, 2.0)
    np.random.seed(1)  # noqa: NPY002 - scikit-learn would draw from it
    once = recalibrated_scale(pit, recalibrator)
    np.random.seed(2)  # noqa: NPY002
    assert recalibrated_scale(pit, recalibrator) == once
    assert recalibrated_scale(pit[::-1].copy(), recalibrator) == once


@pytest.mark.parametrize("make", [gp_level_map, isotonic_level_map])
def test_level_maps_return_levels_near_the_shares(make) -> None:
    levels = np.arange(1, 100) / 100
    mapped = make(forecasts(100, 2.0))(levels)
    assert mapped.shape == levels.shape
    assert ((mapped >= 0) & (mapped <= 1)).all()
    assert np.abs(mapped - ndtr(ndtri(levels) / 2)).max() < 0.15


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_isotonic_map_is_scikit_learns(thousandths: list[int]) -> None:
    """Which takes a second to import, and takes levels for one that differ in their last digits."""
    from sklearn.isotonic import IsotonicRegression

    pit = np.array(thousandths) / 1000
    p, phat = recalibration_set(pit)
    theirs = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    theirs.fit(np.concatenate([[0.0], p, [1.0]]), np.concatenate([[0.0], phat, [1.0]]))
    levels = np.linspace(0.0, 0.999, 101)
    np.testing.assert_allclose(isotonic_level_map(pit)(levels), theirs.predict(levels), atol=1e-6)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=20))
@settings(max_examples=30)
def test_isotonic_map_is_monotone_from_zero_to_one(pit: list[float]) -> None:
    mapped = isotonic_level_map(np.array(pit))(np.linspace(0, 1, 51))
    assert (np.diff(mapped) >= -1e-12).all()
    assert mapped[-1] == 1.0
    assert mapped[0] == 0.0

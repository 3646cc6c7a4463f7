"""What recalibration would have done is judged on forecasts that taught it nothing."""

import numpy as np
import pytest
from numpy.typing import NDArray

from plumbline.analysis.diagnosis.forecasts import Forecasts
from plumbline.analysis.diagnosis.measures import SPREAD
from plumbline.analysis.diagnosis.replay import FEWEST, FOLDS, GAIN, from_earlier, from_others, replayed
from plumbline.analysis.diagnosis.verdict import remedies
from plumbline.methods.calibrated.recalibration import recalibrated_scale

Array = NDArray[np.float64]


def forecasts(z: Array, order: Array | None = None) -> Forecasts:
    n = len(z)
    return Forecasts(2.0 * z, np.zeros(n), np.full(n, 2.0), np.arange(n, dtype=float) if order is None else order, {})


def isotonic(pit: Array) -> float:
    return recalibrated_scale(pit, "isotonic")


def test_a_factor_is_learnt_from_earlier_rounds_alone() -> None:
    rng = np.random.default_rng(0)
    order = np.repeat(np.arange(10.0), 4)
    made = forecasts(rng.standard_normal(40), order)
    taught: list[Array] = []

    def record(pit: Array) -> float:
        taught.append(pit)
        return float(len(pit))

    factors = from_earlier(made, record, window=15)
    assert np.isnan(factors[:12]).all(), "fewer than ten came before the third round"
    for i in range(12, 40):
        earlier = made.pit[order < order[i]][-15:]
        assert factors[i] == len(earlier)
        assert any(np.array_equal(earlier, pit) for pit in taught)


@pytest.mark.parametrize("n", [12, FOLDS + 7])
def test_no_forecast_teaches_its_own_factor(n: int) -> None:
    rng = np.random.default_rng(1)
    z = rng.standard_normal(n)
    before = from_others(forecasts(z), isotonic)
    for i in (0, n - 1):
        changed = z.copy()
        changed[i] = 9.0
        after = from_others(forecasts(changed), isotonic)
        assert after[i] == before[i]
        assert not np.array_equal(after, before)


@pytest.mark.parametrize("recalibrator", ["isotonic", "gp"])
def test_over_confidence_is_cured(recalibrator: str) -> None:
    rng = np.random.default_rng(2)
    made = forecasts(3.0 * rng.standard_normal(100))
    factors = from_earlier(made, lambda pit: recalibrated_scale(pit, recalibrator), window=50)
    found = {one.name: one for one in replayed("earlier", made, factors)}
    assert found[GAIN].high < 0
    assert found[SPREAD].value == pytest.approx(1.0, rel=0.25)
    assert found["mean factor of sd"].value == pytest.approx(3.0, rel=0.2)
    (words,) = remedies([*found.values()])
    assert "on earlier forecasts they would have been better" in words


def test_of_right_forecasts_nothing_is_gained() -> None:
    rng = np.random.default_rng(3)
    gains = []
    for _ in range(10):
        made = forecasts(rng.standard_normal(40))
        (gain, *_) = replayed("other", made, from_others(made, isotonic))
        gains.append(gain.value)
    assert np.mean(gains) > 0, "what is learnt is noise"


def test_too_few_to_judge() -> None:
    made = forecasts(np.linspace(-1, 1, 2 * FEWEST - 1))
    assert not list(replayed("earlier", made, from_earlier(made, isotonic, window=50)))
    assert list(replayed("other", made, from_others(made, isotonic)))

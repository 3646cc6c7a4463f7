"""A method that is looked at early: what it says of two that are alike, and of one that is so much faster."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.metrics.summaries import shorten, summarise
from plumbline.statistics.inference import TAIL
from plumbline.statistics.means import Mean
from plumbline.study.claims import split_metric, truncated_metric

INITIAL, ROUNDS, SEEDS, STUDIES = 5, 30, 50, 100


def searches(rng: np.random.Generator, at_once: int = 1) -> np.ndarray:
    """Return the best so far of random searches, `studies x seeds x evaluations`, that see so many points a round."""
    found = rng.uniform(size=(STUDIES, SEEDS, INITIAL + ROUNDS, at_once)).max(axis=-1)
    return np.maximum.accumulate(found, axis=-1)


def rows_of(values: np.ndarray) -> pd.DataFrame:
    """Return records of runs whose values are `seeds x evaluations`."""
    seeds, evaluations = values.shape
    return pd.DataFrame(
        {
            "seed": np.repeat(np.arange(seeds), evaluations),
            "iteration": np.tile(np.maximum(np.arange(evaluations) - INITIAL + 1, 0), seeds),
            "evaluation": np.tile(np.arange(evaluations), seeds),
            "nll": values.reshape(-1),
        }
    )


def faster(ours: np.ndarray, theirs: np.ndarray, share: float) -> float:
    """Return how often ours is said to be so much faster: better after that share than theirs at the end."""
    at = INITIAL + int(share * ROUNDS) - 1
    found = (Mean(a[:, at] - b[:, -1], f"{n}") for n, (a, b) in enumerate(zip(ours, theirs, strict=True)))
    return float(np.mean([one.p_above(0.0) <= TAIL for one in found]))


def test_names_come_back() -> None:
    assert truncated_metric("regret", 0.95) == "regret@0.95"
    assert split_metric("regret@0.95") == ("regret", 0.95)
    assert split_metric("regret") == ("regret", 1.0)


@given(st.floats(0.001, 1).map(lambda share: float(f"{share:g}")))
def test_any_share_comes_back(share: float) -> None:
    assert split_metric(truncated_metric("regret", share)) == ("regret", share)


@given(
    st.floats(max_value=0).map(str)
    | st.floats(min_value=1, exclude_min=True).map(str)
    | st.sampled_from(["", "x", "nan", "0.5@0.5", "half", "50%"])
)
def test_what_is_no_share_is_refused_with_the_metric(share: str) -> None:
    with pytest.raises(PlumblineError, match=r"^metric 'regret@.*': a share of the rounds follows @, ") as caught:
        split_metric(f"regret@{share}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("share", "rounds"), [(0.95, 28), (0.5, 15), (1.0, 30)])
def test_rounds_are_rounded_down(share: float, rounds: int) -> None:
    values = np.random.default_rng(0).uniform(size=(2, INITIAL + ROUNDS))
    found = summarise(shorten(rows_of(values), share), "nll")
    assert found["rounds"].tolist() == [rounds] * 2
    assert found["last"].tolist() == values[:, INITIAL + rounds - 1].tolist()


@given(rounds=st.integers(1, 500), percent=st.integers(1, 100))
def test_hundredths_are_rounded_down_without_error(rounds: int, percent: int) -> None:
    rows = pd.DataFrame({"iteration": range(rounds + 1)})
    assert shorten(rows, percent / 100)["iteration"].max() == rounds * percent // 100


def test_the_initial_design_stays() -> None:
    values = np.random.default_rng(0).uniform(size=(2, INITIAL + ROUNDS))
    assert shorten(rows_of(values), 0.01)["evaluation"].tolist() == [*range(INITIAL)] * 2


@pytest.mark.slow
def test_of_two_alike_neither_is_called_faster() -> None:
    rng = np.random.default_rng(1)
    assert faster(searches(rng), searches(rng), 0.95) <= TAIL


@pytest.mark.slow
def test_one_that_sees_twice_as_many_is_more_than_a_tenth_faster() -> None:
    rng = np.random.default_rng(2)
    ours, theirs = searches(rng, 2), searches(rng)
    assert faster(ours, theirs, 0.9) >= 0.8
    assert faster(ours, theirs, 0.4) <= TAIL

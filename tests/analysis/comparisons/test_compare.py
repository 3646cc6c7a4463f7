"""How two methods compare, seed by seed, against what their runs were made to differ by."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.comparisons.compare import comparisons
from plumbline.analysis.evidence.runs import COLUMNS
from plumbline.core.errors import PlumblineError

SEEDS = 12


def runs(method: str, values: np.ndarray, task: str = "bowl", metric: str = "regret") -> pd.DataFrame:
    """Return runs with these last values, means a half and medians a third of them."""
    table = pd.DataFrame({"seed": range(len(values)), "last": values, "mean": values / 2, "median": values / 3})
    return table.assign(task=task, method=method, metric=metric, rounds=5, of=5, evaluations=9)[COLUMNS]


@pytest.fixture
def table() -> pd.DataFrame:
    """Two methods on a task that differ by 1 to 2, one seed more of the first; a third on another task."""
    rng = np.random.default_rng(0)
    start = rng.normal(size=SEEDS)
    return pd.concat(
        [
            runs("ours", np.append(start + rng.uniform(1, 2, SEEDS), 99.0)),
            runs("theirs", start),
            runs("ours", np.ones(SEEDS), task="valley"),
            runs("theirs", np.ones(SEEDS), task="valley"),
            runs("theirs", start, metric="nll"),
            runs("other", start, task="ridge"),
        ],
        ignore_index=True,
    )


def test_each_task_that_both_have(table: pd.DataFrame) -> None:
    bowl, valley = comparisons(table, "ours", "theirs")
    assert (bowl.task, bowl.metric, bowl.seeds) == ("bowl", "regret", SEEDS)
    assert 1 < bowl.low < bowl.difference < bowl.high < 2
    assert bowl.difference == pytest.approx(bowl.method - bowl.baseline)
    assert 1 < bowl.median < 2
    assert bowl.higher == 1
    assert (valley.task, valley.difference, valley.low, valley.high, valley.higher) == ("valley", 0, 0, 0, 0.5)


@pytest.mark.parametrize(("of", "share"), [("last", 1), ("mean", 2), ("median", 3)])
def test_of_the_number_that_is_asked_for(table: pd.DataFrame, of: str, share: int) -> None:
    assert comparisons(table, "ours", "theirs", of=of)[0].difference == pytest.approx(  # type: ignore[arg-type]
        comparisons(table, "ours", "theirs")[0].difference / share
    )


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_the_other_way_round_it_is_the_contrary(differences: list[float]) -> None:
    values = np.asarray(differences)
    both = pd.concat([runs("ours", values), runs("theirs", np.zeros(len(values)))], ignore_index=True)
    (ours,), (theirs,) = comparisons(both, "ours", "theirs"), comparisons(both, "theirs", "ours")
    assert ours.difference == pytest.approx(-theirs.difference, abs=1e-9)
    assert ours.median == pytest.approx(-theirs.median, abs=1e-9)
    assert ours.higher == pytest.approx(1 - theirs.higher)
    assert ours.low <= ours.difference <= ours.high


def test_seeds_without_a_value_are_left_out(table: pd.DataFrame) -> None:
    table.loc[(table["task"] == "bowl") & (table["method"] == "theirs") & (table["seed"] < 3), "last"] = np.nan
    assert comparisons(table, "ours", "theirs", "regret")[0].seeds == SEEDS - 3


def test_of_one_seed_there_is_no_interval() -> None:
    both = pd.concat([runs("ours", np.ones(1)), runs("theirs", np.zeros(1))], ignore_index=True)
    found = comparisons(both, "ours", "theirs")
    assert (found[0].difference, found[0].low, found[0].high) == (1.0, -np.inf, np.inf)
    assert found[0].p == 1.0


def test_p_and_the_direction(table: pd.DataFrame) -> None:
    bowl, valley = comparisons(table, "ours", "theirs")
    assert bowl.p < 0.01
    assert valley.p == 1.0
    assert bowl.better == "lower"
    theirs = comparisons(table, "theirs", "ours")[0]
    assert theirs.p == pytest.approx(bowl.p, rel=0.2)


def test_a_metric_that_cannot_differ_is_left_out_unless_it_is_named(table: pd.DataFrame) -> None:
    levels = [runs(method, np.full(SEEDS, 0.9), metric="nominal_coverage") for method in ("ours", "theirs")]
    both = pd.concat([table, *levels], ignore_index=True)
    assert {one.metric for one in comparisons(both, "ours", "theirs")} == {"regret"}
    (named,) = comparisons(both, "ours", "theirs", "nominal_coverage")
    assert (named.method, named.baseline, named.difference, named.p) == (0.9, 0.9, 0.0, 1.0)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("our", "theirs"), "unknown method 'our': did you mean 'ours'"),
        (("ours", "nobody"), "unknown method 'nobody'"),
        (("ours", "theirs", "regrets"), "unknown metric 'regrets': did you mean 'regret'"),
        (("ours", "theirs", "nll"), "'ours' and 'theirs' share no task and metric"),
        (("ours", "other"), "'ours' and 'other' share no task and metric"),
    ],
)
def test_what_is_not_there_is_one_line(table: pd.DataFrame, asked: tuple[str, ...], reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason) as error:
        comparisons(table, *asked)
    assert "\n" not in str(error.value)

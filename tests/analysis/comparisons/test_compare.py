"""How methods compare, seed by seed, against what their runs were made to differ by."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.analysis.comparisons.compare import Comparison, comparisons
from plumbline.analysis.evidence.runs import COLUMNS
from plumbline.core.errors import PlumblineError
from plumbline.statistics.multiple_tests import holm

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


def beside(found: list[Comparison], method: str = "ours", task: str = "bowl") -> Comparison:
    """Return the comparison of a method on a task."""
    (one,) = (one for one in found if (one.method, one.task) == (method, task))
    return one


def test_each_task_that_all_have(table: pd.DataFrame) -> None:
    found = comparisons(table, ["theirs", "ours"])
    assert {one.task for one in found} == {"bowl", "valley"}
    bowl, valley, baseline = beside(found), beside(found, task="valley"), beside(found, "theirs")
    assert (bowl.metric, bowl.baseline, bowl.seeds, bowl.pairs, bowl.better) == (
        "regret",
        "theirs",
        SEEDS + 1,
        SEEDS,
        "lower",
    )
    assert 1 < bowl.difference_low < bowl.difference < bowl.difference_high < 2
    assert bowl.value == pytest.approx((SEEDS * (baseline.value + bowl.difference) + 99) / (SEEDS + 1))
    assert bowl.p < 0.01
    assert (valley.difference, valley.difference_low, valley.difference_high, valley.p) == (0, 0, 0, 1)
    assert (baseline.baseline, baseline.pairs) == ("", SEEDS)
    assert np.isnan([baseline.difference, baseline.p, baseline.p_corrected]).all()
    assert {one.task for one in comparisons(table, ["theirs", "ours"], "bowl")} == {"bowl"}


@pytest.mark.parametrize(("of", "share"), [("last", 1), ("mean", 2), ("median", 3)])
def test_of_the_number_that_is_asked_for(table: pd.DataFrame, of: str, share: int) -> None:
    found = comparisons(table, ["theirs", "ours"], of=of)  # type: ignore[arg-type]
    assert beside(found).difference == pytest.approx(beside(comparisons(table, ["theirs", "ours"])).difference / share)


def test_the_median_of_seeds_and_of_differences(table: pd.DataFrame) -> None:
    rows = (
        table[table["task"] == "bowl"].query("metric == 'regret'").pivot(index="seed", columns="method", values="last")
    )
    found = beside(comparisons(table, ["theirs", "ours"], location="median"))
    assert found.value == pytest.approx(rows["ours"].median())
    assert found.difference == pytest.approx((rows["ours"] - rows["theirs"]).median())
    assert found.p == pytest.approx(2 * 0.5**SEEDS), "the sign test, where all signs are one"


@pytest.mark.slow
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_the_other_way_round_it_is_the_contrary(differences: list[float]) -> None:
    values = np.asarray(differences)
    both = pd.concat([runs("ours", values), runs("theirs", np.zeros(len(values)))], ignore_index=True)
    ours = beside(comparisons(both, ["theirs", "ours"]))
    theirs = beside(comparisons(both, ["ours", "theirs"]), "theirs")
    assert ours.difference == pytest.approx(-theirs.difference, abs=1e-9)
    assert ours.difference_low <= ours.difference <= ours.difference_high
    assert (ours.p < 0.05) == (not ours.difference_low <= 0 <= ours.difference_high) or ours.p == pytest.approx(0.05)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(2, 6), st.integers(0, 1_000))
def test_p_is_corrected_over_all_comparisons(methods: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"m{i}" for i in range(methods)]
    tables = [runs(name, rng.normal(0.3 * i, 1, 8), task) for i, name in enumerate(names) for task in ("bowl", "ridge")]
    found = comparisons(pd.concat(tables, ignore_index=True), names)
    tested = [one for one in found if one.baseline]
    assert len(tested) == 2 * (methods - 1)
    assert [one.p_corrected for one in tested] == pytest.approx(holm([one.p for one in tested]))
    for task in ("bowl", "ridge"):
        rows = [one for one in found if one.task == task]
        assert min(rows, key=lambda one: one.value).among_best, "the lowest regret"


def test_the_best_and_those_that_do_not_differ_from_it() -> None:
    rng = np.random.default_rng(1)
    start = rng.normal(size=SEEDS)
    values = {"bad": start + rng.uniform(4, 5, SEEDS), "good": start, "as-good": start + rng.normal(0, 0.1, SEEDS)}
    table = pd.concat([runs(name, one) for name, one in values.items()], ignore_index=True)
    best = {one.method: one.among_best for one in comparisons(table, list(values))}
    assert best == {"bad": False, "good": True, "as-good": True}
    level = table.assign(metric="query_coverage")
    assert not any(one.among_best for one in comparisons(level, list(values))), "no direction is better"


def test_seeds_without_a_value_are_left_out(table: pd.DataFrame) -> None:
    table.loc[(table["task"] == "bowl") & (table["method"] == "theirs") & (table["seed"] < 3), "last"] = np.nan
    found = comparisons(table, ["theirs", "ours"], metric="regret")
    assert (beside(found).pairs, beside(found, "theirs").seeds) == (SEEDS - 3, SEEDS - 3)


def test_of_one_common_seed_there_is_no_comparison() -> None:
    both = pd.concat([runs("ours", np.ones(1)), runs("theirs", np.zeros(3))], ignore_index=True)
    with pytest.raises(PlumblineError, match="'ours' and 'theirs' have one seed in common: a comparison takes two"):
        comparisons(both, ["theirs", "ours"])
    both.loc[both["method"] == "ours", "seed"] = 7
    with pytest.raises(PlumblineError, match="'ours' and 'theirs' have no seed in common"):
        comparisons(both, ["theirs", "ours"])


@given(st.sets(st.sampled_from(["theirs", "ours", "more"])), st.sampled_from(["", "regret"]))
def test_where_methods_have_seeds_and_no_values_it_is_the_values_that_lack(without: set[str], metric: str) -> None:
    """As regret has none where the optimum is unknown."""
    methods = ["theirs", "ours", "more"]
    drawn = np.random.default_rng(0).normal(size=(3, SEEDS))
    every = pd.concat([runs(name, drawn[i]) for i, name in enumerate(methods)], ignore_index=True)
    every.loc[every["method"].isin(without), ["last", "mean", "median"]] = np.nan
    if not without:
        assert len(comparisons(every, methods, metric=metric)) == 3
        return
    none = (
        "theirs, ours, more: regret has no values of two of them" if metric else "no metric has values of two of them"
    )
    some = f"'{next((one for one in methods if one in without), '')}' has no values of regret \\(regret: "
    with pytest.raises(PlumblineError, match=none if len(without) > 1 else some):
        comparisons(every, methods, metric=metric)


def test_a_metric_that_cannot_differ_is_left_out_unless_it_is_named(table: pd.DataFrame) -> None:
    levels = [runs(method, np.full(SEEDS, 0.9), metric="nominal_coverage") for method in ("ours", "theirs")]
    both = pd.concat([table, *levels], ignore_index=True)
    assert {one.metric for one in comparisons(both, ["theirs", "ours"])} == {"regret"}
    named = beside(comparisons(both, ["theirs", "ours"], metric="nominal_coverage"))
    assert (named.value, named.difference, named.p) == (0.9, 0.0, 1.0)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ((["theirs", "our"],), "unknown method 'our': did you mean 'ours'"),
        (
            (["theirs", "our"], "", "regret"),
            "no runs of 'our' have the metric 'regret'; those of other, ours, theirs do",
        ),
        ((["theirs", "ours"], "bowls"), "unknown task 'bowls': did you mean 'bowl'"),
        ((["theirs", "ours"], "", "regrets"), "unknown metric 'regrets': did you mean 'regret'"),
        ((["theirs", "ours"], "", "nll"), "no runs of '\w+' have the metric 'nll'"),
        ((["other", "ours"], "bowl"), "other, ours: no task has runs of all of them on 'bowl'"),
    ],
)
def test_what_is_not_there_is_one_line(table: pd.DataFrame, asked: tuple[object, ...], reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason) as error:
        comparisons(table, *asked)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)

"""The seeds that a comparison takes, from runs whose spread is known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.comparisons.planning import EffectSize, parse_effect, seed_plans
from plumbline.analysis.evidence.runs import COLUMNS
from plumbline.core.errors import PlumblineError


def runs(method: str, values: np.ndarray, metric: str = "regret") -> pd.DataFrame:
    table = pd.DataFrame({"seed": range(len(values)), "last": values, "mean": values, "median": values})
    return table.assign(task="bowl", method=method, metric=metric, rounds=5, of=5, evaluations=9)[COLUMNS]


def both(ours: np.ndarray, theirs: np.ndarray, metric: str = "regret") -> pd.DataFrame:
    return pd.concat([runs("ours", ours, metric), runs("theirs", theirs, metric)], ignore_index=True)


NAMES = ("theirs", "ours")
START = np.random.default_rng(0).normal(10.0, 3.0, 30)
APART = np.random.default_rng(1).normal(0.0, 1.0, 30)


def test_what_is_on_file_and_what_it_takes() -> None:
    eighty, ninety = seed_plans(both(START + APART, START), NAMES, "bowl", parse_effect("10%"))
    assert (eighty.power, ninety.power, eighty.pairs, eighty.given) == (0.8, 0.9, 30, 5)
    assert eighty.effect == pytest.approx(-0.1 * START.mean()), "lower is better"
    assert eighty.deviation == pytest.approx(APART.std(ddof=1))
    assert eighty.correlation == pytest.approx(np.corrcoef(START + APART, START)[0, 1])
    assert 2 <= eighty.low <= eighty.seeds <= eighty.high
    assert eighty.seeds < ninety.seeds
    assert eighty.seen == ninety.seen < 0.8


@pytest.mark.slow
def test_what_all_seeds_share_costs_nothing_but_what_they_do_not_does() -> None:
    of = EffectSize(1.0, False)
    (alike, _), (unlike, _) = (
        seed_plans(both(theirs + APART, START), NAMES, "bowl", of) for theirs in (START, np.roll(START, 1))
    )
    assert unlike.seeds > 4 * alike.seeds
    assert alike.correlation > 0.9 > unlike.correlation


@pytest.mark.slow
def test_a_large_effect_takes_fewer_seeds_and_a_tiny_one_more_than_are_simulated() -> None:
    table = both(START + APART, START, "best_f")
    large, small, tiny = (seed_plans(table, NAMES, "bowl", EffectSize(size, False))[0] for size in (3.0, 0.5, 0.001))
    assert large.effect == 3.0, "higher is better"
    assert large.seeds < small.seeds < 100
    assert large.seen > small.seen
    assert (tiny.seeds, tiny.high) == (np.inf, np.inf)


@given(st.floats(1e-6, 1e6), st.booleans())
def test_an_effect_is_a_share_or_a_number(size: float, relative: bool) -> None:
    found = parse_effect(f"{size}{'%' * relative}")
    assert found.relative == relative
    (wanted,) = found.of(np.array([-4.0]))
    assert wanted == pytest.approx(4 * size / 100 if relative else size)


@pytest.mark.parametrize("text", ["", "%", "ten", "-1", "0", "nan", "inf", "10%%", "-10%"])
def test_what_is_no_effect(text: str) -> None:
    with pytest.raises(PlumblineError, match=r"effect .*: give a percentage of the baseline's mean \(10%\)"):
        parse_effect(text)


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        (APART[:3], START[:3], "3 seeds in common are too few to show a spread: run 4 or more"),
        (START + 1, START, "the difference is the same for all seeds"),
        (np.append(START, np.inf), np.append(START, 0.0), "not all values are finite"),
        (APART, np.array([1.0, -1.0] * 15), "the mean of 'theirs' is zero: give the effect as a number"),
    ],
)
def test_from_what_nothing_follows(ours: np.ndarray, theirs: np.ndarray, reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason):
        seed_plans(both(ours, theirs), NAMES, "bowl", EffectSize(0.1, True))


def test_one_seed_has_no_power() -> None:
    with pytest.raises(PlumblineError, match="given: a comparison takes 2 to 100,000 seeds"):
        seed_plans(both(APART, START), NAMES, "bowl", EffectSize(0.1, True), given=1)

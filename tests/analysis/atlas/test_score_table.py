"""The LaTeX table of scores says what the differences say."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_trials import TRIALS, trials_of

from plumbline.analysis.atlas.score_table import block, score_table
from plumbline.analysis.atlas.standing import ALL, paired_differences, standing
from plumbline.study.legends import Legend


def test_its_numbers_are_those_of_the_differences() -> None:
    rng = np.random.default_rng(0)
    spread = {"mine": 1.0, "near": 1.01, "far": 3.0}
    trials = trials_of(
        **{name: {f"t{i}": (at + 0.1 * rng.normal(size=6)).tolist() for i in range(8)} for name, at in spread.items()}
    )
    differences = paired_differences(trials, "mine", ["near", "far"])
    for task in (ALL, "t3"):
        rows = block(trials, task, list(spread), differences).set_index("method")
        for one in differences:
            if one.task == task:
                row = rows.loc[one.against]
                assert (row["difference"], row["difference_low"], row["difference_high"]) == one[3:6]
                assert (row["p"], row["p_corrected"]) == pytest.approx((one.p, one.p_corrected), nan_ok=True)
        assert rows["among_best"].to_dict() == {"mine": True, "near": True, "far": False}
        assert rows["difference"].isna().to_dict() == {"mine": True, "near": False, "far": False}
    assert rows.loc["far", "value"] == pytest.approx(trials.query("method == 'far' and task == 't3'")["score"].mean())


def test_over_all_tasks_a_task_counts_once() -> None:
    methods = ["mine", "good", "part"]
    known = TRIALS.dropna(subset="score").query("task != 'c'")
    rows = block(known, ALL, methods, paired_differences(TRIALS, "mine", methods[1:])).set_index("method")
    assert rows["seeds"].to_dict() == {"mine": 2, "good": 2, "part": 1}
    assert rows.loc["mine", "value"] == pytest.approx((0.2 + 0.6) / 2)
    assert rows.loc["good", "difference"] == pytest.approx(0.25)
    assert np.isnan(rows.loc["part", "low"])


def test_nothing_is_bold_where_the_best_has_one_seed() -> None:
    trials = trials_of(mine={"a": [0.1]}, worse={"a": [0.4, 0.5]}, worst={"a": [0.9, 0.8]})
    rows = block(trials, "a", ["mine", "worse", "worst"], paired_differences(trials, "mine", ["worse", "worst"]))
    assert not rows["among_best"].any()


def test_the_text_has_a_block_a_task_and_is_safe_for_latex() -> None:
    trials = TRIALS.replace({"method": {"mine": "my_method"}})
    text = score_table(trials, "my_method", paired_differences(trials, "my_method", ["good", "part"]))
    assert re.findall(r"score on (.*?) \(lower is better\)", text) == [ALL, "a", "b"]
    assert "c " not in re.findall(r"score on (.*?) \(", text)
    assert "my\\_method" in text
    assert re.search(r"(?<!\\)_", text) is None
    assert "corrected for 2 methods" in text
    named = score_table(
        trials,
        "my_method",
        paired_differences(trials, "my_method", ["good"]),
        {"a": "Levy & 5"},
        {"good": Legend(label="the good one")},
    )
    assert "score on Levy \\& 5 (lower is better)" in named
    assert "the good one & 2 &" in named.replace("\\textbf{the good one}", "the good one")
    assert {line.count("&") for line in text.splitlines() if line.endswith("\\\\") and "multicolumn" not in line} == {5}


@given(own=st.integers(1, 5), stored=st.integers(5, 8), tasks=st.integers(1, 3), where=st.integers(0, 2**31 - 1))
def test_means_are_those_of_the_standing_and_differences_are_between_them(
    own: int, stored: int, tasks: int, where: int
) -> None:
    """The atlas has as many seeds as one's own method or more, of which the table shows those of the latter."""
    rng = np.random.default_rng(where)
    seeds = {"mine": own, "other": stored, "third": stored}
    trials = trials_of(
        **{name: {f"t{i}": rng.uniform(size=n).tolist() for i in range(tasks)} for name, n in seeds.items()}
    )
    text = score_table(trials, "mine", paired_differences(trials, "mine", ["other", "third"]))
    shown = [_numbers(line) for line in text.splitlines() if "&" in line and "method &" not in line]
    of_all = {name: numbers for name, *numbers in shown[:3]}
    assert {name: numbers[1] for name, numbers in of_all.items()} == {
        row["method"]: pytest.approx(row["score"], rel=1e-3) for row in standing(trials, "mine").to_dict("records")
    }
    for first in range(0, len(shown), 3):
        (_, count, mean, _), *others = shown[first : first + 3]
        for _, of, level, difference in others:
            assert of == count
            assert difference == pytest.approx(mean - level, abs=2e-3)


def _numbers(line: str) -> tuple[str, int, float, float]:
    """Return method, seeds, mean and difference of a row in LaTeX; NaN without a difference."""
    method, seeds, mean, difference, *_ = (re.sub(r"\\(textbf|mathbf)|[{}$]", "", cell) for cell in line.split(" & "))
    return method, int(seeds), float(mean.split()[0]), float(difference.split()[0].replace("--", "nan"))

"""Curves to explore: the numbers of single seeds, or reference means, in few digits; and the chart that draws them."""

import json
from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.explorer import (
    MOST_POINTS,
    compact,
    explored_records,
    explored_reference,
    line_chart,
    metrics_of,
    thinned,
)
from plumbline.store.records import write_frame
from plumbline.store.reference_files import ExperimentFiles

CURVES = {"kind": "curves", "options": {"rows": [{"metric": "regret", "label": "regret"}]}}


@pytest.fixture
def explored(folder: Path) -> dict[str, Any]:
    """What is explored of two methods with three seeds."""
    resolved = made.plan({"MADE-F1": made.experiment(figure=CURVES)}).resolve("MADE-F1")
    rows = [made.trial(method=method, seed=seed) for method in made.METHODS for seed in range(3)]
    found = explored_records(resolved, made.write(folder / "records.parquet", *rows, made.failure(seed=9)))
    assert found is not None
    return found


class TestRecords:
    def test_each_seed_is_there_by_evaluation(self, explored: dict[str, Any]) -> None:
        assert [(run["task"], run["method"], run["seeds"]) for run in explored["runs"]] == [
            ("bowl", method, [0, 1, 2]) for method in made.METHODS
        ]
        run = explored["runs"][0]
        assert run["evaluations"] == list(range(made.INITIAL, made.INITIAL + made.ROUNDS + 1))
        for seed, values in enumerate(run["values"]["regret"]):
            assert values == pytest.approx([made.falling(seed, n - 1) for n in run["evaluations"]], rel=1e-3)

    def test_seconds_are_added_up(self, explored: dict[str, Any]) -> None:
        for seconds in explored["runs"][0]["seconds"]:
            assert np.diff(seconds) == pytest.approx([0.25 + 0.05 * i for i in range(1, made.ROUNDS + 1)], rel=1e-2)

    def test_words_are_legends_titles_and_metrics(self, explored: dict[str, Any]) -> None:
        assert set(explored["methods"]) == set(made.METHODS)
        assert explored["metrics"]["regret"]["better"] == "lower"
        assert all({"label", "colour", "dashed"} == set(look) for look in explored["methods"].values())

    def test_it_is_json(self, explored: dict[str, Any]) -> None:
        json.dumps(explored, allow_nan=False)

    def test_metrics_are_those_of_figure_and_table(self) -> None:
        table = {"kind": "final-values", "options": {"metrics": ["nll", "regret"]}}
        resolved = made.plan({"MADE-F1": made.experiment(figure=CURVES, table=table)}).resolve("MADE-F1")
        assert metrics_of(resolved) == ("regret", "nll")


class TestOnFile:
    def explored(self, folder: Path) -> dict[str, Any] | None:
        plan = made.plan({})
        costs = {("forrester", "no-entry"): 0.5}
        return explored_reference(ExperimentFiles(folder / "E"), costs, plan.library, Titles(plan.library))

    @pytest.fixture
    def first(self, folder: Path) -> int:
        """Evaluations of the initial design of a task with reference means."""
        of = {"task": "forrester", "method": "no-entry", "metric": "old", "standard_error": 0.1, "seeds": 50}
        frame = pd.DataFrame([of | {"iteration": i, "mean": i / 3} for i in range(3)])
        write_frame(ExperimentFiles(folder / "E").curves, frame)
        return made.plan({}).library.tasks["forrester"].budget.initial.size

    def test_means(self, folder: Path, first: int) -> None:
        found = self.explored(folder)
        assert found is not None
        (run,) = found["runs"]
        assert run["evaluations"] == [first + i for i in range(3)]
        assert run["seconds"] == [[0.0, 0.5, 1.0]]
        assert run["means"] == {"old": [0.0, 0.3333, 0.6667]}
        assert found["methods"]["no-entry"]["label"] == "no-entry"
        assert found["metrics"]["old"] == {"label": "old", "summary": "", "better": ""}

    def test_single_seeds_where_they_are_kept(self, folder: Path, first: int) -> None:
        """A round without a value has none: it does not take that of the round before."""
        of = {"task": "forrester", "method": "no-entry", "metric": "old"}
        rows = [(4, 0, 9.0), (4, 2, 7.0), (5, 1, 3.0), (5, 2, 3.0)]
        frame = pd.DataFrame([of | {"seed": seed, "iteration": at, "value": value} for seed, at, value in rows])
        write_frame(ExperimentFiles(folder / "E").rounds, frame)
        found = self.explored(folder)
        assert found is not None
        (run,) = found["runs"]
        assert run["seeds"] == [4, 5]
        assert run["values"] == {"old": [[9.0, None, 7.0], [None, 3.0, 3.0]]}
        assert run["seconds"] == [[0.0, 0.5, 1.0]], "the same for all seeds"

    def test_without_a_file_there_is_nothing(self, folder: Path) -> None:
        assert self.explored(folder) is None


@given(
    st.lists(st.integers(0, 10**6), unique=True, max_size=3 * MOST_POINTS).map(sorted),
    st.sampled_from([(1, 60), (100, 60), (200, 30), (2_200, 12)]),
)
def test_of_many_rounds_some_are_kept_with_both_ends_and_fewer_of_many_seeds(
    rounds: list[int], of: tuple[int, int]
) -> None:
    seeds, most = of
    kept = thinned(rounds, seeds)
    assert kept == sorted(set(kept))
    assert set(kept) <= set(rounds)
    assert len(kept) == min(len(rounds), most)
    if rounds:
        assert (kept[0], kept[-1]) == (rounds[0], rounds[-1])


@given(arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=5)))
def test_numbers_in_few_digits(values: np.ndarray) -> None:
    found = compact(values)
    json.dumps(found, allow_nan=False)
    for row, shown in zip(values, found, strict=True):
        for value, digits in zip(row, shown, strict=True):
            assert digits == (pytest.approx(value, rel=1e-3) if np.isfinite(value) else None)


def test_the_chart_names_its_data() -> None:
    chart = json.loads(line_chart())
    assert {layer["data"]["name"] for layer in chart["layer"]} == {"lines", "seeds"}
    assert all({"x", "y"} <= set(layer["encoding"]) for layer in chart["layer"])


@pytest.mark.slow
def test_the_library_is_one_script_without_imports() -> None:
    from plumbline.analysis.publish.explorer import chart_library

    script = chart_library()
    assert "window.vegaEmbed=" in script
    assert "</script" not in script
    assert "import(" not in script

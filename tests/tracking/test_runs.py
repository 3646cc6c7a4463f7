"""What is said of a trial in MLflow."""

import math
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest

from plumbline.store.spec import TrialSpec
from plumbline.tracking import runs


def test_defaults_of_a_schema() -> None:
    inner = {"properties": {"b": {"default": 1}, "c": {"default": {"d": 2}}}}
    schema = {"$defs": {"I": inner}, "properties": {"a": {"$ref": "#/$defs/I", "default": {"b": 1}}, "e": {}}}
    assert runs.resolve({"a": {"b": 5}, "x": {"y": 0}}, schema) == {
        "a": {"b": 5, "c": {"d": 2}},
        "x": {"y": 0},
    }


def rows(count: int, **changes: Any) -> list[dict[str, Any]]:
    plain = {"seed": 0, "optimum": math.nan, "roles": ["objective"], "round_seconds": 1.0}
    return [plain | {"iteration": i, "evaluation": i, "y": [float(i)], "f": [float(i)]} | changes for i in range(count)]


def table(some: list[dict[str, Any]]) -> arrow.Table:
    return arrow.Table.from_pylist(some, schema=runs.ROWS)


def test_numbers_that_are_none_are_left_out() -> None:
    metrics = runs.trial_metrics(table(rows(2, width=[math.inf, 2.0], notes=[("threshold (t)", 0.5)])))
    assert {name: series.to_dict() for name, series in metrics[0].items()} == {
        "best_y": {0: 0.0, 1: 1.0},
        "best_f": {0: 0.0, 1: 1.0},
        "incumbent_f": {0: 0.0, 1: 1.0},
        "notes.threshold -t-": {0: 0.5, 1: 0.5},
    }


def test_many_trials_have_the_metrics_that_each_has_alone() -> None:
    """Also where one lacks a value that another has: nothing is carried on from an earlier round."""
    first, second = rows(3, notes=[("threshold", 0.5)]), rows(2, seed=4, width=[2.0])
    first[1]["f"] = first[1]["y"] = [math.nan]
    together = runs.trial_metrics(table(first + second))
    assert together.keys() == {0, 4}
    for seed, some in ((0, first), (4, second)):
        alone = runs.trial_metrics(table(some))[seed]
        assert {name: one.to_dict() for name, one in together[seed].items()} == {
            name: one.to_dict() for name, one in alone.items()
        }


def test_a_round_is_marked_by_its_seconds_last() -> None:
    metrics = runs.round_metrics(runs.trial_metrics(table(rows(3)))[0], 1, 2, 7, 0.25)
    assert (metrics[0].key, metrics[0].value) == ("best_y", 1.0)
    assert (metrics[-1].key, metrics[-1].value) == (runs.MARK, 0.25)
    assert {(entry.step, entry.timestamp) for entry in metrics} == {(2, 7)}


@pytest.mark.parametrize("rounds", [0, 1, 25, 499, 500, 4_000, 80_000])
def test_rounds_that_are_logged(rounds: int) -> None:
    logged = runs.logged_rounds(rounds)
    assert {0, rounds} <= logged <= {*range(rounds + 1)}
    assert len(logged) == min(rounds + 1, runs.STEPS)
    gaps = np.diff(sorted(logged))
    assert not len(gaps) or gaps.max() - gaps.min() <= 1


def test_long_options_are_cut() -> None:
    budget = {"initial": {"design": "uniform", "size": 3}, "rounds": 2}
    method = {"name": "random", "options": {"a": "x" * 9000}}
    spec = TrialSpec.model_validate({"problem": "branin", "method": method, "seed": 0, "budget": budget})
    assert len(runs.run_params(spec)["method.a"]) == 6000

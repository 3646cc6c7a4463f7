"""What is said of a trial in MLflow."""

import math
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name

from plumbline.metrics.frames import frame_of
from plumbline.metrics.registry import METRICS, as_recorded
from plumbline.store.spec import TrialSpec
from plumbline.tracking import runs


def test_parameters_have_the_defaults_of_wrapped_methods_too() -> None:
    method = {"name": "calibrated", "options": {"base": "ucb"}, "label": "calibrated-ucb"}
    budget = {"rounds": 1, "initial": {"design": "uniform", "size": 3}}
    spec = TrialSpec.model_validate({"problem": "branin", "method": method, "budget": budget, "seed": 0})
    found = runs.run_params(spec)
    assert found["method.base.name"] == "ucb"
    assert found["method.base.options.model.kernel"] == "matern52"


def rows(count: int, **changes: Any) -> list[dict[str, Any]]:
    plain = {"seed": 0, "optimum": math.nan, "roles": ["objective"], "round_seconds": 1.0}
    return [plain | {"iteration": i, "evaluation": i, "y": [float(i)], "f": [float(i)]} | changes for i in range(count)]


def table(some: list[dict[str, Any]]) -> arrow.Table:
    return arrow.Table.from_pylist(some, schema=runs.ROWS)


def test_numbers_that_are_none_are_left_out() -> None:
    metrics = runs.trial_metrics(table(rows(2, width=[math.inf, 2.0], notes=[("threshold (t)", 0.5)])))
    assert {name: of.loc[0].to_dict() for name, of in metrics.items()} == {
        "best_y": {0: 0.0, 1: 1.0},
        "best_f": {0: 0.0, 1: 1.0},
        "incumbent_f": {0: 0.0, 1: 1.0},
        "notes.threshold (t)": {0: 0.5, 1: 0.5},
    }


def test_many_trials_have_the_metrics_that_each_has_alone() -> None:
    """Also where one lacks a value that another has: nothing is carried on from an earlier round."""
    first, second = rows(3, notes=[("threshold", 0.5)]), rows(2, seed=4, width=[2.0])
    first[1]["f"] = first[1]["y"] = [math.nan]
    together = runs.trial_metrics(table(first + second))
    for seed, some in ((0, first), (4, second)):
        alone = {name: of.loc[seed].to_dict() for name, of in runs.trial_metrics(table(some)).items()}
        assert {
            name: {i: value for i, value in of.loc[seed].items() if not math.isnan(value)}
            for name, of in together.items()
            if of.loc[seed].notna().any()
        } == {name: {i: value for i, value in of.items() if not math.isnan(value)} for name, of in alone.items()}


@pytest.mark.slow
@settings(max_examples=5)
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-5, 5) | st.just(math.nan)), min_size=1, max_size=12))
def test_one_pass_gives_what_each_metric_gives_alone(steps: list[tuple[int, float]]) -> None:
    """Rounds of several evaluations too, whose metrics of queries are averaged."""
    iterations = np.cumsum([step > 0 for step, _ in steps])
    some = rows(len(steps), optimum=6.0, predicted_mean=0.0, predicted_sd=1.0)
    for row, iteration, (_, value) in zip(some, iterations, steps, strict=True):
        row.update(iteration=int(iteration), f=[value], nll=value)
    found = runs.trial_metrics(table(some))
    frame = frame_of(table(some))
    for name in runs.streamed():
        alone = as_recorded(frame, name)
        alone = alone.where(np.isfinite(alone))
        assert (name in found) == alone.notna().to_numpy().any()
        if name in found:
            np.testing.assert_array_equal(found[name].to_numpy(), alone.to_numpy())


def test_a_round_is_marked_by_its_seconds_last() -> None:
    metrics = runs.round_metrics(runs.trial_metrics(table(rows(3))), 0, 1, 2, 7, 0.25)
    assert (metrics[0].key, metrics[0].value) == ("best_y", 1.0)
    assert (metrics[-1].key, metrics[-1].value) == (runs.MARK, 0.25)
    assert {(entry.step, entry.timestamp) for entry in metrics} == {(2, 7)}


@pytest.mark.parametrize("rounds", [0, 1, 25, 99, 100, 499, 4_000, 80_000])
def test_rounds_that_are_logged(rounds: int) -> None:
    logged = runs.logged_rounds(rounds)
    assert {0, rounds} <= logged <= {*range(rounds + 1)}
    assert len(logged) == min(rounds + 1, runs.STEPS)
    gaps = np.diff(sorted(logged))
    assert not len(gaps) or gaps.max() - gaps.min() <= 1


def spec(**method: Any) -> TrialSpec:
    budget = {"initial": {"design": "uniform", "size": 3}, "rounds": 2}
    return TrialSpec.model_validate(
        {"problem": "branin", "method": {"name": "random", **method}, "seed": 3, "budget": budget}
    )


def test_long_options_are_cut() -> None:
    assert len(runs.run_params(spec(options={"a": "x" * 9000}))["method.a"]) == 6000


def test_names_begin_with_method_and_seed() -> None:
    assert runs.run_name(spec(label="guarded-logei")) == "guarded-logei s3 branin"


@pytest.mark.parametrize(
    ("metric", "minimised", "shown"),
    [
        ("best_f", False, ("best_f", 1)),
        ("best_f", True, ("least_f", -1)),
        ("best_y", True, ("least_y", -1)),
        ("best_query", True, ("least_query", -1)),
        ("incumbent_f", True, ("minus_incumbent_f", -1)),
        ("regret", True, ("regret", 1)),
        ("notes.problem.failed", True, ("notes/problem.failed", 1)),
        ("notes.a/b (c)", False, ("notes/a-b -c-", 1)),
    ],
)
def test_signs_and_their_names(metric: str, minimised: bool, shown: tuple[str, int]) -> None:
    assert runs.shown_as(metric, minimised) == shown


@given(st.sampled_from([*METRICS]), st.booleans())
def test_a_turned_metric_has_a_name_of_its_own(name: str, minimised: bool) -> None:
    shown, sign = runs.shown_as(name, minimised)
    assert (sign < 0) == (shown != name)
    assert shown == name or shown not in METRICS


@given(st.text(min_size=1))
def test_any_note_has_a_name_that_mlflow_takes(note: str) -> None:
    shown, _ = runs.shown_as(f"notes.{note}", False)
    _validate_metric_name(shown)
    assert shown.startswith("notes/")
    assert shown.count("/") == 1

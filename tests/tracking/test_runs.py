"""What is said of a trial in MLflow."""

from plumbline.specs import TrialSpec
from plumbline.tracking import runs


def test_defaults_of_a_schema() -> None:
    inner = {"properties": {"b": {"default": 1}, "c": {"default": {"d": 2}}}}
    schema = {"$defs": {"I": inner}, "properties": {"a": {"$ref": "#/$defs/I", "default": {"b": 1}}, "e": {}}}
    assert runs.resolve({"a": {"b": 5}, "x": {"y": 0}}, schema) == {
        "a": {"b": 5, "c": {"d": 2}},
        "x": {"y": 0},
    }


def test_numbers_that_are_none_are_left_out() -> None:
    row = {"evaluation": 0, "iteration": 0, "best_y": 1.0, "regret": float("nan"), "nll": None}
    row |= {"width": [float("inf"), 2.0], "notes": [("threshold (t)", 0.5)]}
    metrics = runs.row_metrics(row, ["0.1", "0.2"])
    assert metrics == {"best_y": 1.0, "width.alpha-0.2": 2.0, "notes.threshold -t-": 0.5}


def test_long_options_are_cut() -> None:
    budget = {"initial": {"design": "uniform", "size": 3}, "rounds": 2}
    method = {"name": "random", "options": {"a": "x" * 9000}}
    spec = TrialSpec.model_validate({"problem": "branin", "method": method, "seed": 0, "budget": budget})
    assert len(runs.run_params(spec)["method.a"]) == 6000


def test_shares_of_misses_run_on() -> None:
    misses = runs.RunningMisses()
    first = misses.add({"covered.alpha-0.1": 0.0, "f_covered.alpha-0.1": 1.0, "width.alpha-0.1": 3.0})
    assert first == {"query_miscoverage.alpha-0.1": 1.0, "f_miscoverage.alpha-0.1": 0.0}
    assert misses.add({"covered.alpha-0.1": 1.0}) == {"query_miscoverage.alpha-0.1": 0.5}
    assert misses.add({"best_y": 1.0}) == {}
    assert misses.add({"covered.alpha-0.1": 1.0, "covered.alpha-0.2": 1.0}) == {
        "query_miscoverage.alpha-0.1": 1 / 3,
        "query_miscoverage.alpha-0.2": 0.0,
    }

"""Runs on file, and what they say of two methods."""

from pathlib import Path

import pandas as pd
import pytest

import plumbline as pb
from plumbline.api.comparing import metrics_of
from plumbline.api.repository import find_repository, find_study
from plumbline.core.errors import PlumblineError


def test_published_runs_and_their_comparison() -> None:
    runs = pb.runs("CBO-X1")
    assert {"task", "method", "metric", "seed", "last", "mean", "median", "evaluations"} <= set(runs)
    found = pb.compare("CBO-X1", "cucb", "ucb")
    assert "mean_nominal_coverage" in set(runs["metric"]) - set(found["metric"]), "a level that was set"
    best = found[found["metric"] == "best_f"].set_index("task")
    assert set(best["better"]) == {"higher"}
    last = runs[runs["metric"] == "best_f"].pivot(index=["task", "seed"], columns="method", values="last")
    for task, one in best.iterrows():
        differences = (last.loc[task, "cucb"] - last.loc[task, "ucb"]).dropna()
        assert one["difference"] == pytest.approx(differences.mean())
        assert one["seeds"] == len(differences)
        assert one["low"] < one["difference"] < one["high"]
        assert (one["p"] < 0.05) == (not one["low"] < 0 < one["high"])


def test_one_metric(tmp_path: Path) -> None:
    assert set(pb.runs("CBO-X1", metric="best_f")["metric"]) == {"best_f"}
    assert set(pb.compare("CBO-X1", "cucb", "ucb", metric="best_f")["metric"]) == {"best_f"}
    with pytest.raises(PlumblineError, match="unknown metric 'best_g': did you mean 'best_f'"):
        pb.compare("CBO-X1", "cucb", "ucb", metric="best_g")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="unknown experiment 'CBO-X11': did you mean 'CBO-X1'"):
        pb.runs("CBO-X11")
    with pytest.raises(PlumblineError, match="no runs of CAL-T1: run it"):
        pb.runs("CAL-T1")
    with pytest.raises(PlumblineError, match="no folder of results"):
        pb.runs("CAL-F3", folder=tmp_path / "none")


def test_the_metrics_of_an_experiment_are_those_of_its_figure_table_and_claims() -> None:
    _, study = find_study(find_repository(), "CAL-F3")
    assert metrics_of(study, "CAL-F3") == ["calibration_score", "best_f", "regret", "nll"]
    claims = [claim for claim in study.claims.values() if "CAL-F3-50" in claim.experiments]
    claimed = {test.metric for claim in claims for test in claim.tests}
    assert claimed
    assert claimed <= set(metrics_of(study, "CAL-F3-50"))


def test_listings_are_tables() -> None:
    methods, tasks, experiments, claims = pb.methods(), pb.tasks(), pb.experiments(), pb.claims()
    assert methods.set_index("method").loc["cucb", "class"] == "cucb"
    assert tasks.set_index("task").loc["ackley-2", ["problem", "rounds"]].tolist() == ["ackley-2", 30]
    assert experiments["experiment"].is_unique
    assert experiments.set_index("experiment").loc["CBO-X1", "published"]
    assert claims.set_index("claim").loc["C1", "verdict"] == "reproduced"
    for frame in (methods, tasks, experiments, claims):
        assert isinstance(frame, pd.DataFrame)
        assert not frame.isna().any().any()


def test_registered_classes() -> None:
    found = pb.classes()
    assert {"method", "problem", "design", "figure", "table", "metric", "statistic"} <= set(found["kind"])
    assert "regret" in set(pb.classes("metric")["name"])
    options = pb.classes("method", "ei").set_index("option")
    assert options.loc["model.kernel", "default"] == "matern52"
    assert pb.classes("metric", "regret").empty
    for kind, name, reason in (
        ("methods", "", "unknown kind of class 'methods': did you mean 'method'"),
        ("method", "eii", "unknown method 'eii': did you mean 'ei'"),
        ("metric", "regrets", "unknown metric 'regrets': did you mean 'regret'"),
    ):
        with pytest.raises(PlumblineError, match=reason):
            pb.classes(kind, name)


def test_a_number_of_a_run_that_there_is_not() -> None:
    with pytest.raises(PlumblineError, match="unknown number of a run 'first': allowed: last, mean, median"):
        pb.compare("CBO-X1", "cucb", "ucb", of="first")  # type: ignore[arg-type]

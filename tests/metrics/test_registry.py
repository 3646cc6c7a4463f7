"""Metrics against slow loops: what the trials themselves once recorded, row by row, to the last digit."""

import math
import subprocess
import sys
import time

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_cases import CONSTRAINED, Row, frame

from plumbline.core.errors import PlumblineError
from plumbline.forecasts.calibration_score import calibration_score
from plumbline.metrics.registry import METRICS, by_round, check_metric, columns_of, find_metric, metric
from plumbline.store.records import RECORD, SECONDS

SEVERAL = {"hypervolume"}


OF_RECORD = {"nll", "crps", "pit", "predicted_mean", "predicted_sd"}


def bests(y: list[float], f: list[float], pits: list[float | None], optimum: float) -> dict[str, list[float]]:
    """Return what a trial recorded of its bests, one row after another."""
    found: dict[str, list[float]] = {name: [] for name in ("best_y", "best_f", "incumbent_f", "calibration_score")}
    best_y = best_f = incumbent = -math.inf
    for i in range(len(y)):
        best_f = max(best_f, f[i])
        if y[i] > best_y:
            best_y, incumbent = y[i], f[i]
        past = [pit for pit in pits[: i + 1] if pit is not None]
        values = (best_y, best_f, incumbent, calibration_score(past) if pits[i] is not None else math.nan)
        for name, value in zip(found, values, strict=True):
            found[name].append(value)
    return found | {
        "instant_regret": [optimum - value for value in f],
        "regret": [optimum - value for value in found["best_f"]],
        "incumbent_regret": [optimum - value for value in found["incumbent_f"]],
    }


def noisy(seed: int, rounds: int, optimum: float = 1.25) -> list[Row]:
    """Return a trial with noise, ties, and queries that nothing was forecast of."""
    rng = np.random.default_rng(seed)
    trial = made.trial(seed=seed, rounds=rounds, optimum=optimum)
    for row in trial:
        row["f"] = [float(rng.normal())]
        row["y"] = [round(row["f"][0] + float(rng.normal()), 1)]
        row["pit"] = float(rng.uniform()) if row["iteration"] > 0 and rng.random() < 0.8 else None
    return trial


class TestEqualToTheLoop:
    @pytest.mark.slow
    @settings(max_examples=25)
    @given(st.integers(0, 2**31), st.integers(1, 60), st.sampled_from([1.25, math.nan]))
    def test_bests_regrets_and_calibration_to_the_last_digit(self, seed: int, rounds: int, optimum: float) -> None:
        trials = [noisy(seed + i, rounds, optimum) for i in range(2)]
        found = frame(*trials)
        for trial in trials:
            mine = found["seed"] == trial[0]["seed"]
            y, f = ([row[name][0] for row in trial] for name in ("y", "f"))
            for name, values in bests(y, f, [row.get("pit") for row in trial], optimum).items():
                np.testing.assert_array_equal(metric(found, name)[mine], values, err_msg=name)

    def test_an_observation_that_was_not_asked_for_changes_no_best(self) -> None:
        trial = made.trial(rounds=3)
        for row, y in zip(trial, (math.nan, 1.0, math.nan, 3.0, 2.0), strict=True):
            row["y"] = [y]
            row["f"] = [10 * row["evaluation"]]
        found = frame(trial)
        np.testing.assert_array_equal(metric(found, "best_y"), [math.nan, 1.0, 1.0, 3.0, 3.0])
        np.testing.assert_array_equal(metric(found, "incumbent_f"), [math.nan, 10, 10, 30, 30])


def loop(rows: pd.DataFrame, name: str) -> list[float]:
    """Return a derived metric of each row, one row after another."""
    values, records = [], rows.to_dict("records")
    for row in records:
        past = [
            other
            for other in records
            if other["seed"] == row["seed"] and other["iteration"] > 0 and other["evaluation"] <= row["evaluation"]
        ]
        if row["iteration"] == 0:
            values.append(0.0 if name == "queries_to_optimum" else np.nan)
        elif name == "queries_to_optimum":
            before = [other for other in records if other["seed"] == row["seed"]]
            bests = np.maximum.accumulate([other["f"] for other in before])
            missing = zip(bests[:-1] < row["optimum"], before[1:], strict=True)
            asked = [other for wanted, other in missing if wanted and other["iteration"] > 0]
            values.append(sum(other["evaluation"] <= row["evaluation"] for other in asked))
        elif name == "best_query":
            values.append(max(other["f"] for other in past))
        elif name == "cumulative_regret":
            values.append(sum(other["optimum"] - other["f"] for other in past))
        elif name == "cumulative_regret_area":
            sums = np.cumsum([other["optimum"] - other["f"] for other in past])
            values.append(np.mean(sums))
        elif name.startswith(("ranking_regret", "recommended", "log_recommended", "inference", "failed_searches")):
            values.append(np.nan)  # no table, no notes
        elif name == "vacuous_sets":
            values.append(np.mean([np.isinf(other["width"][0]) for other in past]))
        elif name == "query_coverage":
            values.append(np.mean([other["covered"][0] for other in past]))
        elif name == "mean_nominal_coverage":
            values.append(np.mean([1 - other["alpha"][0] for other in past]))
        elif name == "relative_optimum_width":
            values.append(row["optimum_width"][0] / row["holdout_width"][0])
        elif name == "f_coverage":
            values.append(np.mean([other["f_covered"][0] for other in past]))
        elif "miscoverage" in name:
            f = name.startswith("f_")
            missed = np.mean([1 - other["f_covered" if f else "covered"][0] for other in past])
            values.append(missed - (0.8 if f else 0.7) * name.endswith("bound"))
        elif name.startswith("query_coverage_"):
            gap = np.mean([other["covered"][0] - (1 - other["alpha"][0]) for other in past])
            values.append(abs(gap) if name.endswith("error") else gap)
        elif name.startswith("end_coverage"):
            at_ends = np.mean([other["end_coverage"][0] for other in past])
            values.append(at_ends - name.endswith("gap") * np.mean([1 - other["alpha"][0] for other in past]))
        elif name.startswith("holdout_coverage_"):
            gap = row["holdout_coverage"][0] - (1 - row["alpha"][0])
            values.append(abs(gap) if name.endswith("error") else gap)
        elif name in SECONDS:
            values.append(row[name])
        else:
            values.append(
                {
                    "holdout_coverage": row["holdout_coverage"],
                    "set_width": row["width"],
                    "holdout_width": row["holdout_width"],
                    "optimum_width": row["optimum_width"],
                    "near_width": row["near_width"],
                    "far_width": row["far_width"],
                    "nominal_coverage": [1 - row["alpha"][0]],
                }[name][0]
            )
    return values


IN_THE_LOOP = sorted(METRICS.keys() - CONSTRAINED - SEVERAL - OF_RECORD - bests([], [], [], 0.0).keys())


class TestMetric:
    @pytest.mark.parametrize("name", IN_THE_LOOP)
    def test_each_derived_one_is_what_a_loop_says(self, rows: pd.DataFrame, name: str) -> None:
        found = metric(rows, name)
        assert found.index.tolist() == rows.index.tolist()
        np.testing.assert_allclose(found, loop(rows, name), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("name", sorted(OF_RECORD))
    def test_each_other_is_a_column(self, rows: pd.DataFrame, name: str) -> None:
        np.testing.assert_array_equal(metric(rows, name), rows[name])

    def test_notes_are_metrics(self, rows: pd.DataFrame) -> None:
        assert metric(rows, "notes.jitter").tolist() == [1e-6] * len(rows)
        assert metric(rows, "notes.no_such").isna().all()

    def test_an_unknown_one_is_answered_with_the_nearest(self, rows: pd.DataFrame) -> None:
        with pytest.raises(PlumblineError, match="unknown metric 'regrets': did you mean 'regret'"):
            metric(rows, "regrets")
        with pytest.raises(PlumblineError, match="set_width"):
            by_round(rows, "width")
        with pytest.raises(PlumblineError, match="did you mean 'hypervolume'"):
            check_metric("hypervolum")
        with pytest.raises(PlumblineError, match=r"unknown metric 'notes\.'"):
            check_metric("notes.")
        check_metric("notes.anything")

    @pytest.mark.parametrize("name", METRICS)
    def test_methods_without_a_model_have_no_accident(self, name: str) -> None:
        found = frame(made.trial(model=False))
        assert len(metric(found, name)) == len(found)

    @pytest.mark.parametrize("name", [*METRICS, "notes.jitter"])
    def test_each_reads_the_columns_that_it_names_and_no_others(self, rows: pd.DataFrame, name: str) -> None:
        few = rows[["seed", "iteration", "evaluation", *find_metric(name).columns]]
        pd.testing.assert_series_equal(metric(few, name), metric(rows, name))
        assert {*find_metric(name).columns} <= {*RECORD.names, *SECONDS}

    @pytest.mark.parametrize("name", METRICS)
    def test_each_says_what_it_is(self, name: str) -> None:
        assert METRICS[name].name == name
        assert METRICS[name].summary

    def test_columns_of_several(self) -> None:
        assert columns_of(["regret", "nll", "notes.x"]) == ("f", "roles", "optimum", "nll", "notes")
        with pytest.raises(PlumblineError, match="unknown metric"):
            columns_of(["regrets"])

    def test_levels_that_change_are_averaged(self) -> None:
        trial = made.trial(rounds=3)
        for row, alpha in zip(trial[made.INITIAL :], (0.5, 0.3, 0.1), strict=True):
            row["alpha"] = [alpha, 0.05]
        found = frame(trial)
        np.testing.assert_allclose(by_round(found, "mean_nominal_coverage").to_numpy(), [[0.5, 0.6, 0.7]])
        np.testing.assert_allclose(by_round(found, "nominal_coverage").to_numpy(), [[0.5, 0.7, 0.9]])


class TestByRound:
    @pytest.mark.parametrize("name", METRICS)
    def test_each_metric_is_what_a_loop_says(self, rows: pd.DataFrame, name: str) -> None:
        values = metric(rows, name)
        found = by_round(rows, name)
        for seed in (0, 1, 2):
            for iteration in range(5):
                of_round = values[(rows["seed"] == seed) & (rows["iteration"] == iteration)].to_list()
                if np.isnan(of_round).all():
                    assert iteration not in found
                    continue
                expected = np.mean(of_round) if METRICS[name].kind == "query" else of_round[-1]
                assert found.loc[seed, iteration] == pytest.approx(expected, rel=1e-12)

    def test_rows_are_seeds_and_columns_are_rounds(self, rows: pd.DataFrame) -> None:
        regret = by_round(rows, "regret")
        assert regret.index.tolist() == [0, 1, 2]
        assert regret.columns.tolist() == [0, 1, 2, 3, 4]
        assert by_round(rows, "nll").columns.tolist() == [1, 2, 3, 4]

    def test_a_running_value_stands_until_there_is_another(self) -> None:
        gap, whole = made.trial(seed=0, rounds=4), made.trial(seed=1, rounds=4)
        gap[made.INITIAL + 2]["pit"] = None
        found = by_round(frame(gap, whole), "calibration_score")
        assert found.loc[0, 3] == found.loc[0, 2]
        assert not found.isna().any(axis=None)

    def test_a_method_without_a_model_has_no_rounds_to_show(self) -> None:
        found = frame(made.trial(model=False))
        assert by_round(found, "calibration_score").size == 0
        assert by_round(found, "regret").size > 0


@pytest.mark.slow
def test_a_million_and_a_half_rows_are_seconds() -> None:
    """Twenty seeds of eighty thousand evaluations: none of the metrics loops over rows."""
    seeds, n = 20, 80_000
    rng = np.random.default_rng(0)
    f, pit = rng.normal(size=seeds * n), rng.uniform(size=seeds * n)
    evaluation = np.tile(np.arange(n), seeds)
    rows = pd.DataFrame(
        {
            "seed": np.repeat(np.arange(seeds), n),
            "evaluation": evaluation,
            "iteration": (evaluation + 19) // 20,
            "y": f + 0.1,
            "f": f,
            "pit": pit,
            "optimum": 5.0,
            "roles": [["objective"]] * (seeds * n),
        }
    )
    started = time.process_time()
    for name in ("best_f", "incumbent_regret", "cumulative_regret", "calibration_score"):
        assert by_round(rows, name).shape[0] == seeds
    assert time.process_time() - started < 20


@pytest.mark.slow
def test_no_metric_loads_torch(one_core: dict[str, str]) -> None:
    code = "import sys, plumbline.metrics.registry; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env=one_core, check=True)

"""Metrics against slow loops: what the trials themselves once recorded, row by row, to the last digit."""

import math
import subprocess
import sys
import time
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.forecasts.calibration_score import calibration_score
from plumbline.metrics.frames import frame_of
from plumbline.metrics.registry import METRICS, by_round, check_metric, columns_of, find_metric, metric
from plumbline.problems.tabular import places
from plumbline.store.records import RECORD, SECONDS

Row = dict[str, Any]
CONSTRAINED = {"violation", "feasible", "penalty_regret", "log_penalty_regret"}
SEVERAL = {"hypervolume"}
OF_RECORD = {"nll", "crps", "pit", "predicted_mean", "predicted_sd"}


def frame(*trials: list[Row]) -> pd.DataFrame:
    """Return the rows of trials as the analysis has them in memory."""
    return frame_of(made.table(row for rows in trials for row in rows))


@pytest.fixture(params=[1, 3], ids=["q1", "q3"])
def rows(request: pytest.FixtureRequest) -> pd.DataFrame:
    """Three seeds of one method on one task, not in order of seeds."""
    return frame(*(made.trial(seed=seed, rounds=4, q=request.param) for seed in (2, 0, 1)))


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
        elif name.startswith(("ranking_regret", "recommended", "log_recommended", "inference")):
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


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.integers(0, 6), min_size=7, max_size=14), st.integers(0, 99), st.integers(1, 5))
def test_regret_against_the_best_row_left_is_what_a_loop_over_the_table_says(
    table: list[int], seed: int, rounds: int
) -> None:
    """Values with ties; the worst two come first, then others in any order."""
    values = torch.tensor(sorted(table), dtype=torch.float64)
    order = (2 + np.random.default_rng(seed).permutation(len(values) - 2)[:rounds]).tolist()
    trial = made.trial(rounds=rounds, optimum=float(values.max()))
    queries, notes = trial[made.INITIAL :], places(values)
    left, total, expected = values[2:].tolist(), 0.0, []
    for row, place in zip(queries, order, strict=True):
        f = values[place].item()
        row |= {"f": [f], "notes": {f"problem.{name}": x for name, x in notes(Tensor(), values[[place], None]).items()}}
        total += max(left) - f
        left.remove(f)
        expected.append(total)
    found = frame(trial)
    assert by_round(found, "ranking_regret").to_numpy()[0].tolist() == pytest.approx(expected)
    areas = np.cumsum(expected) / np.arange(1, rounds + 1)
    assert by_round(found, "ranking_regret_area").to_numpy()[0].tolist() == pytest.approx(areas)


def test_sets_that_are_the_whole_line_are_vacuous() -> None:
    trial = made.trial(rounds=3)
    for row, width in zip(trial[made.INITIAL :], (math.inf, 2.0, math.inf), strict=True):
        row["width"] = [width, 1.0]
    np.testing.assert_allclose(by_round(frame(trial), "vacuous_sets").to_numpy(), [[1.0, 0.5, 2 / 3]])


def several(F: np.ndarray, roles: list[str], seed: int = 0, ref_point: list[float] | None = None) -> list[Row]:
    """Return a trial with these noise-free outcomes, observed without noise."""
    trial = made.trial(seed=seed, rounds=len(F) - made.INITIAL, optimum=1.0, model=False)
    for row, f in zip(trial, F, strict=True):
        row |= {"y": list(f), "f": list(f), "roles": roles, "ref_point": ref_point}
    return trial


def test_the_best_query_forgets_what_was_known() -> None:
    known, asked = [3.0, 0.5], [-1.0, 0.7, 0.2]
    F = np.array([*known, *asked])[:, None]
    found = frame(several(F, ["objective"]), several(-F, ["objective"], seed=1))
    assert len(known) == made.INITIAL
    nothing = [np.nan] * made.INITIAL
    np.testing.assert_array_equal(metric(found, "best_query"), [*nothing, -1.0, 0.7, 0.7, *nothing, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(by_round(found, "best_query").iloc[:, -1], [0.7, 1.0])
    assert metric(frame(several(F[: made.INITIAL], ["objective"])), "best_query").isna().all(), "no queries"


class TestConstraints:
    ROLES = ("objective", "at_least_zero", "zero")
    F = np.array([[0.9, -0.5, 0.0], [0.8, 0.1, 0.25], [0.2, 0.0, 0.0], [0.5, 2.0, -1e-5], [0.7, -0.1, -0.2]])

    def test_violation_is_shortfalls_and_absolute_equalities(self) -> None:
        found = frame(several(self.F, list(self.ROLES)))
        np.testing.assert_allclose(metric(found, "violation"), [0.5, 0.25, 0.0, 1e-5, 0.3])
        assert metric(found, "feasible").tolist() == [0, 0, 1, 1, 0]

    def test_bests_are_of_feasible_points_and_none_before_the_first(self) -> None:
        found = frame(several(self.F, list(self.ROLES)))
        for name in ("best_f", "best_y", "incumbent_f"):
            np.testing.assert_array_equal(metric(found, name), [np.nan, np.nan, 0.2, 0.5, 0.5], err_msg=name)
        np.testing.assert_allclose(metric(found, "regret"), [np.nan, np.nan, 0.8, 0.5, 0.5])

    def test_the_penalty_adds_violation_to_regret(self) -> None:
        found = frame(several(self.F, list(self.ROLES)))
        np.testing.assert_allclose(metric(found, "penalty_regret"), [0.6, 0.45, 0.45, 0.45, 0.45])

    def test_better_than_the_optimum_at_the_cost_of_a_constraint_is_no_gain(self) -> None:
        found = frame(several(np.array([[3.0, -0.5], [0.0, 1.0]]), ["objective", "at_least_zero"]))
        np.testing.assert_allclose(metric(found, "penalty_regret"), [0.5, 0.5])

    def test_its_logarithm_has_a_floor(self) -> None:
        found = frame(several(np.array([[0.9, -0.9], [1.0, 0.0]]), ["objective", "at_least_zero"]))
        np.testing.assert_allclose(metric(found, "log_penalty_regret"), [0.0, -12.0], atol=1e-12)

    def test_a_constraint_that_was_not_observed_may_fail(self) -> None:
        trial = several(self.F[:, :2], ["objective", "at_least_zero"])
        for row in trial:
            row["y"] = [row["y"][0], math.nan]
        assert metric(frame(trial), "best_y").isna().all()

    def test_what_is_recommended_is_judged_by_all_that_is_true_of_it(self) -> None:
        """After a round, the point that the next one names; after the last, none."""
        trials = [several(self.F, list(self.ROLES), seed) for seed in (1, 0)]
        for rows in trials:
            for row, place in zip(rows[made.INITIAL :], (1, 0, 3), strict=True):
                row["notes"] = {"recommended": float(place)}
                row["y"] = [math.nan, row["y"][1], math.nan]
        found = frame(*trials)
        expected = [0.45, 0.6, 0.5 + 1e-5, np.nan]  # after the initial design, and rounds 1 to 3
        for seed in (0, 1):
            regrets = by_round(found, "recommended_regret").loc[seed]
            np.testing.assert_allclose(regrets, expected[:3])
            logs = metric(found, "log_recommended_regret")[found["seed"] == seed]
            np.testing.assert_allclose(logs, np.log10([0.45, *expected]))

    @pytest.mark.parametrize("name", sorted(CONSTRAINED))
    def test_without_constraints_there_is_nothing_to_say(self, rows: pd.DataFrame, name: str) -> None:
        assert metric(rows, name).isna().all()


class TestOptimum:
    def test_what_is_held_to_be_the_optimum_is_judged_by_its_value(self) -> None:
        trials = [made.trial(seed=seed, optimum=1.5) for seed in (0, 1)]
        for rows, value in zip(trials, (1.25, 1.0), strict=True):
            rows[-1]["notes"] = {"recommended_f": value}
        found = by_round(frame(*trials), "inference_regret")
        assert found.columns.tolist() == [made.ROUNDS]
        assert found[made.ROUNDS].tolist() == [0.25, 0.5]

    def test_queries_count_until_the_optimum_is_found(self) -> None:
        """After two of the initial design; a second seed never finds it, a third begins with it."""
        values = [[0.0, 0.5, 0.7, 1.0, 0.2], [0.0, 0.5, 0.7, 0.9, 0.2], [1.0, 0.5, 0.7, 1.0, 0.2]]
        trials = [made.trial(seed=seed, rounds=3, optimum=1.0) for seed in range(3)]
        for rows, f in zip(trials, values, strict=True):
            for row, value in zip(rows, f, strict=True):
                row["f"] = [value]
        found = by_round(frame(*trials), "queries_to_optimum")
        assert found.to_numpy().tolist() == [[0, 1, 2, 2], [0, 1, 2, 3], [0, 0, 0, 0]]

    def test_a_query_that_failed_was_one_too(self) -> None:
        rows = made.trial(rounds=3, optimum=1.0)
        for row, value in zip(rows, (math.nan, math.nan, math.nan, 1.0, 0.5), strict=True):
            row["f"] = [value]
        assert by_round(frame(rows), "queries_to_optimum").to_numpy().tolist() == [[0, 1, 2, 2]]

    def test_an_optimum_that_is_not_known_is_not_found(self) -> None:
        assert metric(frame(made.trial(optimum=math.nan)), "queries_to_optimum").isna().all()


class TestHypervolume:
    @pytest.mark.parametrize(("m", "n"), [(2, 200), (3, 120), (4, 60)])
    def test_it_is_what_botorch_says_of_all_points_so_far(self, m: int, n: int) -> None:
        import torch
        from botorch.utils.multi_objective.hypervolume import Hypervolume
        from botorch.utils.multi_objective.pareto import is_non_dominated

        ref_point = [-0.5] * m
        trials = [
            several(np.random.default_rng([m, seed]).normal(size=(n, m)), ["objective"] * m, seed, ref_point)
            for seed in (1, 0)
        ]
        found = frame(*trials)
        for trial in trials:
            F = torch.tensor([row["f"] for row in trial], dtype=torch.float64)
            volume = Hypervolume(torch.tensor(ref_point, dtype=torch.float64))
            expected = [volume.compute(F[: i + 1][is_non_dominated(F[: i + 1])]) for i in range(n)]
            mine = metric(found, "hypervolume")[found["seed"] == trial[0]["seed"]]
            np.testing.assert_allclose(mine, expected, rtol=1e-12, atol=0)

    def test_points_that_violate_a_constraint_do_not_count(self) -> None:
        F = np.array([[2.0, 2.0, -1.0], [1.0, 1.0, 1.0], [2.0, 0.5, 0.0]])
        found = frame(several(F, ["objective", "objective", "at_least_zero"], ref_point=[0.0, 0.0]))
        np.testing.assert_allclose(metric(found, "hypervolume"), [0.0, 1.0, 1.5])

    def test_several_objectives_have_no_best_and_no_regret(self) -> None:
        found = frame(several(np.ones((3, 2)), ["objective"] * 2, ref_point=[0.0, 0.0]))
        for name in ("best_y", "best_f", "incumbent_f", "regret", "instant_regret", "cumulative_regret"):
            assert metric(found, name).isna().all(), name

    def test_one_objective_has_no_volume(self, rows: pd.DataFrame) -> None:
        assert metric(rows, "hypervolume").isna().all()


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

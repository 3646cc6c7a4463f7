"""What every kind of table must do; a new kind is noticed here and asks for an example."""

from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.draw import tabulate
from plumbline.analysis.evidence import Evidence
from plumbline.analysis.outputs import tables
from plumbline.calibration.diagnostics import calibration_score
from plumbline.errors import PlumblineError
from plumbline.plan import Plan

KINDS = list(tables.entries())


def example(kind: str) -> dict[str, Any]:
    if kind not in made.TABLES:
        pytest.fail(f"table {kind!r} has no example: add its options to TABLES in {made.__file__}")
    return made.TABLES[kind]


def plan_of(kind: str, **changes: Any) -> Plan:
    return made.plan({"E": made.experiment(table={"kind": kind, "options": example(kind) | changes})})


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_it_is_a_table_that_survives_csv(self, kind: str, found: Evidence, folder: Path) -> None:
        table = tabulate(plan_of(kind), "E", found)
        assert len(table)
        assert table.columns.is_unique
        table.to_csv(folder / "E.csv", index=False)
        assert pd.read_csv(folder / "E.csv").columns.tolist() == table.columns.tolist()

    def test_it_repeats_itself(self, kind: str, found: Evidence) -> None:
        pd.testing.assert_frame_equal(*(tabulate(plan_of(kind), "E", found) for _ in range(2)))

    def test_a_typo_in_its_options_is_one_line(self, kind: str, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="table of E: unknown field 'rows'"):
            tabulate(plan_of(kind, rows=3), "E", found)


class TestFinalValues:
    def test_mean_and_standard_error_at_the_last_round(self, found: Evidence) -> None:
        table = tabulate(plan_of("final-values"), "E", found)
        assert table[["task", "method"]].to_numpy().tolist() == [[p, m] for p in made.TASKS for m in made.METHODS]
        assert (table["seeds"] == made.SEEDS).all()
        ends = [made.falling(seed, made.INITIAL + made.ROUNDS - 1) for seed in range(made.SEEDS)]
        calibrated = table[table["method"] == "calibrated"].iloc[0]
        assert calibrated["regret"] == pytest.approx(np.mean(ends))
        assert calibrated["regret ±"] == pytest.approx(np.std(ends, ddof=1) / np.sqrt(made.SEEDS))
        scores = [
            calibration_score([row["pit"] for row in made.trial(method="calibrated", seed=seed)[made.INITIAL :]])
            for seed in range(made.SEEDS)
        ]
        assert calibrated["calibration_score"] == pytest.approx(np.mean(scores))

    def test_medians_and_seeds_above_a_level(self, found: Evidence) -> None:
        ends = [made.falling(seed, made.INITIAL + made.ROUNDS - 1) for seed in range(made.SEEDS)]
        level = sorted(ends)[1]
        options = {"metrics": ["regret", "nll"], "medians": ["regret"], "above": {"regret": level}}
        table = tabulate(plan_of("final-values", **options), "E", found)
        assert table.columns[3:7].tolist() == ["regret", "regret ±", "regret median", f"seeds above {level:g}"]
        calibrated = table[table["method"] == "calibrated"].iloc[0]
        assert calibrated["regret median"] == pytest.approx(np.median(ends))
        assert calibrated[f"seeds above {level:g}"] == made.SEEDS - 2

    def test_a_median_of_no_column_is_one_line(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="are no columns of the table"):
            tabulate(plan_of("final-values", metrics=["regret"], medians=["nll"]), "E", found)

    def test_metrics_of_one_query_are_averaged_over_the_run(self, found: Evidence) -> None:
        table = tabulate(plan_of("final-values"), "E", found)
        rows = found.trials("bowl", "plain")
        assert table["nll"].iloc[0] == pytest.approx(rows.groupby("seed")["nll"].mean().mean())

    def test_seconds_are_the_median_over_rounds(self, found: Evidence) -> None:
        table = tabulate(plan_of("final-values"), "E", found)
        expected = np.median([0.25 + 0.05 * iteration for iteration in range(1, made.ROUNDS + 1)])
        assert table["seconds a round"].iloc[0] == pytest.approx(expected)

    def test_what_a_method_does_not_have_is_left_blank(self, folder: Path) -> None:
        trials = [made.trial(method="random", seed=s, model=False) for s in range(2)]
        table = tabulate(plan_of("final-values"), "E", made.read(folder, *trials))
        assert table[["nll", "nll ±", "calibration_score"]].isna().all(axis=None)
        assert table["regret"].notna().all()

    def test_rounds_without_a_forecast_blank_nothing_and_are_counted(self, folder: Path) -> None:
        trials = [made.trial(seed=s) for s in range(2)] + [made.trial(method="random", model=False)]
        for row in trials[0][-2:]:
            row["nll"] = row["pit"] = None
        table = tabulate(plan_of("final-values"), "E", made.read(folder, *trials))
        there = [np.mean([row["nll"] for row in rows if row.get("nll") is not None]) for rows in trials[:2]]
        assert table["nll"].iloc[0] == pytest.approx(np.mean(there))
        assert table["nll rounds"].tolist() == [f"{made.ROUNDS - 1} of {made.ROUNDS}", ""]
        assert table["calibration_score"].notna().tolist() == [True, False]

    def test_failed_trials_do_not_count(self, found: Evidence, found_with_failures: Evidence) -> None:
        pd.testing.assert_frame_equal(
            tabulate(plan_of("final-values"), "E", found_with_failures), tabulate(plan_of("final-values"), "E", found)
        )

    def test_an_unknown_metric_is_one_line(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="unknown metric 'regrets'"):
            tabulate(plan_of("final-values", metrics=["regrets"]), "E", found)


class TestSearchSpace:
    def test_it_is_the_configuration_in_words(self, found: Evidence) -> None:
        table = tabulate(plan_of("search-space"), "E", found)
        assert table.to_numpy().tolist() == [
            ["oven", "0.0001", "0.1", "Continuous (log-scale)"],
            ["eggs", "1", "12", "Discrete (step size 1)"],
        ]

    def test_an_unknown_space_is_answered_with_the_nearest(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="unknown search space 'kitchn': did you mean 'kitchen'"):
            tabulate(plan_of("search-space", space="kitchn"), "E", found)

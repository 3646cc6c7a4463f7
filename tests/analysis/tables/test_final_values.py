"""Values at the last round."""

from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from table_cases import experiment_of

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import tabulate
from plumbline.analysis.outputs.kinds import tables
from plumbline.core.errors import PlumblineError
from plumbline.forecasts.calibration_score import calibration_score


class TestFinalValues:
    def test_mean_and_standard_error_at_the_last_round(self, found: Evidence) -> None:
        table = tabulate(experiment_of("final-values"), found)
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
        table = tabulate(experiment_of("final-values", **options), found)
        assert table.columns[3:7].tolist() == ["regret", "regret ±", "regret median", f"seeds above {level:g}"]
        calibrated = table[table["method"] == "calibrated"].iloc[0]
        assert calibrated["regret median"] == pytest.approx(np.median(ends))
        assert calibrated[f"seeds above {level:g}"] == made.SEEDS - 2

    def test_values_of_others_stand_beside_ours_with_their_reading_error(self, found: Evidence) -> None:
        theirs = {"task": "bowl", "method": "calibrated", "metric": "regret", "value": 3.5, "error": 0.2}
        table = tabulate(experiment_of("final-values", published=[theirs]), found).set_index(["task", "method"])
        columns = ["regret published", "regret published ±"]
        assert table.loc[("bowl", "calibrated"), columns].tolist() == [3.5, 0.2]
        assert table.drop(index=("bowl", "calibrated"))[columns].isna().all(axis=None)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"metric": "crps"}, "are no columns of the table"),
            ({"error": -1.0}, "error"),
        ],
    )
    def test_values_of_others_are_of_what_there_is(self, found: Evidence, change: dict[str, Any], message: str) -> None:
        theirs = {"task": "bowl", "method": "plain", "metric": "regret", "value": 3.5, "error": 0.2} | change
        with pytest.raises(PlumblineError, match=message):
            tabulate(experiment_of("final-values", published=[theirs]), found)

    def test_a_median_of_no_column_is_one_line(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="are no columns of the table"):
            tabulate(experiment_of("final-values", metrics=["regret"], medians=["nll"]), found)

    def test_metrics_of_one_query_are_averaged_over_the_run(self, found: Evidence) -> None:
        table = tabulate(experiment_of("final-values"), found)
        rows = found.trials("bowl", "plain")
        assert table["nll"].iloc[0] == pytest.approx(rows.groupby("seed")["nll"].mean().mean())

    def test_seconds_are_the_median_over_rounds(self, found: Evidence) -> None:
        table = tabulate(experiment_of("final-values"), found)
        expected = np.median([0.25 + 0.05 * iteration for iteration in range(1, made.ROUNDS + 1)])
        assert table["seconds a round"].iloc[0] == pytest.approx(expected)

    def test_what_a_method_does_not_have_is_left_blank(self, folder: Path) -> None:
        trials = [made.trial(method="random", seed=s, model=False) for s in range(2)]
        table = tabulate(experiment_of("final-values"), made.read(folder, *trials))
        assert table[["nll", "nll ±", "calibration_score"]].isna().all(axis=None)
        assert table["regret"].notna().all()

    def test_rounds_without_a_forecast_blank_nothing_and_are_counted(self, folder: Path) -> None:
        trials = [made.trial(seed=s) for s in range(2)] + [made.trial(method="random", model=False)]
        for row in trials[0][-2:]:
            row["nll"] = row["pit"] = None
        table = tabulate(experiment_of("final-values"), made.read(folder, *trials))
        there = [np.mean([row["nll"] for row in rows if row.get("nll") is not None]) for rows in trials[:2]]
        assert table["nll"].iloc[0] == pytest.approx(np.mean(there))
        assert table["nll rounds"].tolist() == [f"{made.ROUNDS - 1} of {made.ROUNDS}", ""]
        assert table["calibration_score"].notna().tolist() == [True, False]

    def test_how_many_seeds_have_a_value_is_told_where_some_have_none(self, folder: Path) -> None:
        trials = [made.trial("bowl", method, seed) for method in ("plain", "calibrated") for seed in range(3)]
        for row in trials[1]:
            row["f"] = [float("nan")]
        evidence = made.read(folder, *trials)
        found = tabulate(experiment_of("final-values", metrics=["regret", "nll"]), evidence).set_index("method")
        assert found["seeds"].tolist() == [3, 3]
        assert found["regret seeds"].to_dict() == {"plain": 2, "calibrated": 3}
        assert "nll seeds" not in found
        ranks = tables["ranking"].options(metric="nll", averages=("regret", "nll"))
        found = tables["ranking"].build(evidence, ranks).set_index("method")
        assert found["regret seeds"].to_dict() == {"plain": 2, "calibrated": 3}
        assert "nll seeds" not in found
        comparison = {"task": "bowl", "methods": ["plain", "calibrated"], "costs": [2.0]}
        spent = experiment_of("at-equal-cost", comparisons=[comparison], metrics=["regret"])
        assert tabulate(spent, evidence)["regret seeds"].tolist() == [2, 3]

    def test_what_a_method_has_in_no_run_is_not_counted(self, folder: Path) -> None:
        trials = [made.trial("bowl", method, 0, model=method == "plain") for method in ("plain", "calibrated")]
        found = tabulate(experiment_of("final-values", metrics=["nll"]), made.read(folder, *trials))
        assert "nll seeds" not in found

    def test_failed_trials_do_not_count(self, found: Evidence, found_with_failures: Evidence) -> None:
        pd.testing.assert_frame_equal(
            tabulate(experiment_of("final-values"), found_with_failures),
            tabulate(experiment_of("final-values"), found),
        )

    def test_an_unknown_metric_is_one_line(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="unknown metric 'regrets'"):
            tabulate(experiment_of("final-values", metrics=["regrets"]), found)

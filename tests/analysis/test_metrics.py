from pathlib import Path

import made_evidence as made
import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.collect import evidence
from plumbline.analysis.metrics import COLUMNS, DERIVED, PER_QUERY, by_round, metric
from plumbline.errors import PlumblineError
from plumbline.records import RECORD

SOME_METRICS = sorted({*DERIVED, *COLUMNS})


@pytest.fixture(params=[1, 3], ids=["q1", "q3"])
def rows(request: pytest.FixtureRequest, folder: Path) -> pd.DataFrame:
    """Three seeds of one method on one problem, not in order of seeds."""
    trials = [made.trial(seed=seed, rounds=4, q=request.param) for seed in (2, 0, 1)]
    return evidence(made.write(folder / "rows.parquet", *trials)).rows


def loop(rows: pd.DataFrame, name: str) -> list[float]:
    """Return a derived metric of each row, one row after another."""
    values = []
    for row in rows.to_dict("records"):
        past = [
            other
            for other in rows.to_dict("records")
            if other["seed"] == row["seed"] and other["iteration"] > 0 and other["evaluation"] <= row["evaluation"]
        ]
        if row["iteration"] == 0:
            values.append(np.nan)
        elif name == "cumulative_regret":
            values.append(sum(other["instant_regret"] for other in past))
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
        elif name.startswith("holdout_coverage_"):
            gap = row["holdout_coverage"][0] - (1 - row["alpha"][0])
            values.append(abs(gap) if name.endswith("error") else gap)
        else:
            values.append(
                {
                    "holdout_coverage": row["holdout_coverage"],
                    "set_width": row["width"],
                    "holdout_width": row["holdout_width"],
                    "optimum_width": row["optimum_width"],
                    "nominal_coverage": 1 - row["alpha"],
                }[name][0]
            )
    return values


class TestMetric:
    @pytest.mark.parametrize("name", DERIVED)
    def test_each_derived_one_is_what_a_loop_says(self, rows: pd.DataFrame, name: str) -> None:
        found = metric(rows, name)
        assert found.index.tolist() == rows.index.tolist()
        np.testing.assert_allclose(found, loop(rows, name), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("name", COLUMNS)
    def test_each_other_is_a_column(self, rows: pd.DataFrame, name: str) -> None:
        pd.testing.assert_series_equal(metric(rows, name), rows[name])

    def test_all_numbers_of_a_record_are_metrics(self) -> None:
        doubles = [field.name for field in RECORD if str(field.type) == "double"]
        assert doubles == COLUMNS
        assert {"regret", "best_f", "nll", "calibration_score"} <= set(COLUMNS)

    def test_seconds_and_notes_are_metrics(self, rows: pd.DataFrame) -> None:
        seconds = metric(rows, "round_seconds")
        pd.testing.assert_series_equal(seconds[rows["iteration"] > 0], rows["round_seconds"][rows["iteration"] > 0])
        assert seconds[rows["iteration"] == 0].isna().all()
        assert metric(rows, "notes.jitter").tolist() == [1e-6] * len(rows)
        assert metric(rows, "notes.no_such").isna().all()

    def test_an_unknown_one_is_answered_with_the_nearest(self, rows: pd.DataFrame) -> None:
        with pytest.raises(PlumblineError, match="unknown metric 'regrets': did you mean 'regret'"):
            metric(rows, "regrets")
        with pytest.raises(PlumblineError, match="set_width"):
            by_round(rows, "width")

    @pytest.mark.parametrize("name", SOME_METRICS)
    def test_methods_without_a_model_have_no_accident(self, folder: Path, name: str) -> None:
        found = evidence(made.write(folder / "r.parquet", made.trial(model=False))).rows
        assert len(metric(found, name)) == len(found)

    def test_levels_that_change_are_averaged(self, folder: Path) -> None:
        trial = made.trial(rounds=3)
        for row, alpha in zip(trial[made.INITIAL :], (0.5, 0.3, 0.1), strict=True):
            row["alpha"] = [alpha, 0.05]
        found = evidence(made.write(folder / "r.parquet", trial)).rows
        np.testing.assert_allclose(by_round(found, "mean_nominal_coverage").to_numpy(), [[0.5, 0.6, 0.7]])
        np.testing.assert_allclose(by_round(found, "nominal_coverage").to_numpy(), [[0.5, 0.7, 0.9]])


class TestByRound:
    @pytest.mark.parametrize("name", SOME_METRICS)
    def test_each_metric_is_what_a_loop_says(self, rows: pd.DataFrame, name: str) -> None:
        values = metric(rows, name)
        found = by_round(rows, name)
        for seed in (0, 1, 2):
            for iteration in range(5):
                of_round = values[(rows["seed"] == seed) & (rows["iteration"] == iteration)].to_list()
                if np.isnan(of_round).all():
                    assert iteration not in found
                    continue
                expected = np.mean(of_round) if name in PER_QUERY else of_round[-1]
                assert found.loc[seed, iteration] == pytest.approx(expected, rel=1e-12)

    def test_rows_are_seeds_and_columns_are_rounds(self, rows: pd.DataFrame) -> None:
        regret = by_round(rows, "regret")
        assert regret.index.tolist() == [0, 1, 2]
        assert regret.columns.tolist() == [0, 1, 2, 3, 4]
        assert by_round(rows, "nll").columns.tolist() == [1, 2, 3, 4]

    def test_a_method_without_a_model_has_no_rounds_to_show(self, folder: Path) -> None:
        found = evidence(made.write(folder / "r.parquet", made.trial(model=False))).rows
        assert by_round(found, "calibration_score").size == 0
        assert by_round(found, "regret").size > 0

    def test_metrics_of_one_evaluation_are_metrics(self) -> None:
        assert set(PER_QUERY) <= {*DERIVED, *COLUMNS}

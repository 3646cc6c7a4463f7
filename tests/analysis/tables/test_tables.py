"""What every kind of table must do; a new kind is noticed here and asks for an example."""

from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import evidence_of, tabulate
from plumbline.analysis.outputs.kinds import tables
from plumbline.core.errors import PlumblineError
from plumbline.forecasts.calibration_score import calibration_score
from plumbline.study.resolved import ResolvedExperiment

KINDS = list(tables.entries())


def example(kind: str) -> dict[str, Any]:
    if kind not in made.TABLES:
        pytest.fail(f"table {kind!r} has no example: add its options to TABLES in {made.__file__}")
    return made.TABLES[kind]


def experiment_of(kind: str, **changes: Any) -> ResolvedExperiment:
    return made.plan({"E": made.experiment(table={"kind": kind, "options": example(kind) | changes})}).resolve("E")


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_it_is_a_table_that_survives_csv(self, kind: str, found: Evidence, folder: Path) -> None:
        table = tabulate(experiment_of(kind), found)
        assert len(table)
        assert table.columns.is_unique
        table.to_csv(folder / "E.csv", index=False)
        assert pd.read_csv(folder / "E.csv").columns.tolist() == table.columns.tolist()

    def test_it_repeats_itself(self, kind: str, found: Evidence) -> None:
        pd.testing.assert_frame_equal(*(tabulate(experiment_of(kind), found) for _ in range(2)))

    def test_a_typo_in_its_options_is_one_line(self, kind: str, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="table of E: unknown field 'rows'"):
            tabulate(experiment_of(kind, rows=3), found)


class TestAtEqualCost:
    def test_methods_are_told_where_the_first_of_them_ends(self, folder: Path) -> None:
        """One goes on for longer, and asks for every other observation only."""
        long = made.trial("bowl", "calibrated", 0, rounds=8)
        for row in long[made.INITIAL :: 2]:
            row["y"] = [float("nan")]
        trials = [made.trial("bowl", "plain", 0, rounds=3), long]
        comparison = {"task": "bowl", "methods": ["plain", "calibrated"], "costs": [2.0]}
        kind = tables["at-equal-cost"]
        options = kind.options.model_validate({"comparisons": [comparison], "metrics": ["instant_regret"]})
        found = kind.build(made.read(folder, *trials), options).set_index("method")
        assert found["spent"].tolist() == [10.0, 10.0]
        assert found["asked for"].tolist() == ["3", "3"]
        expected = [-trials[0][4]["f"][0], -long[made.INITIAL + 6]["f"][0]]
        np.testing.assert_allclose(found["instant_regret"], expected)

    def test_costs_of_other_outcomes_are_refused(self, found: Evidence) -> None:
        comparison = {"task": "bowl", "methods": ["plain"], "costs": [1.0, 2.0]}
        with pytest.raises(PlumblineError, match="2 costs of 1 outcomes"):
            tabulate(experiment_of("at-equal-cost", comparisons=[comparison]), found)


class TestRanking:
    def rows(self, folder: Path, ends: dict[tuple[str, str], list[float]]) -> pd.DataFrame:
        """Return the table of methods that end at these values, a seed each, by task and method."""
        trials = [
            made.trial(task, method, seed, regret=lambda s, i, end=end: end)
            for (task, method), values in ends.items()
            for seed, end in enumerate(values)
        ]
        return tables["ranking"].build(made.read(folder, *trials), tables["ranking"].options(averages=("regret",)))

    def test_the_mean_rank_is_over_tasks_and_seeds(self, folder: Path) -> None:
        found = self.rows(
            folder,
            {
                ("bowl", "plain"): [1.0, 1.0, 1.0, 1.0],
                ("bowl", "calibrated"): [2.0, 0.5, 0.5, 0.5],
                ("valley", "plain"): [3.0, 3.0, 3.0, 3.0],
                ("valley", "calibrated"): [3.0, 4.0, 1.0, 1.0],
            },
        ).set_index("method")
        # Alike values share the mean of their ranks.
        assert found["rank, bowl"].to_dict() == {"plain": 1.75, "calibrated": 1.25}
        assert found["rank, valley"].to_dict() == {"plain": 1.625, "calibrated": 1.375}
        assert found["mean rank"].to_dict() == {"plain": 1.6875, "calibrated": 1.3125}
        assert found.index.tolist() == ["calibrated", "plain"]
        assert (found["low"] < found["mean rank"]).all()
        assert (found["mean rank"] < found["high"]).all()
        assert found.loc["plain", "regret"] == pytest.approx(2.0)

    def test_tasks_and_seeds_that_not_all_have_do_not_count(self, folder: Path) -> None:
        found = self.rows(
            folder,
            {
                ("bowl", "plain"): [1.0, 1.0, 1.0],
                ("bowl", "calibrated"): [2.0, 2.0],
                ("valley", "plain"): [0.0, 0.0, 0.0],
            },
        ).set_index("method")
        assert (found["tasks"] == 1).all()
        assert (found["seeds"] == 2).all()
        assert found["mean rank"].to_dict() == {"plain": 1.0, "calibrated": 2.0}

    def test_one_seed_of_a_method_does_not_reduce_the_others_to_one(self, folder: Path) -> None:
        found = self.rows(
            folder,
            {
                ("bowl", "plain"): [1.0, 1.0, 1.0],
                ("bowl", "calibrated"): [2.0, 2.0, 0.5],
                ("bowl", "dear"): [0.0],
                ("valley", "plain"): [0.0, 0.0, 0.0],
                ("valley", "calibrated"): [1.0, 1.0, 1.0],
            },
        ).set_index("method")
        assert (found["seeds"] == 3).all()
        assert (found["tasks"] == 2).all(), "valley counts too: the method that is not ranked alone lacks it"
        assert found["mean rank"].to_dict() == pytest.approx({"plain": 7 / 6, "calibrated": 11 / 6})

    @pytest.mark.parametrize("seeds", [1, 2])
    def test_methods_of_one_seed_are_ranked_where_half_have_no_more(self, folder: Path, seeds: int) -> None:
        found = self.rows(folder, {("bowl", "plain"): [1.0] * seeds, ("bowl", "calibrated"): [2.0]})
        assert found["method"].tolist() == ["plain", "calibrated"]
        assert (found["seeds"] == 1).all()

    def test_ranks_by_another_metric_stand_beside(self, folder: Path) -> None:
        """Plain ends at less regret, and its best observation is the luckier one: of the worse point."""
        runs = {("bowl", "plain"): (1.0, 3.0), ("bowl", "calibrated"): (2.0, 2.0)}
        runs |= {("valley", method): (early, early) for (_, method), (early, _) in runs.items()}
        trials = [
            made.trial(task, method, seed, regret=lambda _, i, ends=ends: ends[i > 3])
            for (task, method), ends in runs.items()
            for seed in range(3)
        ]
        for row in (row for trial in trials[:6] for row in trial):
            row["y"] = [float(row["evaluation"])]  # the last one looks best
        ranking, evidence = tables["ranking"], made.read(folder, *trials)
        found = ranking.build(evidence, ranking.options(also=("incumbent_regret",))).set_index("method")
        assert found["mean rank"].to_dict() == {"plain": 1.0, "calibrated": 2.0}
        assert found["mean rank by incumbent_regret"].to_dict() == {"plain": 1.5, "calibrated": 1.5}
        assert found["rank by incumbent_regret, bowl"].to_dict() == {"plain": 2.0, "calibrated": 1.0}
        assert "rank by incumbent_regret, valley" not in found
        assert (found["low by incumbent_regret"] <= 1.5).all()

    def test_methods_that_recommend_nothing_have_no_rank_by_it(self, folder: Path) -> None:
        trials = [
            made.trial("bowl", method, seed, regret=lambda _, i, end=end: end)
            for method, end in {"plain": 2.0, "calibrated": 1.0, "random": 3.0}.items()
            for seed in range(3)
        ]
        for row in (row for trial in trials[:6] for row in trial):
            row["notes"] = {"recommended": 0.0}
        ranking, evidence = tables["ranking"], made.read(folder, *trials)
        found = ranking.build(evidence, ranking.options(also=("recommended_regret",))).set_index("method")
        assert found["mean rank"].to_dict() == {"calibrated": 1.0, "plain": 2.0, "random": 3.0}
        by = "mean rank by recommended_regret"
        assert found[by].drop("random").to_dict() == {"calibrated": 1.0, "plain": 2.0}
        assert found.loc["random", [by, f"low{by[9:]}", f"high{by[9:]}"]].isna().all()
        assert np.isnan(found.loc["random", "rank by recommended_regret, bowl"])

    def test_nothing_to_rank_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="nothing to rank"):
            self.rows(folder, {("bowl", "plain"): [1.0], ("valley", "calibrated"): [1.0]})


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


class TestSearchSpace:
    def test_it_is_the_configuration_in_words(self, found: Evidence) -> None:
        table = tabulate(experiment_of("search-space"), found)
        assert table.to_numpy().tolist() == [
            ["oven", "0.0001", "0.1", "Continuous (log-scale)"],
            ["eggs", "1", "12", "Discrete (step size 1)"],
        ]

    def test_an_unknown_space_is_answered_with_the_nearest(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="unknown search space 'kitchn': did you mean 'kitchen'"):
            tabulate(experiment_of("search-space", space="kitchn"), found)


class TestSettings:
    def row(self, **changes: Any) -> dict[str, Any]:
        return {"name": "jitter", "published": "0.01", "method": "calibrated", "path": "jitter"} | changes

    def test_what_is_given_and_what_is_left_at_its_default(self, found: Evidence) -> None:
        table = tabulate(experiment_of("settings"), found)
        assert table[["setting", "published", "ours", "same"]].to_numpy().tolist() == [
            ["jitter", "0.01", "0.01", "yes"],
            ["restarts", "10", "10", "yes"],
            ["rounds", "30", str(made.ROUNDS), "no"],
        ]

    def test_a_deep_option_that_is_given(self, found: Evidence) -> None:
        table = tabulate(experiment_of("settings", settings=[self.row(path="search.maxiter", published="200")]), found)
        assert table[["ours", "same"]].to_numpy().tolist() == [["5", "no"]]

    def test_a_part_of_the_budget(self, found: Evidence) -> None:
        row = {"name": "n0", "published": "2", "task": "forrester", "path": "initial.size"}
        assert tabulate(experiment_of("settings", settings=[row]), found)["ours"].tolist() == [str(made.INITIAL)]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"path": "jiter"}, "unknown option of calibrated 'jiter': did you mean 'jitter'"),
            ({"method": "calibratd"}, "unknown method 'calibratd'"),
            ({"method": "", "task": "forester", "path": "q"}, "unknown task 'forester'"),
            ({"method": "", "task": "forrester", "path": "round"}, "unknown part of the budget of forrester 'round'"),
            ({"task": "forrester"}, "give the `method` or the `task`"),
        ],
    )
    def test_mistakes_are_one_line(self, found: Evidence, change: dict[str, str], message: str) -> None:
        with pytest.raises(PlumblineError, match=message):
            tabulate(experiment_of("settings", settings=[self.row(**change)]), found)

    def test_the_library_in_use_is_what_evidence_has(self) -> None:
        plan = made.plan({"E": made.experiment(grid=[])})
        found = evidence_of(plan.resolve("E"), ())
        assert found.methods_in_use["calibrated"] == ("ei", {})
        assert found.budgets["forrester"]["rounds"] == made.ROUNDS


class TestWallClock:
    def test_minutes_are_those_of_whole_runs_without_the_initial_design(self, found: Evidence) -> None:
        table = tabulate(experiment_of("wall-clock"), found)
        expected = sum(0.25 + 0.05 * iteration for iteration in range(1, made.ROUNDS + 1)) / 60
        np.testing.assert_allclose(table["minutes"], expected)
        assert (table["rounds"] == made.ROUNDS).all()

    def test_ratios_are_to_the_baseline_ours_and_published(self, folder: Path) -> None:
        trials = [made.trial(method=m, seed=s) for m in made.METHODS for s in range(6)]
        for row in (row for rows in trials[6:] for row in rows):
            row["round_seconds"] *= 2
        table = tabulate(experiment_of("wall-clock"), made.read(folder, *trials)).set_index("method")
        assert table.loc["calibrated", ["ratio", "ratio low", "ratio high"]].tolist() == pytest.approx([2.0] * 3)
        assert table.loc["plain", "ratio"] == 1.0
        assert table.loc["calibrated", "published ratio"] == pytest.approx(1.45)

    def test_rounds_that_one_lacks_do_not_count(self, folder: Path) -> None:
        trials = [made.trial(method="plain", seed=s) for s in range(2)]
        trials += [made.trial(method="calibrated", seed=s, rounds=2) for s in range(2)]
        table = tabulate(experiment_of("wall-clock"), made.read(folder, *trials)).set_index("method")
        assert table.loc["calibrated", "ratio"] == pytest.approx(1.0)

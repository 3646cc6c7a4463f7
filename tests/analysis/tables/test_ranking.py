"""Mean ranks of methods."""

from pathlib import Path

import made_evidence as made
import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.outputs.kinds import tables
from plumbline.core.errors import PlumblineError


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

"""What single tests come to, and what stands beside it."""

from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from made_runs import Numbers, claim_test, runs

from plumbline.analysis.evidence.runs import Runs
from plumbline.analysis.verdicts.criterion import criterion, describe
from plumbline.analysis.verdicts.part_results import (
    effect,
    favourable,
    p_of_size,
    part_result,
    perfect,
    stuck_runs,
)
from plumbline.core.errors import PlumblineError
from plumbline.metrics.registry import by_round
from plumbline.statistics.over_seeds import Sample, infer
from plumbline.study.claims import Size, Stuck

TWO: Numbers = {
    ("bowl", "calibrated"): [1.0, 2.0, 3.0, 4.0],
    ("bowl", "plain"): [2.0, 4.0, 3.0, 8.0],
    ("valley", "calibrated"): [5.0, 5.0],
    ("valley", "plain"): [1.0, 1.0],
}


class TestMeasure:
    def test_by_hand(self) -> None:
        one = part_result(claim_test(), runs(TWO), "K")
        assert one.found.value == pytest.approx(-7 / 4)
        assert one.seeds == 4
        assert one.budget == "8 evaluations"

    @pytest.mark.parametrize(("of", "part"), [("last", 1.0), ("mean", 0.5), ("median", 0.25)])
    def test_it_is_of_the_number_that_is_asked_for(self, of: str, part: float) -> None:
        assert part_result(claim_test(of=of), runs(TWO), "K").found.value == pytest.approx(-7 / 4 * part)

    def test_a_baseline_of_another_task(self) -> None:
        across = claim_test(method="plain", baseline="plain", baseline_task="valley")
        one = part_result(across, runs(TWO), "K")
        assert one.found.value == pytest.approx((1 + 3) / 2)
        assert one.seeds == 2

    def test_without_a_baseline(self) -> None:
        assert part_result(claim_test(statistic="value", baseline=None), runs(TWO), "K").found.value == 2.5

    def test_several_tasks_in_one_sample(self) -> None:
        one = part_result(claim_test(also=("valley",)), runs(TWO), "K")
        assert one.found.value == pytest.approx((-7 + 8) / 6)
        assert one.seeds == 2, "of the task with the fewest"

    def test_several_budgets_are_a_range(self) -> None:
        tables = {"bowl": 160, "valley": 1000}

        def looked_up(task: str, method: str, metric: str) -> pd.DataFrame:
            return runs(TWO)(task, method, metric).assign(evaluations=tables[task])

        assert part_result(claim_test(also=("valley",)), looked_up, "K").budget == "160 to 1000 evaluations"

    def test_several_tasks_one_by_one(self) -> None:
        """Each with all of its seeds: on one the method is ahead in half a seed of four, on the other in all."""
        one = part_result(claim_test(statistic="consistent-wins", also=("valley",)), runs(TWO), "K")
        assert [len(table) for table in one.numbers] == [4, 2]
        assert one.found.value == 0.125

    def test_seeds_without_a_value_on_either_side_do_not_count(self) -> None:
        gappy = TWO | {("bowl", "plain"): [2.0, np.nan, 3.0], ("bowl", "calibrated"): [1.0, 2.0, np.nan, 4.0]}
        one = part_result(claim_test(), runs(gappy), "K")
        assert one.seeds == 1
        assert one.found.value == -1.0

    @pytest.mark.parametrize("statistic", ["difference", "consistent-wins"])
    def test_no_seed_on_both_sides_is_one_line(self, statistic: str) -> None:
        apart = TWO | {("bowl", "plain"): [np.nan] * 4}
        with pytest.raises(PlumblineError, match=r"K\.1: no seed of 'calibrated' and 'plain' on 'bowl' has regret"):
            part_result(claim_test(statistic=statistic), runs(apart), "K.1")
        with pytest.raises(PlumblineError, match=r"K\.1: no seed of 'plain' on 'bowl' has regret"):
            part_result(claim_test(statistic="value", method="plain", baseline=None), runs(apart), "K.1")

    def test_rounds_without_values_are_said(self) -> None:
        assert (
            part_result(claim_test(), runs(TWO, rounds=4.5), "K").budget == "8 evaluations, values in 4.5 of 6 rounds"
        )

    def test_a_method_that_is_looked_at_early(self, folder: Path) -> None:
        """Halfway it is where it was after three rounds; its baseline is where it ended."""
        from plumbline.analysis.evidence.runs import runs_of

        test = claim_test(after=0.5)
        assert [metric for _, _, metric in test.runs] == ["regret@0.5", "regret"]
        evidence = made.read(
            folder, *(made.trial(method=name, seed=seed) for name in made.METHODS for seed in range(4))
        )
        one = part_result(test, Runs(runs_of(evidence, test.runs)), "K")
        ours, theirs = (by_round(evidence.trials("bowl", name), "regret") for name in ("calibrated", "plain"))
        assert one.found.value == pytest.approx((ours[made.ROUNDS // 2] - theirs[made.ROUNDS]).mean())
        assert one.budget == f"{made.INITIAL + made.ROUNDS // 2} evaluations"
        assert "calibrated, after 0.5 of its rounds - plain" in describe(criterion(test))

    def test_from_records(self, folder: Path) -> None:
        from plumbline.analysis.evidence.runs import runs_of

        trials = [made.trial(method=name, seed=seed) for name in made.METHODS for seed in range(6)]
        for seed in range(6):
            trials[seed][made.INITIAL + 2]["nll"] = None
        there = Runs(runs_of(made.read(folder, *trials), [("bowl", name, "nll") for name in made.METHODS]))
        one = part_result(claim_test(metric="nll", of="mean", method="plain", baseline="calibrated"), there, "K")
        means = {
            name: np.array(
                [
                    np.mean([row["nll"] for row in rows if row.get("nll") is not None])
                    for rows in trials
                    if rows[0]["method"] == name
                ]
            )
            for name in made.METHODS
        }
        assert one.found.value == pytest.approx(np.mean(means["plain"] - means["calibrated"]))
        assert one.budget.endswith(f" evaluations, values in {made.ROUNDS - 1} of {made.ROUNDS} rounds")


class TestFacts:
    METHOD = np.array([0.9, 0.8, 0.5, 0.7])
    BASELINE = np.array([0.6, 0.7, 0.7, 0.7])

    def facts(self, statistic: str, **changes: Any) -> tuple[float, float, float]:
        test = claim_test(statistic=statistic, **changes)
        found = infer(statistic, [Sample(self.METHOD, self.BASELINE)], test.location, "a", test.options)
        return found.median, favourable(test, found), effect(test, found)

    def test_of_a_difference(self) -> None:
        gaps = self.METHOD - self.BASELINE
        median, side, size = self.facts("difference", direction="greater")
        assert (median, side) == pytest.approx((0.05, 2.5 / 4))
        assert size == pytest.approx(gaps.mean() / gaps.std(ddof=1))
        assert self.facts("difference")[1] == pytest.approx(1.5 / 4), "less: the other side, ties by half"

    def test_of_a_distance_it_is_distances_that_count(self) -> None:
        """From .7: .2, .1, .2, 0 against .1, 0, 0, 0."""
        median, side, _ = self.facts("distance-difference", options={"level": 0.7})
        assert (median, side) == pytest.approx((0.1, 0.125))

    def test_of_a_ratio_it_is_seeds_beyond_the_threshold(self) -> None:
        """Ratios 1.5, 1.14, .71 and 1."""
        median, side, size = self.facts("ratio", direction="greater", threshold=1.1)
        assert median == pytest.approx((1 + 8 / 7) / 2)
        assert side == 0.5
        gaps = self.METHOD - 1.1 * self.BASELINE
        assert size == pytest.approx(gaps.mean() / gaps.std(ddof=1))

    def test_of_shares_it_is_the_share(self) -> None:
        median, side, size = self.facts("share-lower", direction="greater", threshold=0.5)
        assert side == pytest.approx(1.5 / 4)
        assert np.isnan([median, size]).all()
        _, side, _ = self.facts("share-above", direction="greater", threshold=0.9, options={"level": 0.6})
        assert side == 3 / 4

    def test_of_a_range_it_is_seeds_within(self) -> None:
        _, side, size = self.facts("difference", direction="within", range=(-0.15, 0.15))
        assert side == 0.5
        assert np.isnan(size)

    def test_of_seeds_on_several_tasks_there_is_none(self) -> None:
        assert np.isnan(self.facts("consistent-wins", threshold=0.65)).all()

    def test_without_spread_there_is_no_effect(self) -> None:
        test = claim_test()
        same = infer("difference", [Sample(np.ones(4), np.zeros(4))], "mean", "a", {})
        alone = infer("difference", [Sample(np.ones(1), np.zeros(1))], "mean", "a", {})
        infinite = infer("difference", [Sample(np.array([1.0, np.inf]), np.zeros(2))], "mean", "a", {})
        assert np.isnan([effect(test, found) for found in (same, alone, infinite)]).all()


def test_runs_that_end_stuck_are_counted() -> None:
    there = runs(TWO)
    assert stuck_runs(Stuck(metric="regret", above=2.5), claim_test(), there) == [("calibrated", 2, 4), ("plain", 3, 4)]
    assert stuck_runs(None, claim_test(), there) == []


class TestScale:
    FULL = {("bowl", "calibrated"): 6, ("bowl", "plain"): 12}  # noqa: RUF012

    def test_it_is_that_of_the_side_furthest_from_whole(self) -> None:
        one = part_result(claim_test(), runs(TWO), "K", self.FULL)
        assert (one.rounds, one.full) == (6, 12)

    def test_a_task_that_the_document_does_not_have_has_no_full_scale(self) -> None:
        one = part_result(claim_test(), runs(TWO), "K", {("bowl", "plain"): 6})
        assert one.full == 0

    def test_a_truncated_method_is_as_long_as_its_baseline(self) -> None:
        shortened = claim_test(after=0.5)
        cut = runs({("bowl", "calibrated"): [1.0, 2.0]}, metric="regret@0.5", of=3)
        table = Runs(pd.concat([*runs(TWO).tables.values(), *cut.tables.values()]).rename_axis("seed").reset_index())
        one = part_result(shortened, table, "K", {("bowl", "calibrated"): 6, ("bowl", "plain"): 6})
        assert (one.rounds, one.full) == (6, 6)

    def test_where_nobody_says_what_is_full_all_runs_are_whole(self) -> None:
        one = part_result(claim_test(), runs(TWO), "K")
        assert one.rounds >= one.full


class TestFloors:
    RANDOM = TWO | {("bowl", "random"): [20.0, 40.0, 30.0, 80.0]}

    def test_it_takes_the_place_of_the_method(self) -> None:
        ratio = claim_test(statistic="ratio", direction="within", range=(0.8, 1.25), floor="random")
        one = part_result(ratio, runs(self.RANDOM), "K")
        assert one.floor is not None
        assert one.floor.value == pytest.approx(10.0)
        assert one.found.value == pytest.approx(10 / 17)

    def test_where_it_was_not_run_there_is_none(self) -> None:
        assert part_result(claim_test(floor="random"), runs(TWO), "K").floor is None

    def test_its_runs_are_asked_for(self) -> None:
        assert ("bowl", "random", "regret") in claim_test(floor="random").runs
        assert ("bowl", "random") not in claim_test(floor="random").trials


class TestSizes:
    def test_a_ratio_is_of_means(self) -> None:
        """Whatever the statistic: here a median of differences."""
        rng = np.random.default_rng(0)
        plain = 1 + 0.1 * rng.standard_normal(30)
        many = {("bowl", "plain"): list(plain), ("bowl", "calibrated"): list(0.8 * plain[::-1])}
        one = part_result(claim_test(location="median"), runs(many), "K")
        assert p_of_size(one, Size(ratio=0.5), "K") < 1e-3 < 0.2 < p_of_size(one, Size(ratio=0.8), "K")

    def test_a_value_is_of_the_statistic(self) -> None:
        one = part_result(claim_test(), runs(TWO), "K")
        assert p_of_size(one, Size(value=-1.75), "K") == pytest.approx(one.found.p_above(-1.75))
        assert p_of_size(one, None, "K") == 1.0

    @pytest.mark.parametrize(
        ("changes", "value"),
        [({}, -17 / 4), ({"statistic": "ratio"}, 0.0), ({"direction": "greater"}, None), ({"metric": "nll"}, None)],
    )
    def test_the_best_there_can_be(self, changes: dict[str, Any], value: float | None) -> None:
        metric = changes.get("metric", "regret")
        found = perfect(part_result(claim_test(**changes), runs(TWO, metric=metric), "K"), "K")
        assert found is None if value is None else found is not None and found.value == pytest.approx(value)

"""A method of one's own among those of the atlas, against numbers by hand."""

import numpy as np
import pytest
from made_trials import TRIALS, trials_of

from plumbline.analysis.atlas.standing import ALL, paired_differences, rank_intervals, standing


def test_ranks_are_among_the_methods_that_have_all_tasks_of_one_s_own() -> None:
    found = standing(TRIALS, "mine")
    assert found[["method", "rank"]].to_numpy().tolist() == [["good", 1], ["mine", 2], ["tied", 2]]
    assert found["score"].tolist() == pytest.approx([0.15, 0.4, 0.4])
    assert found["final"].tolist() == pytest.approx([0.075, 0.2, 0.2])


def test_a_method_that_is_first_on_each_task_is_first_in_each_resample() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((30, 8))
    scores[7], scores[3] = -1.0 - rng.random(8), 2.0 + rng.random(8)
    low, high = rank_intervals(scores)
    assert (low[7], high[7], low[3], high[3]) == (1, 1, 30, 30)
    ranks = scores.mean(axis=1).argsort().argsort() + 1
    assert (low <= ranks).all()
    assert (ranks <= high).all()
    for of_rows, again in zip((low, high), rank_intervals(scores[::-1]), strict=True):
        assert of_rows.tolist() == again[::-1].tolist(), "whatever the order of the methods"


def test_one_task_has_no_intervals_of_ranks() -> None:
    assert np.isnan(rank_intervals(np.arange(3.0)[:, None])).all()
    assert standing(TRIALS, "part")[["rank_low", "rank_high"]].isna().all(axis=None)


def test_intervals_of_ranks_cover_the_rank_by_true_means() -> None:
    """In 95% of studies at least, as far as 12 tasks tell: ranks are whole numbers, so it may be more."""
    rng = np.random.default_rng(1)
    means = np.linspace(0.0, 1.0, 6)
    covered = []
    for _ in range(100):
        low, high = rank_intervals(means[:, None] + rng.normal(scale=0.7, size=(6, 12)))
        covered.append((low <= np.arange(1, 7)) & (np.arange(1, 7) <= high))
    assert np.mean(covered) > 0.93


def test_others_are_judged_by_the_seeds_of_one_s_own() -> None:
    """The same method with more seeds, of which the others are harder, is no worse."""
    found = standing(
        trials_of(mine={"a": [0.2, 0.4]}, same={"a": [0.2, 0.4, 0.9]}, best={"a": [0.3, 0.2, 0.1]}), "mine"
    )
    assert found[["method", "rank"]].to_numpy().tolist() == [["best", 1], ["mine", 2], ["same", 2]]
    assert found["score"].tolist() == pytest.approx([0.25, 0.3, 0.3])


def test_nothing_stands_anywhere_without_a_score() -> None:
    nothing = trials_of(mine={"a": [np.nan]}, good={"a": [0.5]})
    assert standing(nothing, "mine").empty
    assert paired_differences(nothing, "mine", ["good"]) == []


def test_differences_are_paired_by_seed_and_a_task_counts_once() -> None:
    over, a, b = paired_differences(TRIALS, "mine", ["good"])
    assert (over.task, a.task, b.task) == (ALL, "a", "b")
    assert (over.pairs, a.pairs, b.pairs) == (2, 2, 2)
    assert (a.difference, b.difference) == pytest.approx((0.05, 0.45))
    assert over.difference == pytest.approx(0.25)
    assert over.p_corrected == over.p
    assert np.isnan([a.p_corrected, b.p_corrected]).all()


def test_one_pair_has_no_interval() -> None:
    *_, b = paired_differences(TRIALS, "mine", ["tied"])
    assert (b.pairs, b.difference) == (1, pytest.approx(-0.1))
    assert np.isnan([b.low, b.high, b.p]).all()


def test_p_values_of_means_over_tasks_are_corrected_for_the_methods() -> None:
    rng = np.random.default_rng(0)
    mine = {f"t{i}": rng.normal(size=3).tolist() for i in range(8)}
    better = {task: (np.array(one) - 1).tolist() for task, one in mine.items()}
    other = {task: rng.normal(size=3).tolist() for task in mine}
    found = paired_differences(trials_of(mine=mine, better=better, other=other), "mine", ["better", "other"])
    first, second = (one for one in found if one.task == ALL)
    assert first.p_corrected == pytest.approx(min(1.0, 2 * first.p))
    assert first.p_corrected < 0.05 < second.p_corrected


def test_the_other_way_round_it_is_the_same_test() -> None:
    rng = np.random.default_rng(5)
    both = trials_of(**{name: {f"t{i}": rng.exponential(size=4).tolist() for i in range(7)} for name in ("a", "b")})
    for one, other in zip(paired_differences(both, "a", ["b"]), paired_differences(both, "b", ["a"]), strict=True):
        assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
        assert one.p == pytest.approx(other.p)

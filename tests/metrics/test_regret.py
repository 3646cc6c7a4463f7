"""Regrets of rest, of constrained problems, and of what is held to be the optimum."""

import math

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_cases import CONSTRAINED, frame, several
from torch import Tensor

from plumbline.metrics.registry import by_round, metric
from plumbline.problems.tabular import places


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

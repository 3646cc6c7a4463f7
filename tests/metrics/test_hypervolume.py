"""The hypervolume so far."""

import numpy as np
import pandas as pd
import pytest
import torch
from metric_cases import frame, several

from plumbline.metrics.registry import metric


class TestHypervolume:
    @pytest.mark.parametrize(("m", "n"), [(2, 200), (3, 120), (4, 60)])
    def test_it_is_what_botorch_says_of_all_points_so_far(self, m: int, n: int) -> None:
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

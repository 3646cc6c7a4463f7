"""The table of times of rounds."""

from pathlib import Path

import made_evidence as made
import numpy as np
import pytest
from table_cases import experiment_of

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import tabulate


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

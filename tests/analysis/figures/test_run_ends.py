"""Where single runs end, a dot each."""

from pathlib import Path

import made_evidence as made
import numpy as np
import pytest
from figure_cases import build
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection, PathCollection

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.run_ends import SPREAD, swarm
from plumbline.analysis.outputs import marks


class TestRunEnds:
    def test_every_seed_is_a_dot_and_the_median_a_line(self, found: Evidence) -> None:
        ax = build("run-ends", found).axes[1]
        dots = [np.asarray(part.get_offsets()) for part in ax.collections if isinstance(part, PathCollection)]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["plain", "calibrated"]
        for heights, method in zip((part[:, 1] for part in dots), made.METHODS, strict=True):
            expected = metric_ends(found, "bowl", method)
            np.testing.assert_allclose(np.sort(heights), np.sort(expected))
            medians = [
                line for part in ax.collections if isinstance(part, LineCollection) for line in part.get_segments()
            ]
            assert any(line[0][1] == pytest.approx(np.median(expected)) for line in medians)

    def test_the_first_seeds_alone_on_the_same_axis(self, found: Evidence) -> None:
        few, all_of_them, _ = build("run-ends", found).axes
        counts = [
            [len(part.get_offsets()) for part in ax.collections if isinstance(part, PathCollection)]
            for ax in (few, all_of_them)
        ]
        assert counts == [[2, 2], [made.SEEDS] * 2]
        assert few.get_ylim() == all_of_them.get_ylim()

    def test_those_above_the_level_are_counted(self, folder: Path) -> None:
        trials = [made.trial(seed=seed, regret=lambda s, i: 0.1 if s < 3 else 9.0) for seed in range(5)]
        ax = build("run-ends", made.read(folder, *trials), panels=[{"task": "bowl"}], stuck=5.0).axes[0]
        assert [text.get_text() for text in ax.texts] == ["2 of 5"]

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=80))
    def test_dots_stay_in_the_lane_of_their_method(self, values: list[float]) -> None:
        assert np.abs(swarm(np.array(values), 0.0, 1.0)).max() <= SPREAD + 1e-9

    def test_a_panel_without_values_says_so(self, folder: Path) -> None:
        found = made.read(folder, made.trial(model=False), made.trial(task="valley"))
        empty, there = build("run-ends", found, metric="query_coverage", panels=[], stuck=None).axes
        assert [text.get_text() for text in empty.texts] == [marks.NO_VALUE]
        assert not there.texts


def metric_ends(found: Evidence, task: str, method: str) -> np.ndarray:
    return found.ends(task, method, "regret").to_numpy()

"""Means at the end, a dot each."""

import dataclasses
from pathlib import Path

import made_evidence as made
import numpy as np
import pytest
from figure_cases import build, ends
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.core.errors import PlumblineError
from plumbline.study.legends import Legend


class TestFinalDots:
    def test_dots_are_means_at_the_end_from_top_to_bottom(self, found: Evidence) -> None:
        ax = build("final-dots", found).axes[0]
        *drawn, legend = ax.containers
        assert len(legend[0].get_xdata()) == 0, "of the legend alone"
        dots = [(container[0].get_xdata()[0], container[0].get_ydata()[0]) for container in drawn]
        np.testing.assert_allclose(dots, [(np.mean(ends("plain")), 0), (np.mean(ends("calibrated")), 1)])
        assert [tick.get_text() for tick in ax.get_yticklabels()] == list(made.FIGURES["final-dots"]["dots"])
        top, bottom = ax.transData.transform([(0, 0), (0, 1)])[:, 1]
        assert top > bottom

    def test_without_dots_all_of_the_grid_by_its_own_words(self, found: Evidence) -> None:
        named = dataclasses.replace(found, legends={"plain": Legend(label="Plain")})
        ax = build("final-dots", named, dots={}).axes[0]
        words = [tick.get_text() for tick in ax.get_yticklabels()]
        assert words == ["Plain, bowl", "calibrated, bowl", "Plain, valley", "calibrated, valley"]

    def test_medians_are_ticks_and_stuck_runs_are_counted(self, folder: Path) -> None:
        trials = [made.trial(seed=seed, regret=lambda s, i: 0.1 if s < 3 else 9.0) for seed in range(5)]
        found = made.read(folder, *trials)
        ax = build("final-dots", found, dots={}, stuck=5.0).axes[0]
        (tick,) = (part for part in ax.collections if isinstance(part, PathCollection))
        assert np.asarray(tick.get_offsets()).tolist() == [[0.1, 0.0]]
        assert [text.get_text() for text in ax.texts] == ["2 of 5 stuck"]
        assert not build("final-dots", found, dots={}, stuck=10.0).axes[0].texts

    def test_dots_that_a_preset_leaves_out_are_left_out(self, found: Evidence) -> None:
        ax = build("final-dots", found, dots={"a": ("bowl", "plain"), "b": ("bowl", "no-such")}).axes[0]
        assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a"]

    @staticmethod
    def verticals(ax: Axes, label: str) -> list[tuple[float, float, float]]:
        """Return place, upper and lower end of each vertical line of a label."""
        lines = [line.get_xydata() for line in ax.lines if line.get_label() == label]
        return [(line[0, 0], *line[:, 1]) for line in np.asarray(lines, dtype=float)]

    def test_dots_are_compared_with_the_first_of_their_task(self, found: Evidence) -> None:
        dots = {"a": ("bowl", "plain"), "b": ("bowl", "calibrated"), "c": ("valley", "calibrated")}
        ax = build("final-dots", found, dots=dots).axes[0]
        means = [found.end_summary(*dots[words], "regret").mean for words in "ac"]
        drawn = self.verticals(ax, "mean of the first in each group")
        np.testing.assert_allclose(drawn, [(means[0], -0.5, 1.5), (means[1], 1.5, 2.5)])

    def test_dots_are_compared_with_the_references_that_are_named(self, found: Evidence) -> None:
        dots = {"a": ("bowl", "plain"), "b": ("bowl", "calibrated"), "c": ("valley", "calibrated")}
        ax = build("final-dots", found, dots=dots, references=["a"]).axes[0]
        ((_, top, bottom),) = self.verticals(ax, "mean of “a”")
        assert (top, bottom) == (-0.5, 2.5)

    def test_a_group_whose_reference_has_no_trials_has_no_line(self, found: Evidence) -> None:
        dots = {"a": ("bowl", "plain"), "b": ("bowl", "no-such"), "c": ("bowl", "calibrated")}
        ax = build("final-dots", found, dots=dots, references=["a", "b"]).axes[0]
        assert [line[1:] for line in self.verticals(ax, "mean of the first in each group")] == [(-0.5, 0.5)]

    @pytest.mark.parametrize(("references", "why"), [(["b"], "the first of"), (["plain", "b"], "none of the dots")])
    def test_references_are_dots(self, found: Evidence, references: list[str], why: str) -> None:
        dots = {"plain": ("bowl", "plain"), "calibrated": ("bowl", "calibrated")}
        with pytest.raises(PlumblineError, match=why):
            build("final-dots", found, dots=dots, references=references)

    def test_the_nominal_value_is_dotted_at_each_dot(self, found: Evidence) -> None:
        dots = {"a": ("bowl", "plain"), "b": ("valley", "calibrated")}
        options = {"metric": "query_coverage", "nominal": "mean_nominal_coverage", "dots": dots}
        ax = build("final-dots", found, **options).axes[0]
        levels = [found.end_summary(*pair, "mean_nominal_coverage").mean for pair in dots.values()]
        np.testing.assert_allclose(self.verticals(ax, style.NOMINAL), [(levels[0], -0.5, 0.5), (levels[1], 0.5, 1.5)])

"""The parts of a localised set."""

import dataclasses

import numpy as np
import pytest
from figure_cases import build
from scipy.special import ndtri

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.core.errors import PlumblineError


class TestSetParts:
    def test_lengths_are_thresholds_times_deviations(self, found: Evidence) -> None:
        width, threshold, deviation = build("set-parts", found).axes
        shown = [ax.lines[0].get_ydata() for ax in (width, threshold, deviation)]
        assert shown[0] == pytest.approx(0.3 / 4)
        assert shown[0] == pytest.approx(-2 * ndtri(shown[1] / 2) * shown[2])

    def test_both_optima_are_marked(self, found: Evidence) -> None:
        two = found.snapshots.assign(f=-((found.snapshots["x"] - 0.5).abs() - 0.3).abs())
        axes = build("set-parts", dataclasses.replace(found, snapshots=two)).axes
        for ax in axes:
            marked = [line.get_xdata()[0] for line in ax.lines if line.get_label() == "optimum"]
            assert marked == pytest.approx([0.2, 0.8])

    def test_every_panel_names_the_function(self, found: Evidence) -> None:
        named = dataclasses.replace(found, titles={"bowl": "A bowl"})
        assert [ax.get_title() for ax in build("set-parts", named).axes] == ["A bowl"] * 3

    def test_without_thresholds_there_is_nothing_to_draw(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="nothing to draw"):
            build("set-parts", dataclasses.replace(found, snapshots=found.snapshots.assign(threshold=np.nan)))

"""Bands of prediction sets and their thresholds."""

import dataclasses

import made_evidence as made
import numpy as np
import pytest
from figure_cases import build

from plumbline.analysis.evidence.evidence import Evidence


class TestSetBands:
    def test_bands_are_as_wide_as_the_sets_of_the_last_picture(self, found: Evidence) -> None:
        figure = build("set-bands", found)
        picture = made.pictures(made.trial(), steps=(4,))
        for ax in figure.axes[: len(made.METHODS)]:
            extents = ax.collections[0].get_paths()[0].get_extents()
            assert extents.ymax == pytest.approx(max(row["mean"] + row["width"] / 2 for row in picture))
            assert extents.ymin == pytest.approx(min(row["mean"] - row["width"] / 2 for row in picture))

    def test_only_what_was_seen_by_then_is_drawn(self, found: Evidence) -> None:
        ax = build("set-bands", found).axes[0]
        observed = next(line for line in ax.lines if line.get_label() == "observed")
        assert len(observed.get_xdata()) == made.INITIAL + 3

    def test_thresholds_are_below_where_there_are_any(self, found: Evidence) -> None:
        figure = build("set-bands", found)
        assert len(figure.axes) == 2 * len(made.METHODS)
        for ax in figure.axes[len(made.METHODS) :]:
            assert ax.lines[0].get_ydata() == pytest.approx(0.2 + 0.1 * np.linspace(0, 1, 11))
        without = dataclasses.replace(found, snapshots=found.snapshots.assign(threshold=np.nan))
        assert len(build("set-bands", without).axes) == len(made.METHODS)

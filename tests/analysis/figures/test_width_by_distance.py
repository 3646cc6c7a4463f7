"""Widths of sets by distance to the data."""

import numpy as np
import pandas as pd
import pytest
from figure_cases import build
from scipy.special import ndtri

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.width_by_distance import by_distance, relative_widths


class TestWidthByDistance:
    def test_widths_are_in_credible_intervals_of_the_level_of_the_query(self) -> None:
        picture = pd.DataFrame({"iteration": 2, "x": [0.0, 0.5], "sd": [1.0, 2.0], "width": [1.0, 1.0]})
        rows = pd.DataFrame({"iteration": [0, 1, 2], "x": [0.1, 0.3, 0.5], "alpha": [np.nan, 0.3, 0.3]})
        found = relative_widths(picture, rows)
        assert found["distance"].tolist() == pytest.approx([0.1, 0.2])  # not of the query itself
        assert found["width"].tolist() == pytest.approx([0.5 / ndtri(0.85), 0.25 / ndtri(0.85)])

    def test_quantiles_are_over_runs_in_bins_that_half_of_them_have(self) -> None:
        runs = [
            pd.DataFrame({"distance": [0.1, 0.2, 0.9], "width": [width, width, width + 1]}) for width in (1.0, 2.0, 3.0)
        ]
        runs.append(pd.DataFrame({"distance": [0.1], "width": [np.inf]}))
        found = by_distance(runs, 2)
        assert found.index.tolist() == pytest.approx([0.225, 0.675])
        assert found.loc[found.index[0]].tolist() == [1.0, 2.0, 3.0]
        assert found.loc[found.index[1]].tolist() == [2.0, 3.0, 3.0]

    def test_a_panel_a_snapshot_and_what_is_longer_at_the_top(self, found: Evidence) -> None:
        steps = found.snapshots["iteration"].nunique()
        axes = build("width-by-distance", found, top=0.1).axes
        assert len(axes) == steps
        for ax in axes:
            assert ax.get_ylim() == (0, 0.1)
            assert ax.lines[0].get_ydata().max() <= 0.1

"""Densities of coverage over runs."""

from pathlib import Path

import made_evidence as made
import numpy as np
import pytest
from figure_cases import bands_of, build
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.coverage_density import density, density_line
from plumbline.analysis.outputs import marks


class TestCoverageDensity:
    def test_no_density_is_cut(self, found: Evidence) -> None:
        """Panels share an axis that reaches to the highest of all."""
        figure = build("coverage-density", found, panels=[])
        (low, high), *others = (ax.get_ylim() for ax in figure.axes)
        assert low == 0
        assert others == [(low, high)] * len(others)
        assert max(np.max(line.get_ydata()) for ax in figure.axes for line in ax.lines) <= high

    @given(st.lists(st.integers(0, 20), min_size=3, max_size=12).filter(lambda counts: len(set(counts)) > 1))
    def test_densities_of_shares_are_of_mass_one(self, counts: list[int]) -> None:
        """Nothing of them is cut off at 0 and 1."""
        x = np.linspace(0.0, 1.0, 4001)
        assert np.trapezoid(density(np.array(counts) / 20, x), x) == pytest.approx(1.0, abs=0.03)

    @given(st.lists(st.integers(0, 20), min_size=3, max_size=12).filter(lambda counts: len(set(counts)) > 1))
    def test_the_line_of_a_density_begins_and_ends_at_zero_and_holds_all_mass(self, counts: list[int]) -> None:
        """Also at 0 and 1, where the density is positive and would else seem cut."""
        x, height = density_line(np.array(counts) / 20)
        assert (height[0], height[-1]) == (0, 0)
        assert (x.min() >= 0, x.max() <= 1, (np.diff(x) >= 0).all()) == (True, True, True)
        assert np.trapezoid(height, x) == pytest.approx(1.0, abs=0.03)

    def test_the_area_of_a_density_is_that_below_its_line(self, found: Evidence) -> None:
        ax = build("coverage-density", found, panels=[]).axes[0]
        line = next(line for line in ax.lines if line.get_label() == "plain" and len(line.get_xdata()) > 2)
        area = bands_of(ax)[0].get_paths()[0].get_extents()
        assert (area.ymin, area.ymax) == (0.0, pytest.approx(np.max(line.get_ydata())))

    def test_panels_name_methods_or_show_all(self, found: Evidence) -> None:
        everything = build("coverage-density", found, panels=[])
        assert [ax.get_title() for ax in everything.axes] == list(made.TASKS)
        one = build("coverage-density", found, panels=[{"task": "bowl", "methods": ["plain"]}])
        assert [text.get_text() for text in one.legends[0].get_texts()] == ["plain"]

    def test_a_panel_without_values_says_so(self, folder: Path) -> None:
        found = made.read(folder, *(made.trial(seed=seed, model=False) for seed in range(2)))
        (ax,) = build("coverage-density", found, panels=[]).axes
        assert [text.get_text() for text in ax.texts] == [marks.NO_VALUE]

"""Sets and unions of intervals as bars."""

import made_evidence as made
import pytest
from matplotlib.figure import Figure

from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import draw_sets, draw_union
from plumbline.analysis.outputs.style import tint


class TestDrawSets:
    def drawn(self, low: list[float], high: list[float]) -> tuple[Figure, float]:
        figure, axes = style.panels(1, 1)
        share = draw_sets(axes[0][0], made.bands("p", "s", low, high), (-2.0, 2.0), style.CALIBRATED, "set")
        return figure, share

    def test_bars_are_the_intervals(self) -> None:
        figure, share = self.drawn([-1.0, 0.0, 0.5], [1.0, 0.5, 1.5])
        bars = figure.axes[0].patches
        assert [(bar.get_y(), bar.get_height()) for bar in bars] == [(-1.0, 2.0), (0.0, 0.5), (0.5, 1.0)]
        assert share == 0.0
        assert not figure.axes[0].texts
        assert figure.axes[0].get_ylim() == (-2.0, 2.0)

    def test_the_whole_line_is_drawn_to_the_limits_with_a_note(self) -> None:
        figure, share = self.drawn([-1.0, -made.INF, -made.INF], [1.0, made.INF, made.INF])
        ax = figure.axes[0]
        assert [(bar.get_y(), bar.get_height()) for bar in ax.patches[1:]] == [(-2.0, 4.0)] * 2
        assert [text.get_text() for text in ax.texts] == ["whole line"]
        assert share == pytest.approx(2 / 3)
        assert any(collection.get_hatch() for collection in ax.collections)

    def test_what_is_cut_at_the_axis_is_marked(self) -> None:
        figure, _ = self.drawn([-9.0, 0.0, 0.0], [1.0, 1.0, made.INF])
        marks = [c for c in figure.axes[0].collections if c.get_label() == "goes on beyond the axis"]
        assert [mark.get_segments()[0][0][1] for mark in marks] == [-2.0, 2.0]

    def test_an_empty_set_has_no_bar(self) -> None:
        figure, axes = style.panels(1, 1)
        sets = made.bands("p", "s", [0.0] * 3, [1.0] * 3).drop(index=1)
        draw_sets(axes[0][0], sets, (-2.0, 2.0), style.CALIBRATED, "set")
        assert len(figure.axes[0].patches) == 2

    def test_a_union_ends_at_the_axis_where_it_is_unbounded(self) -> None:
        _, axes = style.panels(1, 1)
        ax = axes[0][0]
        ax.set_xlim(-3, 3)
        draw_union(ax, made.shown("p", "s", low=[-made.INF, 1.0], high=[0.0, 2.0]), 0.5, style.CALIBRATED, "set")
        segments = [segment.tolist() for segment in ax.collections[0].get_segments()]
        assert segments == [[[-3.0, 0.5], [0.0, 0.5]], [[1.0, 0.5], [2.0, 0.5]]]

    def test_a_tint_is_between_white_and_the_colour(self) -> None:
        assert tint("#000000", 0.0) == (1.0, 1.0, 1.0)
        assert tint("#000000", 1.0) == (0.0, 0.0, 0.0)

"""Figures of experiments without trials: drawn from the table of an illustration, and nothing cut off in silence."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_evidence as made
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch, Wedge

from plumbline.analysis.evidence.evidence import Evidence, evidence
from plumbline.analysis.figures.illustrated.acquisitions_on_a_line import HEIGHT
from plumbline.analysis.figures.illustrated.approximation_fits import COLOURS
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.draw import draw
from plumbline.analysis.outputs.intervals import draw_sets, draw_union
from plumbline.analysis.outputs.kinds import figures
from plumbline.analysis.outputs.style import tint
from plumbline.core.errors import PlumblineError
from plumbline.study.resolved import ResolvedExperiment

KINDS = list(made.ILLUSTRATED)


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    """Close what a test drew."""
    yield
    plt.close("all")


def experiment_of(kind: str) -> ResolvedExperiment:
    output = {"kind": kind}
    return made.plan({"E": {"title": "No trials", "illustration": output, "figure": output, "quick": {}}}).resolve("E")


def build(kind: str, **options: Any) -> Figure:
    return figures[kind].build(made.illustrated(kind), figures[kind].options(**options))


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    @pytest.mark.slow
    def test_it_is_drawn_and_says_what_it_is(self, kind: str, folder: Path) -> None:
        before = dict(mpl.rcParams)
        outputs = [folder / "E.svg", folder / "E.png"]
        draw(experiment_of(kind), made.illustrated(kind), outputs)
        draw(experiment_of(kind), made.illustrated(kind), [folder / "again.svg"])
        assert dict(mpl.rcParams) == before
        assert plt.get_fignums() == []
        text = outputs[0].read_text(encoding="utf-8")
        shown = figures[kind].options().shown(Evidence())
        assert shown
        for part in (shown, "preset quick", "1 seed", "illustration"):
            assert "".join(part.split()) in "".join(re.sub("<[^>]*>", "", text).split())
        assert "evaluations" not in text
        assert np.std(plt.imread(outputs[1])[..., :3]) > 0.01
        assert outputs[0].read_bytes() == (folder / "again.svg").read_bytes()

    def test_the_table_is_left_as_it_was(self, kind: str) -> None:
        found = made.illustrated(kind)
        before = found.illustration.copy()
        figures[kind].build(found, figures[kind].options())
        pd.testing.assert_frame_equal(found.illustration, before)

    def test_axes_are_labelled_and_the_legend_is_outside(self, kind: str) -> None:
        figure = build(kind)
        assert any(ax.get_xlabel() for ax in figure.axes)
        assert any(ax.get_ylabel() for ax in figure.axes)
        assert len(figure.legends) == 1
        assert not any(ax.get_legend() for ax in figure.axes)
        assert len(labels(figure)) == len(set(labels(figure)))

    def test_without_an_illustration_it_is_one_line(self, kind: str, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="nothing to draw"):
            draw(experiment_of(kind), Evidence(), [folder / "E.svg"])

    def test_an_illustration_of_another_kind_is_one_line(self, kind: str, folder: Path) -> None:
        other = Evidence(illustration=made.shown("elsewhere", "nothing"))
        with pytest.raises(PlumblineError, match="another kind than the illustration"):
            draw(experiment_of(kind), other, [folder / "E.svg"])

    def test_it_is_read_from_a_file(self, kind: str, folder: Path) -> None:
        found = made.illustrated(kind)
        found.illustration.to_parquet(folder / "E.parquet")
        again = evidence(None, illustration=folder / "E.parquet")
        pd.testing.assert_frame_equal(again.illustration, found.illustration)
        assert again.rows.empty
        assert again.seeds == 0


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


class TestParts:
    def test_a_network_is_drawn_to_scale_with_all_its_parts(self) -> None:
        figure = build("radio-layout")
        above, gain = figure.axes
        assert above.get_aspect() == 1.0
        wedges = [patch for patch in above.patches if isinstance(patch, Wedge)]
        assert [(wedge.theta1, wedge.theta2) for wedge in wedges] == [(30.0, 150.0), (150.0, 270.0), (270.0, 390.0)]
        assert {"gain at a tilt of \N{MINUS SIGN}30°", "gain at a tilt of 40°"} <= set(labels(figure))
        assert [len(ticks.get_positions()) for ticks in gain.collections] == [2, 2]

    def test_the_norm_is_in_the_title(self) -> None:
        assert any("2.0934" in ax.get_title() for ax in build("rkhs-function").axes)

    def test_both_queries_and_the_level_are_on_the_surfaces(self) -> None:
        figure = build("branin-surfaces")
        stars = [line for ax in figure.axes for line in ax.lines if line.get_label() == "next query"]
        assert len(stars) == 2
        assert "weight = alpha = 0.35" in labels(figure)

    def test_a_panel_an_acquisition_function_with_its_query(self) -> None:
        figure = build("acquisitions-on-a-line", titles={"kg": "knowledge gradient"})
        titles = [ax.get_title() for ax in figure.axes]
        assert titles == ["posterior", "ei", "knowledge gradient", "ucb", "ts", "jes"]
        queries = [line.get_xdata()[0] for ax in figure.axes for line in ax.lines if line.get_label() == "next query"]
        assert queries == [1.0] * 5
        assert {"draw", "draw's optimum", "credible band"} <= set(labels(figure))

    def test_the_optimums_place_and_value_have_a_density_each_on_an_edge(self) -> None:
        posterior = build("acquisitions-on-a-line").axes[0]
        steps = {patch.get_label(): patch for patch in posterior.patches if isinstance(patch, StepPatch)}
        assert set(steps) == {"density of x*", "density of f*"}
        (place, *_), (value, *_) = (steps[name].get_data() for name in ("density of x*", "density of f*"))
        # Two optima, at .1 with 0 and at .2 with .3: the ends of each histogram, as high as each other.
        for heights, name, ends in ((place, "density of x*", (0.1, 0.2)), (1 - value, "density of f*", (0.0, 0.3))):
            assert heights[[0, -1]] == pytest.approx([HEIGHT, HEIGHT])
            assert not heights[1:-1].any()
            assert steps[name].get_data().edges[[0, -1]] == pytest.approx(ends)

    def test_the_verdict_on_the_guess_is_in_the_title(self) -> None:
        assert any("the guess is accepted" in ax.get_title() for ax in build("conformal-steps").axes)

    def test_a_panel_a_step(self) -> None:
        titles = [ax.get_title() for ax in build("well-specified-bands").axes]
        assert titles == ["t = 2, alpha = 0.2", "t = 4, alpha = 0.2"]
        assert "goes on beyond the axis" in labels(build("well-specified-bands"))

    def test_queries_that_are_nearer_and_farther_are_counted(self) -> None:
        (counts,) = build("approximation-fits").axes[3].texts
        assert counts.get_text().splitlines() == [
            "query alone: 1 nearer, 1 farther, 2 alike",
            "EULBO: 2 nearer, 1 farther, 1 alike",
        ]

    def test_the_legend_of_fits_names_every_mark_once(self) -> None:
        assert set(labels(build("approximation-fits"))) == {
            "truth",
            "data",
            "inducing points",
            "two standard deviations",
            "query of a model",
            "exact GP",
            "SVGP fitted by the ELBO",
            "SVGP refined by the EULBO",
            "equal distances (d)",
            "query alone (d)",
            "EULBO (d)",
        }

    def test_each_model_asks_where_its_line_is(self) -> None:
        ax = build("approximation-fits").axes[1]
        at = {line.get_color(): line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"}
        assert at == {COLOURS["exact"]: 0.8, COLOURS["ELBO"]: 1.0, COLOURS["EULBO"]: 0.9}

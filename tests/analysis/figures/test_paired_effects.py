"""Paired effects of methods against a baseline."""

import dataclasses
from typing import Any, ClassVar

import pandas as pd
from figure_cases import build
from matplotlib.colors import to_hex

from plumbline.analysis.comparisons.effects import ALL
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.reference import Reference
from plumbline.analysis.outputs import style
from plumbline.study.legends import Legend


class TestPairedEffects:
    ARMS: ClassVar[dict[str, Any]] = {
        "metrics": {"regret": "final regret"},
        "baselines": {"plain": ["calibrated"], "calibrated": ["plain"]},
    }

    def test_methods_have_their_own_words_and_styles(self, found: Evidence) -> None:
        figure = build("paired-effects", found, **self.ARMS)
        styles = style.method_styles({}, found.methods())
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["calibrated", "plain"]
        for ax, method in zip(figure.axes, ("calibrated", "plain"), strict=True):
            assert to_hex(ax.containers[0][0].get_color()) == styles[method].colour
            assert ax.containers[0][0].get_marker() == styles[method].marker

    def test_arms_share_a_marker_and_methods_keep_their_colours(self, found: Evidence) -> None:
        figure = build("paired-effects", found, **self.ARMS, arms=["the other"])
        (handle,) = figure.legends[0].legend_handles
        styles = style.method_styles({}, found.methods())
        dots = [ax.containers[0][0] for ax in figure.axes]
        assert {dot.get_marker() for dot in dots} == {handle.get_marker()}
        assert [to_hex(dot.get_color()) for dot in dots] == [styles[name].colour for name in ("calibrated", "plain")]
        assert to_hex(handle.get_color()) == to_hex("0.35"), "of no method"

    def test_axes_can_be_read_alone(self, found: Evidence) -> None:
        left, right = build("paired-effects", found, **self.ARMS).axes
        start = "(in standard deviations of the initial design)"
        assert left.get_xlabel() == f"difference in final regret from plain\n{start}"
        assert (left.get_title(), right.get_title()) == ("compared with plain", "compared with calibrated")

    def test_axes_say_whose_standard_deviation_is_the_unit(self, found: Evidence) -> None:
        """Forecasts begin after the initial design."""
        (ax,) = build("paired-effects", found, metrics={"nll": "NLL"}, baselines={"plain": ["calibrated"]}).axes
        assert ax.get_xlabel() == "difference in NLL from plain\n(in standard deviations of plain)"

    def test_arms_are_hollow_where_their_lines_are_dashed_elsewhere(self, found: Evidence) -> None:
        dashed = dataclasses.replace(found, legends={"calibrated": Legend(label="c", dashed=True)})
        baselines = {"plain": ["calibrated"]}
        (ax,) = build("paired-effects", dashed, baselines=baselines, arms=["the other"]).axes[:1]
        assert ax.containers[0][0].get_markerfacecolor() == "white"

    def test_a_panel_without_effects_says_so(self, found: Evidence) -> None:
        alone = found.rows["seed"] == found.rows["seed"].iloc[0]
        one = dataclasses.replace(found, rows=found.rows[alone])
        (ax, *_) = build("paired-effects", one).axes
        assert [text.get_text() for text in ax.texts] == ["no method shares enough seeds\nwith the baseline here"]

    def test_intervals_beyond_the_axis_have_arrows(self, found: Evidence) -> None:
        """Of few seeds some are endless."""
        about = {
            "baseline": "plain",
            "metric": "regret",
            "seeds": 3,
            "mean difference": 0.0,
            "sd": 1.0,
            "share lower": 0,
        }
        table = pd.DataFrame(
            [
                {"task": "bowl", "method": "calibrated", "in sd": 0.1, "low": -0.2, "high": 0.3, **about},
                {"task": "valley", "method": "calibrated", "in sd": 0.1, "low": -90.0, "high": 0.2, **about},
                {"task": ALL, "method": "calibrated", "in sd": 0.1, "low": 0.0, "high": 0.2, **about},
            ]
        )
        options = {"metrics": {"regret": "regret"}, "baselines": {"plain": ["calibrated"]}}
        (ax,) = build("paired-effects", dataclasses.replace(found, reference=Reference(table=table)), **options).axes
        assert ax.get_xlim()[0] > -90
        assert [(text.get_text(), text.get_position()) for text in ax.texts] == [("←", (0.0, 1.0))]

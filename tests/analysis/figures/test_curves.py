"""Curves of metrics by evaluations: lines, bands, scales, and what is drawn beside."""

import dataclasses
from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pytest
from figure_cases import bands_of, build
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.study.legends import Legend

CALIBRATION = {
    "rows": [
        {"metric": "calibration_score", "label": "calibration score", "limits": [0, None]},
        {"metric": "best_f", "label": "least value found", "minimise": True, "optimum": True},
    ],
    "band": "mean-error",
    "queries": True,
    "panels": [
        {"title": "Bowl", "task": "bowl", "methods": ["plain", "calibrated"]},
        {"task": "valley", "methods": ["calibrated", "no-such"]},
        {"task": "no-such"},
    ],
}
"""CAL, figures 2 and 3."""


class TestCalibrationCurves:
    def test_lines_are_the_means_over_seeds_turned_upside_down(self, found: Evidence) -> None:
        figure = build("curves", found, **CALIBRATION)
        assert len(figure.axes) == 4
        bottom = figure.axes[2]
        plain = next(line for line in bottom.lines if line.get_label() == "plain")
        expected = [
            np.mean([2 * made.falling(seed, made.INITIAL - 1 + i) for seed in range(made.SEEDS)])
            for i in range(made.ROUNDS + 1)
        ]
        np.testing.assert_allclose(plain.get_ydata(), expected)
        np.testing.assert_allclose(plain.get_xdata(), range(made.ROUNDS + 1))

    def test_panels_show_what_they_name_and_what_is_there(self, found: Evidence) -> None:
        bowl, valley = build("curves", found, **CALIBRATION).axes[:2]
        assert [ax.get_title() for ax in (bowl, valley)] == ["Bowl", "valley"]
        assert [len(ax.lines) for ax in (bowl, valley)] == [2, 1]
        assert bowl.get_ylim()[0] == 0

    def test_the_minimum_is_drawn_where_it_is_known(self, found: Evidence) -> None:
        bottom = build("curves", found, **CALIBRATION).axes[2]
        minimum = next(line for line in bottom.lines if line.get_label() == "minimum")
        np.testing.assert_allclose(minimum.get_ydata(), 0.0, atol=1e-12)

    def test_no_minimum_is_drawn_where_it_is_not(self, found: Evidence) -> None:
        unknown = dataclasses.replace(found, rows=found.rows.assign(optimum=np.nan))
        bottom = build("curves", unknown, **CALIBRATION).axes[2]
        assert "minimum" not in [line.get_label() for line in bottom.lines]

    def test_bands_are_one_standard_error(self, found: Evidence) -> None:
        bottom = build("curves", found, **CALIBRATION).axes[2]
        band = bands_of(bottom)[1].get_paths()[0].get_extents()
        ends = [made.falling(seed, made.INITIAL - 1 + made.ROUNDS) for seed in range(made.SEEDS)]
        error = np.std(ends, ddof=1) / np.sqrt(made.SEEDS)
        assert band.ymin == pytest.approx(np.mean(ends) - error)

    def test_panels_without_any_trial_are_one_line(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="no trials of elsewhere: nothing to draw"):
            build("curves", found, panels=[{"task": "elsewhere"}])


PUBLISHED = {"legend": "Others", "metric": "best_f", "evaluations": [1, 9], "values": [-80.0, 3.0]}


class TestPublishedLines:
    def drawn(self, found: Evidence, **row: Any) -> Axes:
        rows = [{"metric": "best_f", "label": "best"} | row, {"metric": "regret", "label": "regret"}]
        figure = build("curves", found, rows=rows, panels=[{"task": "bowl", "published": [PUBLISHED]}])
        assert "Others" not in [line.get_label() for line in figure.axes[1].lines], "it is of another metric"
        assert "Others" in [text.get_text() for text in figure.legends[0].get_texts()]
        return figure.axes[0]

    def test_they_are_drawn_in_the_row_of_their_metric(self, found: Evidence) -> None:
        theirs = self.drawn(found).lines[-1]
        np.testing.assert_allclose(theirs.get_xydata(), [[1, -80.0], [9, 3.0]])

    def test_the_axis_is_that_of_ours_and_of_where_theirs_end(self, found: Evidence) -> None:
        low, high = self.drawn(found).get_ylim()
        assert low > -80
        assert high == 3.0

    def test_the_footer_says_what_they_are(self, found: Evidence) -> None:
        rows = ({"metric": "best_f", "label": "best"},)
        with_theirs, ours = (
            parse(figures["curves"].options, {"rows": rows, "panels": panels}, "test")
            for panels in ([{"task": "bowl", "published": [PUBLISHED]}], [{"task": "bowl"}])
        )
        words = "; grey lines without markers: read off a publication"
        assert with_theirs.shown(found) == ours.shown(found) + words

    def test_they_are_turned_with_the_row(self, found: Evidence) -> None:
        np.testing.assert_allclose(self.drawn(found, minimise=True).lines[-1].get_ydata(), [80.0, -3.0])

    @pytest.mark.parametrize("minimise", [False, True])
    def test_how_well_they_could_be_read_is_a_band(self, found: Evidence, *, minimise: bool) -> None:
        """A band is drawn beside those of our own two methods, and about the line."""
        drawn = []
        for error in (0.0, 0.5):
            rows = [{"metric": "best_f", "label": "best", "minimise": minimise}]
            panels = [{"task": "bowl", "published": [PUBLISHED | {"error": error}]}]
            drawn.append(build("curves", found, rows=rows, panels=panels).axes[0].collections)
        assert len(drawn[1]) == len(drawn[0]) + 1
        corners = {tuple(corner) for corner in np.round(drawn[1][-1].get_paths()[0].vertices, 6)}
        sign = -1 if minimise else 1
        assert corners == {(x, sign * y + edge) for x, y in ((1, -80.0), (9, 3.0)) for edge in (-0.5, 0.5)}

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"error": -1.0}, "error"),
            ({"values": [1.0]}, "2 evaluations and 1 values"),
            ({"metric": "nll"}, "the published line 'Others' is of nll, which no row draws"),
        ],
    )
    def test_mistakes_are_one_line(self, found: Evidence, change: Any, message: str) -> None:
        panels = [{"task": "bowl", "published": [PUBLISHED | change]}]
        with pytest.raises(PlumblineError, match=message):
            build("curves", found, rows=[{"metric": "best_f", "label": "best"}], panels=panels)


class TestCurves:
    def test_lines_are_medians_and_the_level_is_dotted(self, found: Evidence) -> None:
        figure = build("curves", found)
        regret, coverage = figure.axes[0], figure.axes[2]
        calibrated = next(line for line in regret.lines if line.get_label() == "calibrated")
        per_seed = [
            np.cumsum([made.falling(s, made.INITIAL + i) for i in range(made.ROUNDS)]) for s in range(made.SEEDS)
        ]
        np.testing.assert_allclose(calibrated.get_ydata(), np.median(per_seed, axis=0))
        level = next(line for line in coverage.lines if line.get_label() == "1 - alpha")
        np.testing.assert_allclose(level.get_ydata(), 1 - made.ALPHAS[0])

    def test_bands_are_the_quantiles_that_were_asked_for(self, found: Evidence) -> None:
        regret = build("curves", found, quantiles=(0.0, 1.0)).axes[0]
        band = bands_of(regret)[1].get_paths()[0].get_extents()
        totals = [sum(made.falling(s, made.INITIAL + i) for i in range(made.ROUNDS)) for s in range(made.SEEDS)]
        assert band.ymax == pytest.approx(max(totals))

    def test_a_column_a_task(self, found: Evidence) -> None:
        figure = build("curves", dataclasses.replace(found, titles={"bowl": "A bowl"}))
        assert [ax.get_title() for ax in figure.axes[:2]] == ["A bowl", "valley"]
        assert len(figure.axes) == 4

    def test_the_initial_design_counts_unless_queries_are_asked_for(self, found: Evidence) -> None:
        best = {"rows": [{"metric": "best_f", "label": "best"}]}
        queries, evaluations = (
            build("curves", found, **best, queries=queries).axes[0].lines[0].get_xdata() for queries in (True, False)
        )
        assert queries.tolist() == list(range(made.ROUNDS + 1))
        assert evaluations.tolist() == [made.INITIAL + i for i in range(made.ROUNDS + 1)]

    def test_lines_go_along_what_was_spent_where_outcomes_have_costs(self, found: Evidence) -> None:
        best = {"rows": [{"metric": "best_f", "label": "best"}]}
        ax = build("curves", found, **best, panels=[{"task": "bowl", "costs": [2.5]}]).axes[0]
        assert ax.get_xlabel() == "cost"
        assert ax.lines[0].get_xdata().tolist() == [2.5 * (made.INITIAL + i) for i in range(made.ROUNDS + 1)]
        plain = build("curves", found, **best, panels=[{"task": "bowl"}]).axes[0]
        assert ax.lines[0].get_ydata().tolist() == plain.lines[0].get_ydata().tolist()

    def test_methods_go_by_the_legends_of_their_looks(self, found: Evidence) -> None:
        figure = build("curves", dataclasses.replace(found, legends={"calibrated": Legend(label="Calibrated")}))
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["plain", "Calibrated", "1 - alpha"]

    @pytest.mark.slow
    def test_logarithmic_axes_have_plain_numbers(self, found: Evidence) -> None:
        row = {"metric": "regret", "label": "regret"}
        usual, logarithmic = (
            build("curves", found, rows=[row | extra]).axes[0] for extra in ({}, {"logarithmic": True})
        )
        assert usual.get_yscale() == "linear"
        assert logarithmic.get_yscale() == "log"
        logarithmic.figure.canvas.draw()
        words = [tick.get_text() for tick in logarithmic.get_yticklabels()]
        assert words
        assert not [word for word in words if "10^" in word]

    def test_methods_look_as_their_looks_say(self, found: Evidence) -> None:
        legends = {
            "plain": Legend(label="P", colour="red", dashed=True),
            "calibrated": Legend(label="C", colour="#123456"),
        }
        ax = build("curves", dataclasses.replace(found, legends=legends)).axes[0]
        plain, calibrated = (next(x for x in ax.lines if x.get_label() == name) for name in ("P", "C"))
        assert (to_hex(plain.get_color()), plain.get_linestyle()) == (style.PALETTE["red"], "--")
        assert (to_hex(calibrated.get_color()), calibrated.get_linestyle()) == ("#123456", "-")

    @pytest.mark.parametrize(("plain", "lines"), [(True, ["-", "-"]), (False, ["-", "--"])])
    def test_lines_are_dashed_only_beside_solid_ones(self, found: Evidence, *, plain: bool, lines: list[str]) -> None:
        legends = {"plain": Legend(label="P", dashed=plain), "calibrated": Legend(label="C", dashed=True)}
        ax = build("curves", dataclasses.replace(found, legends=legends)).axes[0]
        drawn = {line.get_label(): line.get_linestyle() for line in ax.lines}
        assert [drawn["P"], drawn["C"]] == lines

    def test_what_dashes_mean_takes_the_place_of_entries_beside_solid_ones(self, found: Evidence) -> None:
        legends = {
            "plain": Legend(label="EI", colour="blue"),
            "calibrated": Legend(label="TuRBO (EI)", colour="blue", dashed=True),
        }
        figure = build("curves", dataclasses.replace(found, legends=legends), dashed="in a trust region")
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["EI", "in a trust region", style.NOMINAL]
        assert len([line for line in figure.axes[0].lines if line.get_label() in ("EI", "TuRBO (EI)")]) == 2

    def test_a_row_of_some_methods_shows_no_other_and_shares_its_scale(self, found: Evidence) -> None:
        rows = [{"metric": "best_f", "label": name, "methods": [name]} for name in made.METHODS]
        figure = build("curves", found, rows=rows)
        top, bottom = figure.axes[0], figure.axes[2]
        assert [[line.get_label() for line in ax.lines] for ax in (top, bottom)] == [[name] for name in made.METHODS]
        assert top.get_ylim() == bottom.get_ylim()

    def test_panels_of_one_task_share_their_scale_and_those_of_another_do_not(self, found: Evidence) -> None:
        rows = [{"metric": "best_f", "label": "best"}]
        of_bowl = [{"task": "bowl", "methods": [name]} for name in made.METHODS]
        first, second, other = build("curves", found, rows=rows, panels=[*of_bowl, {"task": "valley"}]).axes
        assert first.get_ylim() == second.get_ylim()
        for ax in (first, second):
            low, high = ax.get_ylim()
            assert all(low <= line.get_ydata().min() and line.get_ydata().max() <= high for line in ax.lines)
        assert other not in first.get_shared_y_axes().get_siblings(first)

    def test_a_panel_without_any_of_its_methods_says_so(self, found: Evidence) -> None:
        rows = [{"metric": "best_f", "label": "f", "methods": [name]} for name in ("no-such", "plain")]
        axes = build("curves", found, rows=rows).axes
        assert [ax.axison for ax in axes] == [False, False, True, True]
        assert [[text.get_text() for text in ax.texts] for ax in axes] == [[marks.NOT_RUN], [marks.NOT_RUN], [], []]

    def test_a_panel_without_values_says_so(self, folder: Path) -> None:
        """A method without a model has no coverage."""
        found = made.read(folder, *(made.trial(seed=seed, model=False) for seed in range(2)))
        rows = [{"metric": name, "label": name} for name in ("best_f", "query_coverage")]
        there, empty = build("curves", found, rows=rows).axes
        assert (there.axison, [text.get_text() for text in there.texts]) == (True, [])
        assert (empty.axison, [text.get_text() for text in empty.texts]) == (False, [marks.NO_VALUE])

    @pytest.mark.parametrize(("count", "bands"), [(4, 4), (5, 0)])
    def test_many_methods_have_intervals_at_the_end_only(self, folder: Path, count: int, bands: int) -> None:
        trials = [made.trial("bowl", f"m{i}", seed) for i in range(count) for seed in range(2)]
        found = made.read(folder, *trials)
        ax = build("curves", found, rows=[{"metric": "best_f", "label": "best"}], band="mean-error").axes[0]
        assert len(bands_of(ax)) == bands
        bars = [bar for strip in ax.child_axes for bar in strip.collections if isinstance(bar, LineCollection)]
        assert len(bars) == count - bands
        ended = made_ends(found, "best_f")
        for i, bar in enumerate(bars):
            (x, low), (_, high) = bar.get_segments()[0]
            assert x == i
            error = np.std(ended, ddof=1) / np.sqrt(len(ended))
            assert (low, high) == pytest.approx((np.mean(ended) - error, np.mean(ended) + error))

    def test_intervals_at_the_end_take_nothing_of_the_axis(self, folder: Path) -> None:
        """It has no place where nothing was evaluated."""
        trials = [made.trial("bowl", f"m{i}", seed) for i in range(7) for seed in range(2)]
        figure = build("curves", made.read(folder, *trials), rows=[{"metric": "best_f", "label": "best"}])
        figure.canvas.draw()
        (ax,) = figure.axes
        (strip,) = ax.child_axes
        last = made.INITIAL + made.ROUNDS
        assert ax.get_xlim()[1] < 1.03 * last
        assert strip.get_window_extent().x0 > ax.get_window_extent().x1
        assert strip.get_ylim() == ax.get_ylim()
        assert strip.get_tightbbox().x1 <= figure.bbox.x1

    def test_where_one_panel_has_intervals_at_the_end_all_have(self, folder: Path) -> None:
        trials = [made.trial("bowl", f"m{i}", seed) for i in range(5) for seed in range(2)]
        panels = [{"task": "bowl", "methods": ["m0", "m1"]}, {"task": "bowl"}]
        figure = build(
            "curves", made.read(folder, *trials), rows=[{"metric": "best_f", "label": "best"}], panels=panels
        )
        assert [len(ax.child_axes) for ax in figure.axes] == [1, 1]

    def test_lines_that_coincide_show_the_markers_of_all(self, folder: Path) -> None:
        trials = [made.trial("bowl", f"m{i}", seed) for i in range(3) for seed in range(2)]
        ax = build("curves", made.read(folder, *trials), rows=[{"metric": "best_f", "label": "best"}]).axes[0]
        markers = [np.asarray(part.get_offsets()) for part in ax.collections if isinstance(part, PathCollection)]
        assert len(markers) == 3
        places = np.concatenate(markers)[:, 0]
        assert len(np.unique(places.round(6))) == len(places)
        for line, some in zip(ax.lines, markers, strict=True):
            np.testing.assert_allclose(some[:, 1], np.interp(some[:, 0], *line.get_data()))

    def test_markers_stand_on_lines_of_logarithmic_axes(self, folder: Path) -> None:
        """Between two rounds a line is straight in logarithms."""
        falling = made.read(folder, made.trial("bowl", "plain", 0, regret=lambda s, i: 100.0 ** -(i + 1)))
        row = {"metric": "regret", "label": "regret", "logarithmic": True}
        ax = build("curves", falling, rows=[row], panels=[{"task": "bowl"}]).axes[0]
        (markers,) = (np.asarray(part.get_offsets()) for part in ax.collections if isinstance(part, PathCollection))
        x, y = ax.lines[0].get_data()
        assert y[-1] < 1e-6
        np.testing.assert_allclose(np.log(markers[:, 1]), np.interp(markers[:, 0], x, np.log(y)))

    def test_no_line_leaves_a_logarithmic_axis(self, folder: Path) -> None:
        trials = [made.trial("bowl", f"m{n}", 0, regret=lambda s, i, n=n: 10.0 ** -(n * i)) for n in range(6)]
        row = {"metric": "regret", "label": "regret", "logarithmic": True}
        ax = build("curves", made.read(folder, *trials), rows=[row], panels=[{"task": "bowl"}]).axes[0]
        low, high = ax.get_ylim()
        assert all(low <= line.get_ydata().min() and line.get_ydata().max() <= high for line in ax.lines)
        assert not [text for part in (ax, *ax.child_axes) for text in part.texts if text.get_text() in "↑↓"]

    def test_where_no_query_was_better_the_panel_says_so(self, folder: Path) -> None:
        flat = made.read(folder, *(made.trial("bowl", name, regret=lambda s, i: 1.0) for name in made.METHODS))
        falling = made.read(folder, *(made.trial("bowl", name) for name in made.METHODS))
        for found, said in ((flat, 1), (falling, 0)):
            ax = build("curves", found, rows=[{"metric": "best_f", "label": "best"}]).axes[0]
            assert len([text for text in ax.texts if "no query was better" in text.get_text()]) == said

    def test_what_limits_cut_off_is_marked_where_it_leaves(self, found: Evidence) -> None:
        row: dict[str, Any] = {"metric": "best_f", "label": "best", "limits": [None, None]}
        free = build("curves", found, rows=[row], panels=[{"task": "bowl"}]).axes[0]
        assert not [text for text in free.texts if text.get_text() in "↑↓"]
        low, high = free.get_ylim()
        cut = build("curves", found, rows=[row | {"limits": [low, (low + high) / 2]}], panels=[{"task": "bowl"}]).axes[
            0
        ]
        arrows = [text for text in cut.texts if text.get_text() in "↑↓"]
        assert [arrow.get_text() for arrow in arrows] == ["↑"] * len(made.METHODS)
        for arrow, area in zip(arrows, bands_of(cut), strict=True):
            assert arrow.get_position()[1] == 1.0
            assert arrow.get_position()[0] in area.get_paths()[0].vertices[:, 0]
            assert to_hex(arrow.get_color()) == to_hex(area.get_facecolor(), keep_alpha=False)

    def test_a_method_with_fewer_rounds_ends_earlier_in_the_same_panel(self, folder: Path) -> None:
        trials = [made.trial("bowl", "plain", 0), made.trial("bowl", "calibrated", 0, rounds=2)]
        ax = build("curves", made.read(folder, *trials), rows=[{"metric": "best_f", "label": "best"}]).axes[0]
        assert [line.get_xdata()[-1] for line in ax.lines] == [made.ROUNDS, 2]

    @pytest.mark.parametrize(("across", "lines"), [(1, 2), (2, 1)])
    def test_more_panels_than_fit_go_on_below(self, found: Evidence, across: int, lines: int) -> None:
        figure = build("curves", found, rows=[{"metric": "best_f", "label": "best"}], across=across)
        assert [ax.get_title() for ax in figure.axes] == list(made.TASKS)
        assert len({ax.get_position().y0 for ax in figure.axes}) == lines
        assert [bool(ax.get_ylabel()) for ax in figure.axes] == [True, lines == 2]
        assert all(ax.get_xlabel() for ax in figure.axes)

    def test_places_that_no_panel_needs_are_empty(self, folder: Path) -> None:
        trials = [made.trial(task) for task in ("a", "b", "c")]
        rows = [{"metric": "best_f", "label": "best"}]
        assert len(build("curves", made.read(folder, *trials), rows=rows, across=2).axes) == 3

    def test_a_line_that_another_covers_is_wider(self, found: Evidence) -> None:
        first, second = build("curves", found).axes[0].lines[:2]
        assert first.get_linewidth() > second.get_linewidth()

    @pytest.mark.parametrize("band", ["median-interval", "mean-error", "mean-interval"])
    def test_every_band_holds_its_middle(self, folder: Path, band: str) -> None:
        six = made.read(folder, *(made.trial("bowl", method, seed) for method in made.METHODS for seed in range(6)))
        ax = build("curves", six, rows=[{"metric": "best_f", "label": "best"}], band=band).axes[0]
        for line, area in zip(ax.lines, bands_of(ax), strict=True):
            low, high = area.get_paths()[0].get_extents().intervaly
            assert low <= line.get_ydata().min()
            assert line.get_ydata().max() <= high

    def test_too_few_seeds_for_the_interval_of_a_median_have_no_band(self, folder: Path) -> None:
        five = made.read(folder, *(made.trial("bowl", "plain", seed) for seed in range(5)))
        ax = build("curves", five, rows=[{"metric": "best_f", "label": "best"}], band="median-interval").axes[0]
        assert not any(area.get_paths() for area in bands_of(ax))
        assert np.isfinite(ax.lines[0].get_ydata()).all()

    def test_a_row_may_have_a_band_of_its_own(self, found: Evidence) -> None:
        row, panels = {"metric": "cumulative_regret", "label": "regret"}, [{"task": "bowl"}]
        both = build("curves", found, rows=[row, {**row, "band": "mean-error"}], panels=panels, quantiles=(0.0, 1.0))
        alone = build("curves", found, rows=[row], band="mean-error", panels=panels)
        wide, own, expected = (bands_of(ax)[0].get_paths()[0].get_extents() for ax in (*both.axes, *alone.axes))
        assert own.height == expected.height
        assert wide.height > own.height


def made_ends(found: Evidence, metric: str) -> np.ndarray:
    """Return the last values of the first method on the first task."""
    return found.ends(found.tasks[0], found.methods()[0], metric).to_numpy()

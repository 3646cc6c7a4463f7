"""What every kind of figure of trials must do; a new kind is noticed here and asks for an example."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import made_evidence as made
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.special import ndtri

from plumbline.analysis.comparisons.effects import ALL
from plumbline.analysis.evidence.evidence import PLACE, Evidence
from plumbline.analysis.evidence.filed import Filed
from plumbline.analysis.figures.coverage_density import density, density_line
from plumbline.analysis.figures.curve_lines import in_time
from plumbline.analysis.figures.run_ends import SPREAD, swarm
from plumbline.analysis.figures.width_by_distance import by_distance, relative_widths
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.draw import columns_for, draw
from plumbline.analysis.outputs.kinds import OutputOptions, figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.metrics.registry import by_round, check_metric
from plumbline.statistics.over_seeds import mean_interval
from plumbline.study.legends import Legend
from plumbline.study.resolved import ResolvedExperiment

KINDS = [kind for kind in figures.entries() if kind not in made.ILLUSTRATED]


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    """Close what a test drew."""
    yield
    plt.close("all")


def example(kind: str) -> dict[str, Any]:
    if kind not in made.FIGURES:
        pytest.fail(f"figure {kind!r} has no example: add its options to FIGURES in {made.__file__}")
    return made.FIGURES[kind]


def experiment_of(kind: str, **changes: Any) -> ResolvedExperiment:
    return made.plan({"E": made.experiment(figure={"kind": kind, "options": example(kind)}, **changes)}).resolve("E")


def on_a_stand_in(kind: str) -> ResolvedExperiment:
    return experiment_of(kind, grid=[{"tasks": ["qed"], "methods": list(made.METHODS)}])


def build(kind: str, found: Evidence, **changes: Any) -> Figure:
    return figures[kind].build(found, parse(figures[kind].options, example(kind) | changes, "test"))


def bands_of(ax: Axes) -> list[PolyCollection]:
    """Return the bands of a panel, in the order of its lines."""
    return [area for area in ax.collections if isinstance(area, PolyCollection)]


@dataclasses.dataclass
class Drawn:
    """One kind of figure, drawn from evidence with failures on a stand-in, and the state left behind."""

    kind: str
    svg: Path
    png: Path
    changed: set[str]
    still_open: list[int]


@pytest.fixture(scope="module", params=KINDS)
def drawn(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, found_with_failures: Evidence
) -> Drawn:
    folder = tmp_path_factory.mktemp("drawn")
    svg, png = folder / "new" / "E.svg", folder / "E.png"
    plt.close("all")
    before = dict(mpl.rcParams)
    draw(on_a_stand_in(request.param), found_with_failures, [svg, png])
    after, still_open = dict(mpl.rcParams), plt.get_fignums()
    plt.close("all")
    changed = {name for name in before if before[name] != after[name]}
    return Drawn(request.param, svg, png, changed, still_open)


class TestDrawing:
    @pytest.mark.slow
    def test_into_svg_and_png(self, drawn: Drawn) -> None:
        assert "<svg" in drawn.svg.read_text(encoding="utf-8")[:1000]
        assert drawn.png.read_bytes().startswith(b"\x89PNG")
        image = plt.imread(drawn.png)
        assert image.shape[1] > 300
        assert np.std(image[..., :3]) > 0.01

    @pytest.mark.parametrize(
        "part",
        [
            "preset quick",
            "3 seeds",
            f"{made.INITIAL} + {made.ROUNDS} evaluations",
            "generated-molecules (generated, stands in for zinc250k)",
            "2 FAILED TRIALS LEFT OUT",
        ],
    )
    def test_the_footer_says_what_it_rests_on(self, drawn: Drawn, part: str) -> None:
        """In letters: an SVG keeps its text."""
        assert part in drawn.svg.read_text(encoding="utf-8")

    def test_the_footer_begins_with_what_bands_and_bars_are(self, drawn: Drawn, found: Evidence) -> None:
        shown = parse(figures[drawn.kind].options, example(drawn.kind), "test").shown(found)
        assert shown
        # A long footer has several lines.
        text = "".join(ElementTree.parse(drawn.svg).getroot().itertext())
        assert "".join(shown.split()) in "".join(text.split())

    def test_its_file_has_no_date(self, drawn: Drawn) -> None:
        assert b"<dc:date>" not in drawn.svg.read_bytes()

    @pytest.mark.slow
    def test_drawn_twice_it_is_the_same_file(self, drawn: Drawn, found_with_failures: Evidence, tmp_path: Path) -> None:
        draw(on_a_stand_in(drawn.kind), found_with_failures, [tmp_path / "again.svg"])
        assert (tmp_path / "again.svg").read_bytes() == drawn.svg.read_bytes()

    def test_nothing_lies_beside_it(self, drawn: Drawn) -> None:
        files = sorted(path.name for path in drawn.png.parent.rglob("*") if path.is_file())
        assert files == ["E.png", "E.svg"]

    def test_the_look_of_other_figures_is_left_alone(self, drawn: Drawn) -> None:
        assert drawn.changed == set()

    def test_no_figure_stays_open(self, drawn: Drawn) -> None:
        """Pyplot keeps a figure until it is closed: a notebook shows it twice, a loop runs out of memory."""
        assert drawn.still_open == []


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_evidence_is_left_as_it_was(self, kind: str, found: Evidence) -> None:
        rows, snapshots = found.rows.copy(), found.snapshots.copy()
        build(kind, found)
        pd.testing.assert_frame_equal(found.rows, rows)
        pd.testing.assert_frame_equal(found.snapshots, snapshots)

    def test_it_reads_no_columns_but_those_it_names(self, kind: str, found: Evidence) -> None:
        columns = [*PLACE, *columns_for(experiment_of(kind), "figure")]
        assert build(kind, dataclasses.replace(found, rows=found.rows[columns])).axes

    def test_its_options_say_what_they_name(self, kind: str) -> None:
        options = parse(figures[kind].options, example(kind), "test")
        assert isinstance(options, OutputOptions)
        names = options.names()
        assert {*names.tasks} <= {*made.TASKS}
        assert {*names.methods} <= {*made.METHODS}
        for name in names.metrics:
            check_metric(name)

    def test_axes_are_labelled(self, kind: str, found: Evidence) -> None:
        figure = build(kind, found)
        assert any(ax.get_xlabel() for ax in figure.axes)
        assert any(ax.get_ylabel() for ax in figure.axes)
        assert figure.legends

    def test_one_seed_is_enough(self, kind: str, found: Evidence) -> None:
        """A figure of the first look at a method, before there are more."""
        first = dataclasses.replace(
            found,
            rows=found.rows[found.rows["seed"] == 0].reset_index(drop=True),
            snapshots=found.snapshots[found.snapshots["seed"] == 0],
        )
        assert build(kind, first).axes

    def test_nothing_but_failures_is_one_line(self, kind: str, folder: Path) -> None:
        broken = made.read(folder, *(made.failure(method=m) for m in made.METHODS))
        with pytest.raises(PlumblineError) as error:
            draw(experiment_of(kind), broken, [folder / "E.svg"])
        assert "\n" not in str(error.value)

    def test_a_typo_in_its_options_is_one_line(self, kind: str, found: Evidence, folder: Path) -> None:
        options = example(kind) | {"colour": "red"}
        plan = made.plan({"E": made.experiment(figure={"kind": kind, "options": options})})
        with pytest.raises(PlumblineError, match="figure of E: unknown field 'colour'"):
            draw(plan.resolve("E"), found, [folder / "E.svg"])
        assert not (folder / "E.svg").exists()


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


class TestModelSteps:
    def test_a_column_a_step_and_two_rows_a_method(self, found: Evidence) -> None:
        figure = build("model-steps", found)
        assert len(figure.axes) == 2 * 2 * 2
        assert [ax.get_title() for ax in figure.axes if ax.get_title()] == [
            "plain,\nbefore round 1",
            "plain,\nbefore round 4",
            "calibrated,\nbefore round 1",
            "calibrated,\nbefore round 4",
        ]

    def test_only_what_was_seen_before_the_query_is_drawn(self, found: Evidence) -> None:
        for column, step in enumerate((1, 4)):
            top = build("model-steps", found).axes[column]
            seen = next(line for line in top.lines if line.get_label() == "observed")
            query = next(line for line in top.lines if line.get_label() == "next query")
            assert len(seen.get_xdata()) == made.INITIAL + step - 1
            np.testing.assert_allclose(query.get_xdata(), [(made.INITIAL + step - 1) / 100])

    def test_the_seed_that_is_asked_for_is_shown(self, found: Evidence) -> None:
        for seed in (0, 2):
            rows = found.trials("bowl", "plain")
            values = rows.loc[(rows["seed"] == seed) & (rows["iteration"] < 1), "y"]
            top = build("model-steps", found, minimise=False, seed=seed).axes[0]
            seen = next(line for line in top.lines if line.get_label() == "observed")
            np.testing.assert_allclose(seen.get_ydata(), values)
        with pytest.raises(PlumblineError, match=r"no snapshots of seed 9: the experiment has \[0, 1, 2\]"):
            build("model-steps", found, seed=9)

    @pytest.mark.parametrize(("minimise", "sign"), [(True, -1), (False, 1)])
    def test_it_is_turned_upside_down_as_a_whole(self, found: Evidence, minimise: bool, sign: int) -> None:
        top = build("model-steps", found, minimise=minimise).axes[0]
        truth = next(line for line in top.lines if line.get_label() == "truth")
        seen = next(line for line in top.lines if line.get_label() == "observed")
        assert (sign * np.asarray(truth.get_ydata()) <= 0).all()
        assert (sign * np.asarray(seen.get_ydata()) <= 0).all()


def ends(method: str) -> list[float]:
    """Return the last regret of each seed of `usual`."""
    factor = 1 if method == "calibrated" else 2
    return [factor * made.falling(seed, made.INITIAL + made.ROUNDS - 1) for seed in range(made.SEEDS)]


def knobs(folder: Path) -> Evidence:
    """Return evidence of methods that vary, of two that do not, and of one that varies something else."""
    regrets = {"cbo-0.1": 3.0, "cbo-0.4": 1.0, "cbo-wide-0.1": 7.0, "bo": 2.0, "random": 5.0, "tau-1e-2": 4.0}
    trials = [
        made.trial("bowl", method, seed, regret=lambda s, i, r=regret: r + 0.1 * s)
        for method, regret in regrets.items()
        for seed in range(2)
    ]
    legends = {
        "cbo-0.1": Legend(label="CBO", colour="green", entry="cbo", parameters={"alpha": 0.1}),
        "cbo-0.4": Legend(label="CBO", colour="green", entry="cbo", parameters={"alpha": 0.4}),
        "cbo-wide-0.1": Legend(label="wide CBO", entry="cbo-wide", parameters={"alpha": 0.1}),
        "bo": Legend(label="BO"),
        "tau-1e-2": Legend(label="tau", parameters={"tau": "1e-2"}),
    }
    return dataclasses.replace(made.read(folder, *trials), legends=legends)


def drawn_lines(ax: Axes) -> dict[str, list[tuple[float, float]]]:
    """Return the points of each line with bars, by its legend."""
    return {
        container.get_label(): [(float(x), float(y)) for x, y in zip(*container[0].get_data(), strict=True)]
        for container in ax.containers
    }


class TestSweepOfMethods:
    def test_a_line_an_entry_at_the_values_of_its_looks(self, folder: Path) -> None:
        ax = build("sweep", knobs(folder), parameter="alpha").axes[0]
        lines = drawn_lines(ax)
        assert list(lines) == ["CBO", "wide CBO"]
        np.testing.assert_allclose(lines["CBO"], [(0.1, 3.05), (0.4, 1.05)], atol=0.01)
        np.testing.assert_allclose(lines["wide CBO"], [(0.1, 7.05)], atol=0.01)
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1", "0.4"]
        assert to_hex(ax.containers[0][0].get_color()) == style.PALETTE["green"]

    def test_methods_that_do_not_vary_are_drawn_across(self, folder: Path) -> None:
        ax = build("sweep", knobs(folder), parameter="alpha").axes[0]
        across = {
            line.get_label(): line.get_ydata()[0] for line in ax.lines if line.get_label() in ("BO", "random", "tau")
        }
        assert across == pytest.approx({"BO": 2.05, "random": 5.05, "tau": 4.05})

    def test_entries_and_constants_that_are_named_and_no_others(self, folder: Path) -> None:
        ax = build("sweep", knobs(folder), parameter="alpha", lines=["cbo", "no-such"], constant=["bo", "nor"]).axes[0]
        assert list(drawn_lines(ax)) == ["CBO"]
        assert [line.get_label() for line in ax.lines if line.get_label()[0] != "_"] == ["BO"]

    def test_logarithmic_and_words_of_the_axis(self, folder: Path) -> None:
        ax = build("sweep", knobs(folder), parameter="alpha", logarithmic=True, axis="the level").axes[0]
        assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "the level")

    def test_a_parameter_that_nothing_varies_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="no task and no method with trials varies 'alpa'"):
            build("sweep", knobs(folder), parameter="alpa")

    def test_an_entry_that_is_named_means_all_of_its_methods(self, folder: Path) -> None:
        ax = build("curves", knobs(folder), panels=[{"task": "bowl", "methods": ["bo", "cbo"]}]).axes[0]
        assert [line.get_label() for line in ax.lines] == ["BO", "CBO", "CBO"]

    def test_a_row_a_metric_and_a_column_a_task(self, folder: Path) -> None:
        found = knobs(folder)
        below = [{"metric": "query_coverage", "label": "coverage", "nominal": "mean_nominal_coverage"}]
        task = found.tasks[0]
        figure = build("sweep", found, parameter="alpha", below=below, columns=[task, "no-such"])
        above, last = figure.axes
        assert list(drawn_lines(above)) == list(drawn_lines(last)) == ["CBO", "wide CBO"]
        assert (above.get_ylabel(), last.get_ylabel(), last.get_xlabel()) == ("regret", "coverage", "alpha")
        assert style.NOMINAL in [line.get_label() for line in last.lines]
        assert style.NOMINAL not in [line.get_label() for line in above.lines]


class TestSweepOfTasks:
    def test_points_are_means_at_the_end_with_their_interval(self, found: Evidence) -> None:
        ax = build("sweep", found).axes[0]
        for container, method in zip(ax.containers, made.METHODS, strict=True):
            line, _, (bars,) = container
            low, mean, high = mean_interval(np.array(ends(method))[:, None])
            np.testing.assert_allclose(line.get_ydata(), [mean.item()] * 2)
            for segment in bars.get_segments():
                np.testing.assert_allclose(segment[:, 1], [low.item(), high.item()])

    def test_values_of_the_parameter_are_the_ticks(self, found: Evidence) -> None:
        ax = build("sweep", found).axes[0]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2"]
        assert ax.get_xlabel() == "knob"

    def test_what_a_preset_leaves_out_is_left_out(self, found: Evidence) -> None:
        ax = build("sweep", found, tasks=["bowl", "valley", "no-such"]).axes[0]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2"]
        ax = build("sweep", found, methods=["plain", "no-such"]).axes[0]
        assert list(drawn_lines(ax)) == ["plain"]
        ax = build("sweep", found, tasks=["valley"]).axes[0]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["2"]

    def test_two_ways_at_once_are_refused(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="give `lines` and `constant` where methods vary, or `tasks`"):
            build("sweep", found, lines=["plain"], tasks=["bowl"])


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


class TestMeanRanks:
    @pytest.fixture
    def found(self, folder: Path) -> Evidence:
        """Calibrated is ahead on both tasks; random recommends nothing."""
        ends = {"plain": 2.0, "calibrated": 1.0, "random": 3.0}
        trials = [
            made.trial(task, method, seed, regret=lambda _, i, end=end: end)
            for task in ("bowl", "valley")
            for method, end in ends.items()
            for seed in range(3)
        ]
        for row in (row for trial in trials for row in trial if row["method"] != "random"):
            row["notes"] = {"recommended": 0.0}
        return made.read(folder, *trials)

    def test_the_best_is_on_top_and_those_without_a_rank_have_no_dot(self, found: Evidence) -> None:
        words = {"regret": "simple regret", "recommended_regret": "recommended"}
        overall, by_task = build("mean-ranks", found, metrics=words, titles={"valley": "V"}).axes
        assert [tick.get_text() for tick in overall.get_yticklabels()] == ["calibrated", "plain", "random"]
        top, bottom = overall.transData.transform([(0, 0), (0, 1)])[:, 1]
        assert top > bottom
        regret, recommended = ([*one[0].get_xdata()] for one in overall.containers)
        assert regret == [1.0, 2.0, 3.0]
        assert recommended[:2] == [1.0, 2.0]
        assert np.isnan(recommended[2])
        assert [text.get_text() for text in by_task.texts] == ["1.0", "1.0", "2.0", "2.0", "3.0", "3.0"]
        assert [tick.get_text() for tick in by_task.get_xticklabels()] == ["bowl", "V"]

    def test_methods_with_one_seed_are_named_and_not_ranked(self, folder: Path) -> None:
        seeds = {"plain": 3, "calibrated": 3, "random": 1}
        trials = [made.trial("bowl", method, seed) for method, count in seeds.items() for seed in range(count)]
        found, kind = made.read(folder, *trials), figures["mean-ranks"]
        asked = kind.options(metrics={"regret": "regret"})
        labels = [tick.get_text() for tick in kind.build(found, asked).axes[0].get_yticklabels()]
        assert sorted(labels) == ["calibrated", "plain"]
        assert asked.shown(found).endswith("over seeds; not ranked, with one seed: random")

    def test_nothing_to_rank_is_one_line(self, folder: Path) -> None:
        apart = made.read(folder, made.trial("bowl", "plain"), made.trial("valley", "calibrated"))
        with pytest.raises(PlumblineError, match="nothing to rank"):
            build("mean-ranks", apart)


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


def made_ends(found: Evidence, metric: str) -> np.ndarray:
    """Return the last values of the first method on the first task."""
    return found.ends(found.tasks[0], found.methods()[0], metric).to_numpy()


class TestDifferences:
    def test_a_row_is_less_a_method_seed_by_seed(self, found: Evidence) -> None:
        rows = [{"metric": "regret", "label": "less plain", "minus": "plain"}]
        ax = build("curves", found, rows=rows, band="mean-error", queries=False).axes[0]
        lines = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.get_lines()}
        ours, theirs = (by_round(found.trials("bowl", method), "regret") for method in ("calibrated", "plain"))
        np.testing.assert_allclose(lines["calibrated"], (ours - theirs).mean())
        np.testing.assert_allclose(lines["plain"], 0.0)

    def test_or_the_first_of_each_panel(self, found: Evidence) -> None:
        rows = [{"metric": "regret", "label": "less the first", "minus": "first"}]
        panels = [{"task": "bowl", "methods": list(order)} for order in (made.METHODS, made.METHODS[::-1])]
        for ax, (first, second) in zip(
            build("curves", found, rows=rows, panels=panels, band="mean-error", queries=False).axes,
            (made.METHODS, made.METHODS[::-1]),
            strict=True,
        ):
            lines = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.get_lines()}
            ours, theirs = (by_round(found.trials("bowl", method), "regret") for method in (second, first))
            np.testing.assert_allclose(lines[second], (ours - theirs).mean())
            np.testing.assert_allclose(lines[first], 0.0)

    def test_a_method_that_is_not_there_is_one_line(self, found: Evidence) -> None:
        rows = [{"metric": "regret", "label": "less that", "minus": "nobody"}]
        with pytest.raises(PlumblineError, match="no trials of 'nobody'"):
            build("curves", found, rows=rows)


class TestAgainstTime:
    ROWS = ({"metric": "best_f", "label": "best"}, {"metric": "best_f", "label": "best", "against": "minutes"})

    @staticmethod
    def timed(found: Evidence, **seconds: list[float]) -> Evidence:
        """Rounds of each seed took so many seconds; the initial design took a day."""
        rows = found.rows.copy()
        each = pd.DataFrame(seconds).to_numpy()
        took = [each[i - 1, seed] if i else 86_400.0 for seed, i in zip(rows["seed"], rows["iteration"], strict=True)]
        return dataclasses.replace(found, rows=rows.assign(round_seconds=took))

    def test_what_each_seed_had_come_to_by_then(self) -> None:
        table = pd.DataFrame({0: [0.0, 10.0], 1: [1.0, 11.0], 2: [2.0, 12.0]})
        seconds = pd.DataFrame({1: [60.0, 120.0], 2: [60.0, 120.0]})
        minutes, values = in_time(table, seconds, moments=9)
        assert minutes.tolist() == [0.25 * i for i in range(9)]
        assert values[0].tolist() == [0.0] * 4 + [1.0] * 4 + [2.0]
        assert values[1].tolist() == [10.0] * 8 + [11.0]

    def test_the_initial_design_does_not_count_and_the_first_trial_to_end_ends_the_line(self, found: Evidence) -> None:
        slow, fast = [120.0] * made.ROUNDS, [60.0] * made.ROUNDS
        figure = build("curves", self.timed(found, a=slow, b=fast, c=slow), rows=self.ROWS, queries=True)
        by_evaluations, by_minutes = figure.axes[0], figure.axes[2]
        x = by_minutes.lines[0].get_xdata()
        assert (x[0], x[-1]) == (0.0, made.ROUNDS)
        assert by_evaluations.lines[0].get_xdata()[-1] == made.ROUNDS
        assert by_minutes.lines[0].get_ydata()[0] == by_evaluations.lines[0].get_ydata()[0]
        assert [ax.get_xlabel() for ax in (by_evaluations, by_minutes)] == ["queries", "minutes"]

    def test_its_columns_are_asked_for(self) -> None:
        assert "round_seconds" not in columns_for(experiment_of("curves"), "figure")
        timed = made.experiment(figure={"kind": "curves", "options": {"rows": [dict(row) for row in self.ROWS]}})
        assert "round_seconds" in columns_for(made.plan({"E": timed}).resolve("E"), "figure")

    @pytest.mark.parametrize("other", [{"minus": "plain"}, {"nominal": "mean_nominal_coverage"}])
    def test_differences_are_of_evaluations(self, other: dict[str, str]) -> None:
        rows = [{"metric": "best_f", "label": "best", "against": "minutes", **other}]
        with pytest.raises(PlumblineError, match="`minus` and `nominal` are drawn against evaluations"):
            parse(figures["curves"].options, {"rows": rows}, "test")


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
        (ax,) = build("paired-effects", dataclasses.replace(found, filed=Filed(table=table)), **options).axes
        assert ax.get_xlim()[0] > -90
        assert [(text.get_text(), text.get_position()) for text in ax.texts] == [("←", (0.0, 1.0))]


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

"""What every kind of figure of trials must do; a new kind is noticed here and asks for an example."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_evidence as made
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from plumbline.analysis import style
from plumbline.analysis.collect import Evidence, evidence
from plumbline.analysis.draw import draw
from plumbline.analysis.outputs import figures
from plumbline.analysis.statistics import mean_interval
from plumbline.config import Plan
from plumbline.errors import PlumblineError
from plumbline.options import parse

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


def plan_of(kind: str, **changes: Any) -> Plan:
    return made.plan({"E": made.experiment(figure={"kind": kind, "options": example(kind)}, **changes)})


def build(kind: str, found: Evidence, **changes: Any) -> Figure:
    return figures[kind].build(found, parse(figures[kind].options, example(kind) | changes, "test"))


@dataclasses.dataclass
class Drawn:
    """One kind of figure, drawn twice from evidence with failures on a stand-in, and the state left behind."""

    kind: str
    svg: Path
    again: Path
    png: Path
    changed: set[str]
    still_open: list[int]


@pytest.fixture(scope="module", params=KINDS)
def drawn(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, found_with_failures: Evidence
) -> Drawn:
    folder = tmp_path_factory.mktemp("drawn")
    molecules = {"name": "molecules", "options": {"dataset": "zinc250k", "target": "qed"}}
    plan = plan_of(request.param, grid=[{"problems": [molecules], "methods": list(made.METHODS)}])
    svg, again, png = folder / "new" / "E.svg", folder / "again.svg", folder / "E.png"
    plt.close("all")
    before = dict(mpl.rcParams)
    draw(plan, "E", found_with_failures, [svg, png])
    after, still_open = dict(mpl.rcParams), plt.get_fignums()
    draw(plan, "E", found_with_failures, [again])
    plt.close("all")
    changed = {name for name in before if before[name] != after[name]}
    return Drawn(request.param, svg, again, png, changed, still_open)


class TestDrawing:
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

    def test_drawn_twice_it_is_the_same_file(self, drawn: Drawn) -> None:
        assert drawn.svg.read_bytes() == drawn.again.read_bytes()
        assert b"<dc:date>" not in drawn.svg.read_bytes()

    def test_nothing_lies_beside_it(self, drawn: Drawn) -> None:
        files = sorted(path.name for path in drawn.png.parent.rglob("*") if path.is_file())
        assert files == ["E.png", "E.svg", "again.svg"]

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

    def test_axes_are_labelled(self, kind: str, found: Evidence) -> None:
        figure = build(kind, found)
        assert any(ax.get_xlabel() for ax in figure.axes)
        assert any(ax.get_ylabel() for ax in figure.axes)
        assert figure.legends

    def test_one_seed_is_enough(self, kind: str, found: Evidence) -> None:
        """A figure of the first look at a method, before there are more."""
        first = Evidence(
            found.rows[found.rows["seed"] == 0].reset_index(drop=True),
            found.failures,
            found.snapshots[found.snapshots["seed"] == 0],
        )
        assert build(kind, first).axes

    def test_nothing_but_failures_is_one_line(self, kind: str, folder: Path) -> None:
        path = made.write(folder / "e.parquet", *(made.failure(method=m) for m in made.METHODS))
        with pytest.raises(PlumblineError) as error:
            draw(plan_of(kind), "E", evidence(path), [folder / "E.svg"])
        assert "\n" not in str(error.value)

    def test_a_typo_in_its_options_is_one_line(self, kind: str, found: Evidence, folder: Path) -> None:
        options = example(kind) | {"colour": "red"}
        plan = made.plan({"E": made.experiment(figure={"kind": kind, "options": options})})
        with pytest.raises(PlumblineError, match="figure of E: unknown field 'colour'"):
            draw(plan, "E", found, [folder / "E.svg"])
        assert not (folder / "E.svg").exists()


class TestCalibrationCurves:
    def test_lines_are_the_means_over_seeds_turned_upside_down(self, found: Evidence) -> None:
        figure = build("calibration-curves", found)
        assert len(figure.axes) == 4
        bottom = figure.axes[2]
        plain = next(line for line in bottom.lines if line.get_label() == "plain")
        assert to_hex(plain.get_color()) == style.PLAIN
        expected = [
            np.mean([2 * made.falling(seed, made.INITIAL - 1 + i) for seed in range(made.SEEDS)])
            for i in range(made.ROUNDS + 1)
        ]
        np.testing.assert_allclose(plain.get_ydata(), expected)
        np.testing.assert_allclose(plain.get_xdata(), range(made.ROUNDS + 1))

    def test_the_minimum_is_drawn_where_it_is_known(self, found: Evidence) -> None:
        bottom = build("calibration-curves", found).axes[2]
        minimum = next(line for line in bottom.lines if line.get_label() == "minimum")
        np.testing.assert_allclose(minimum.get_ydata(), 0.0, atol=1e-12)

    def test_no_minimum_is_drawn_where_it_is_not(self, found: Evidence) -> None:
        unknown = dataclasses.replace(found, rows=found.rows.assign(regret=np.nan))
        bottom = build("calibration-curves", unknown).axes[2]
        assert "minimum" not in [line.get_label() for line in bottom.lines]

    def test_bands_are_one_standard_error(self, found: Evidence) -> None:
        bottom = build("calibration-curves", found).axes[2]
        band = bottom.collections[1].get_paths()[0].get_extents()
        ends = [made.falling(seed, made.INITIAL - 1 + made.ROUNDS) for seed in range(made.SEEDS)]
        error = np.std(ends, ddof=1) / np.sqrt(made.SEEDS)
        assert band.ymin == pytest.approx(np.mean(ends) - error)


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
        band = regret.collections[1].get_paths()[0].get_extents()
        totals = [sum(made.falling(s, made.INITIAL + i) for i in range(made.ROUNDS)) for s in range(made.SEEDS)]
        assert band.ymax == pytest.approx(max(totals))

    def test_a_column_a_problem(self, found: Evidence) -> None:
        figure = build("curves", found)
        assert [ax.get_title() for ax in figure.axes[:2]] == list(made.PROBLEMS)
        assert len(figure.axes) == 4

    def test_the_initial_design_counts_unless_queries_are_asked_for(self, found: Evidence) -> None:
        best = {"rows": [{"metric": "best_f", "label": "best"}]}
        queries, evaluations = (
            build("curves", found, **best, queries=queries).axes[0].lines[0].get_xdata() for queries in (True, False)
        )
        assert queries.tolist() == list(range(made.ROUNDS + 1))
        assert evaluations.tolist() == [made.INITIAL + i for i in range(made.ROUNDS + 1)]

    def test_methods_go_by_the_names_that_are_given(self, found: Evidence) -> None:
        figure = build("curves", found, names={"calibrated": "Calibrated"})
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["plain", "Calibrated", "1 - alpha"]

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

    def test_looks_go_by_the_words_of_the_legend(self, found: Evidence) -> None:
        look = {"dashed": {"Plain": "Calibrated"}}
        ax = build("curves", found, names={"plain": "Plain", "calibrated": "Calibrated"}, look=look).axes[0]
        plain, calibrated = (next(x for x in ax.lines if x.get_label() == name) for name in ("Plain", "Calibrated"))
        assert plain.get_color() == calibrated.get_color()
        assert plain.get_linestyle() == "--"
        assert calibrated.get_linestyle() == "-"

    @pytest.mark.parametrize("band", ["median-interval", "mean-error", "mean-interval"])
    def test_every_band_holds_its_middle(self, found: Evidence, band: str) -> None:
        ax = build("curves", found, rows=[{"metric": "best_f", "label": "best"}], band=band).axes[0]
        for line, area in zip(ax.lines, ax.collections, strict=True):
            low, high = area.get_paths()[0].get_extents().intervaly
            assert low <= line.get_ydata().min()
            assert line.get_ydata().max() <= high


class TestModelSteps:
    def test_a_column_a_step_and_two_rows_a_method(self, found: Evidence) -> None:
        figure = build("model-steps", found)
        assert len(figure.axes) == 2 * 2 * 2
        assert [ax.get_title() for ax in figure.axes if ax.get_title()] == [
            "plain, step 1",
            "plain, step 4",
            "calibrated, step 1",
            "calibrated, step 4",
        ]

    def test_only_what_was_seen_before_the_query_is_drawn(self, found: Evidence) -> None:
        for column, step in enumerate((1, 4)):
            top = build("model-steps", found).axes[column]
            seen = next(line for line in top.lines if line.get_label() == "observed")
            query = next(line for line in top.lines if line.get_label() == "next query")
            assert len(seen.get_xdata()) == made.INITIAL + step - 1
            np.testing.assert_allclose(query.get_xdata(), [(made.INITIAL + step - 1) / 100])

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


class TestSweep:
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

    def test_lines_of_one_problem_and_methods_across(self, found: Evidence) -> None:
        one = {"problems": {}, "across": {}, "logarithmic": True, "constant": {"Plain": "plain"}}
        ax = build("sweep", found, lines={"Calibrated": {1.0: "calibrated", 4.0: "calibrated"}}, **one).axes[0]
        assert ax.get_xscale() == "log"
        dashed = next(line for line in ax.lines if line.get_label() == "Plain")
        np.testing.assert_allclose(dashed.get_ydata(), np.mean(ends("plain")))

    def test_what_a_preset_leaves_out_is_left_out(self, found: Evidence) -> None:
        ax = build("sweep", found, problems={1.0: "bowl", 2.0: "valley", 3.0: "no-such"}).axes[0]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2"]
        ax = build("sweep", found, across={"Plain": "plain", "None": "no-such"}).axes[0]
        assert len(ax.containers) == 1

    def test_looks(self, found: Evidence) -> None:
        ax = build(
            "sweep",
            found,
            look={"dashed": {"Plain": "Calibrated"}},
            across={"Plain": "plain", "Calibrated": "calibrated"},
        ).axes[0]
        (plain, *_), (calibrated, *_) = ax.containers
        assert plain.get_color() == calibrated.get_color()
        assert (plain.get_linestyle(), calibrated.get_linestyle()) == ("--", "-")

    def test_two_ways_at_once_are_refused(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="give `lines`, or `problems`"):
            build("sweep", found, lines={"Plain": {1.0: "plain"}})


class TestFinalDots:
    def test_dots_are_means_at_the_end_from_top_to_bottom(self, found: Evidence) -> None:
        ax = build("final-dots", found).axes[0]
        dots = [(container[0].get_xdata()[0], container[0].get_ydata()[0]) for container in ax.containers]
        np.testing.assert_allclose(dots, [(np.mean(ends("plain")), 0), (np.mean(ends("calibrated")), 1)])
        assert [tick.get_text() for tick in ax.get_yticklabels()] == list(made.FIGURES["final-dots"]["dots"])
        top, bottom = ax.transData.transform([(0, 0), (0, 1)])[:, 1]
        assert top > bottom


class TestSetBands:
    def test_bands_are_as_wide_as_the_sets_of_the_last_picture(self, found: Evidence) -> None:
        figure = build("set-bands", found)
        picture = made.pictures(made.trial(), steps=(4,))
        for ax in figure.axes:
            extents = ax.collections[0].get_paths()[0].get_extents()
            assert extents.ymax == pytest.approx(max(row["mean"] + row["width"] / 2 for row in picture))
            assert extents.ymin == pytest.approx(min(row["mean"] - row["width"] / 2 for row in picture))

    def test_only_what_was_seen_by_then_is_drawn(self, found: Evidence) -> None:
        ax = build("set-bands", found).axes[0]
        observed = next(line for line in ax.lines if line.get_label() == "observed")
        assert len(observed.get_xdata()) == made.INITIAL + 3

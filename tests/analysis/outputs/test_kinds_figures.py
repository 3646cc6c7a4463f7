"""What every kind of figure of trials must do; a new kind is noticed here and asks for an example."""

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

import made_evidence as made
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from figure_cases import build, example, experiment_of

from plumbline.analysis.evidence.evidence import PLACE, Evidence
from plumbline.analysis.outputs.draw import columns_for, draw
from plumbline.analysis.outputs.kinds import OutputOptions, figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.metrics.registry import check_metric
from plumbline.study.resolved import ResolvedExperiment

KINDS = [kind for kind in figures.entries() if kind not in made.ILLUSTRATED]


def on_a_stand_in(kind: str) -> ResolvedExperiment:
    return experiment_of(kind, grid=[{"tasks": ["qed"], "methods": list(made.METHODS)}])


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

"""Whether methods that meet in a figure can be told apart, by eyes that see red, green or both less well too.

Colour vision deficiency as in Machado, Oliveira and Fernandes (2009), severity 1; distances in CIELAB under D65.
"""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.draw import output_of
from plumbline.core.errors import PlumblineError
from plumbline.study.legends import Legend
from plumbline.study.plan import Plan, load_plan
from plumbline.study.resolved import ResolvedExperiment
from plumbline.study.settings import read_config

Array = NDArray[np.float64]

FLOOR = 15.0
"""Least distance in CIELAB of two colours that meet: a just noticeable difference is about 2."""

EYES = {
    "normal": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
"""What is seen of linear RGB."""

TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(colour: str, eye: str) -> Array:
    """Return the CIELAB coordinates of what an eye sees of a colour."""
    rgb = np.array(to_rgb(colour))
    linear = EYES[eye] @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    relative = TO_XYZ @ linear.clip(0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(relative > (6 / 29) ** 3, np.cbrt(relative), relative / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str) -> float:
    """Return the least distance of two colours over all eyes."""
    return min(float(np.linalg.norm(lab(one, eye) - lab(other, eye))) for eye in EYES)


def test_distances_are_those_of_the_definition() -> None:
    assert lab("#ffffff", "normal") == pytest.approx([100, 0, 0], abs=0.01)
    assert lab("#ff0000", "normal") == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    for eye in EYES:
        assert lab("#808080", eye)[1:] == pytest.approx([0, 0], abs=0.02), "greys stay grey"
    red, green = (lab(colour, "deuteranope") for colour in ("#d04000", "#829000"))
    assert np.linalg.norm(red - green) < 0.5 * distance("#d04000", "#0040d0"), "deuteranopes confuse red and green"


def test_any_two_colours_of_the_palette_are_apart() -> None:
    """Those of methods in one figure must be `FLOOR` apart; the palette keeps more."""
    assert min(distance(*pair) for pair in combinations(style.PALETTE.values(), 2)) >= 19.0


def test_colours_stand_out_from_paper_and_from_what_is_no_method() -> None:
    assert min(distance(own, no) for own in style.PALETTE.values() for no in ("#ffffff", style.TRUTH)) >= FLOOR


def test_no_two_colours_have_one_marker() -> None:
    assert len({style.marker_of(colour) for colour in style.PALETTE.values()}) == len(style.PALETTE)


@pytest.fixture(scope="module", params=["quick", "desk", "paper"])
def plan(request: pytest.FixtureRequest, root: Path) -> Plan:
    """The study's own configuration."""
    return load_plan(read_config(root / "config/config.yaml", {"preset": request.param}), root, "config")


def drawn(plan: Plan) -> Iterator[ResolvedExperiment]:
    """Yield the experiments of a preset that have a figure of their trials."""
    for study in plan.studies.values():
        for name in study.experiments:
            try:
                one = plan.resolve(name)
            except PlumblineError:
                continue  # not of this preset
            if one.trials and one.experiment.figure is not None:
                yield one


ROWS_OF_WORDS = ("final-dots", "mean-ranks", "run-ends", "set-bands", "model-steps")
"""Kinds of figures in which words beside or above a method say which it is."""


def told_by_style(one: ResolvedExperiment) -> dict[str, Legend]:
    """Return the legends of methods that a figure tells by colour, dashes and markers alone, by their words."""
    kind = one.experiment.figure.kind
    arms = kind == "paired-effects" and output_of(one, "figure")[1].arms
    return {} if arms or kind in ROWS_OF_WORDS else {legend.label: legend for legend in one.legends.values()}


@pytest.mark.slow
def test_methods_that_meet_in_a_figure_can_be_told_apart(plan: Plan) -> None:
    seen = 0
    for one in drawn(plan):
        shown = told_by_style(one)
        styles = style.method_styles(shown, shown)
        for (words, first), (others, second) in combinations(styles.items(), 2):
            if first.dashed == second.dashed:
                assert first.marker != second.marker, (one.name, words, others)
                assert distance(first.colour, second.colour) >= FLOOR, (one.name, words, others)
                seen += 1
    assert seen > (30 if plan.config.preset == "quick" else 150)


def test_a_method_looks_the_same_in_every_figure(plan: Plan) -> None:
    looks: dict[str, set[tuple[str, bool]]] = {}
    for one in drawn(plan):
        for legend in one.legends.values():
            looks.setdefault(legend.label, set()).add((legend.colour, legend.dashed))
    assert [words for words, found in looks.items() if len(found) > 1] == []


def test_colours_of_methods_are_those_of_the_palette(plan: Plan) -> None:
    for name, method in plan.library.methods.items():
        assert method.legend.colour in ("", *style.PALETTE), name


def test_a_method_of_the_paper_has_one_name_whatever_its_settings(plan: Plan) -> None:
    """Captions give the settings of each figure."""
    names = ("locbo", "locbo-quiet", "locbo-k2", "locbo-radio")
    assert {plan.library.methods[name].legend.label for name in names} == {"LOCBO"}


@pytest.mark.parametrize(
    ("names", "colour"),
    [
        (("ucb", "ucb-ml", "ucb-two", "atlas-ucb"), "orange"),
        (("cucb", "calibrated-ucb", "locbo", "eulbo-ei", "calibrated-ucb-closed"), "blue"),
        (("ei", "ei-ml", "exact-ei", "logei-plain"), "red"),
        (("random",), "grey"),
    ],
)
def test_what_readers_know_keeps_its_colour(plan: Plan, names: tuple[str, ...], colour: str) -> None:
    assert {plan.library.methods[name].legend.colour for name in names} == {colour}

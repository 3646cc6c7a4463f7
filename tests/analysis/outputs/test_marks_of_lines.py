"""Whether what a figure draws tells lines of methods apart without their colours."""

from itertools import combinations

import made_evidence as made
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path as Outline

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.options import parse

WITHOUT_LINES = ("final-dots", "mean-ranks", "run-ends", "paired-effects", "set-bands", "model-steps")
"""Kinds of figures that have no panel with lines of several methods."""

KINDS = [kind for kind in figures.entries() if kind not in made.ILLUSTRATED]


def shape(outline: Outline) -> bytes:
    return np.asarray(outline.vertices, dtype=float).tobytes()


def lines_of(ax: Axes, labels: set[str]) -> dict[str, Line2D]:
    """Return the lines of a panel whose words in the legend are those of methods."""
    found = {}
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        line = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
        if label in labels and isinstance(line, Line2D):
            found[label] = line
    return found


def markers_drawn(ax: Axes, line: Line2D) -> set[bytes]:
    """Return the shapes of the markers in a line's colour: its own where it draws any, and points beside it."""
    found = {
        shape(points.get_paths()[0])
        for points in ax.collections
        if isinstance(points, PathCollection)
        and len(np.asarray(points.get_offsets()))
        and to_hex(np.asarray(points.get_edgecolor())[0]) == to_hex(line.get_color())
    }
    if line.get_marker() not in ("", "None", None) and line.get_markevery() != []:
        marker = MarkerStyle(line.get_marker())
        found.add(shape(marker.get_path().transformed(marker.get_transform())))
    return found


def told_apart(ax: Axes, lines: dict[str, Line2D]) -> bool:
    """Whether any two lines have markers, and no shape in common; those with their name in the panel need none."""
    named = {text.get_text() for text in ax.texts}
    drawn = [markers_drawn(ax, line) for label, line in lines.items() if label not in named]
    return all(one and other and not one & other for one, other in combinations(drawn, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_lines_in_a_panel_differ_in_more_than_colour(kind: str, found: Evidence) -> None:
    options = parse(figures[kind].options, made.FIGURES[kind], "test")
    labels = {found.legend(method).label for method in found.methods()}
    panels = [(ax, lines_of(ax, labels)) for ax in figures[kind].build(found, options).axes]
    with_several = [(ax, lines) for ax, lines in panels if len(lines) > 1]
    assert bool(with_several) != (kind in WITHOUT_LINES)
    assert all(told_apart(ax, lines) for ax, lines in with_several)


def test_lines_without_markers_are_found_out() -> None:
    """Nor does it help that lines know of markers, for the legend, where they draw none."""
    blue, orange = (style.MethodStyle(style.PALETTE[name], marker) for name, marker in (("blue", "o"), ("orange", "s")))
    _, (bare, known, drawn, alike, named) = plt.subplots(1, 5)
    for i, its in enumerate((blue, orange)):
        bare.plot([0, 1], [i, i], **its.line, label=str(i))
        known.plot([0, 1], [i, i], **its.line, **its.points, markevery=[], label=str(i))
        marks.draw_level(drawn, i, its, i, 2, label=str(i))
        alike.plot([0, 1], [i, i], "o-", color=its.colour, label=str(i))
        named.plot([0, 1], [i, i], **its.line, label=str(i))
        named.text(1, i, str(i))
    assert [told_apart(ax, lines_of(ax, {"0", "1"})) for ax in (bare, known, drawn, alike, named)] == [
        False,
        False,
        True,
        False,
        True,
    ]

"""Figures of each kind, from the examples of `made_evidence`."""

from typing import Any

import made_evidence as made
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.options import parse
from plumbline.study.resolved import ResolvedExperiment


def example(kind: str) -> dict[str, Any]:
    if kind not in made.FIGURES:
        pytest.fail(f"figure {kind!r} has no example: add its options to FIGURES in {made.__file__}")
    return made.FIGURES[kind]


def experiment_of(kind: str, **changes: Any) -> ResolvedExperiment:
    return made.plan({"E": made.experiment(figure={"kind": kind, "options": example(kind)}, **changes)}).resolve("E")


def build(kind: str, found: Evidence, **changes: Any) -> Figure:
    return figures[kind].build(found, parse(figures[kind].options, example(kind) | changes, "test"))


def bands_of(ax: Axes) -> list[PolyCollection]:
    """Return the bands of a panel, in the order of its lines."""
    return [area for area in ax.collections if isinstance(area, PolyCollection)]


def ends(method: str) -> list[float]:
    """Return the last regret of each seed of `usual`."""
    factor = 1 if method == "calibrated" else 2
    return [factor * made.falling(seed, made.INITIAL + made.ROUNDS - 1) for seed in range(made.SEEDS)]

"""Figures of illustrations, from the tables of `made_evidence`."""

from typing import Any

import made_evidence as made
from matplotlib.figure import Figure

from plumbline.analysis.outputs.kinds import figures


def build(kind: str, **options: Any) -> Figure:
    return figures[kind].build(made.illustrated(kind), figures[kind].options(**options))


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]

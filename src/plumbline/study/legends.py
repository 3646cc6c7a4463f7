"""Legends: labels, colours and lines of methods, the same in every figure."""

from pydantic import Field

from plumbline.core.options import Options

COLOURS = ("blue", "orange", "green", "red", "purple", "brown", "pink", "grey", "yellow", "sky")
"""Names of colours; `plumbline.analysis.outputs.style` says which they are."""


class Legend(Options):
    """How a method appears in every figure: its label, colour and line.

    Attributes:
        label: its words in legends.
        colour: one of `COLOURS`, or #rrggbb; empty for the next that is free.
        dashed: whether its lines are.
        parameters: values of what its entry in `config/methods` varies: `{"alpha": 0.2}`.
        entry: that entry, which a figure may name in place of all its variants; the method itself if it varies nothing.
    """

    label: str
    colour: str = Field(default="", pattern=rf"^({'|'.join(COLOURS)}|#[0-9a-fA-F]{{6}})?$")
    dashed: bool = False
    parameters: dict[str, bool | float | str] = Field(default_factory=dict)
    entry: str = ""

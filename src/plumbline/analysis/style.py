"""How every figure looks: sizes, colours, the line that says what it rests on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from plumbline.options import Options

PANEL = (3.4, 2.6)
"""Width and height of a panel in inches."""


@dataclass(frozen=True)
class Footer:
    """What a figure rests on; printed in every one.

    Attributes:
        preset: the scale.
        seeds: how many.
        budget: evaluations a trial, in words.
        data: datasets in use, stand-ins named as such; empty for none.
        failed: trials that are not in the figure because they failed.
    """

    preset: str
    seeds: int
    budget: str
    data: str = ""
    failed: int = 0

    def __str__(self) -> str:
        parts = [
            f"preset {self.preset}",
            f"{self.seeds} seed{'s' * (self.seeds != 1)}",
            self.budget,
            self.data,
        ]
        failed = f"{self.failed} FAILED TRIALS LEFT OUT" if self.failed else ""
        return "  ·  ".join(part for part in (*parts, failed) if part)


@contextmanager
def house_style() -> Iterator[None]:
    """Set the look of figures inside the block, and put back what was there."""
    with mpl.rc_context(), sns.axes_style("ticks"), sns.plotting_context("paper"):
        mpl.rcParams.update(
            {
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.titlesize": 10,
                "figure.dpi": 130,
                "font.size": 9,
                "legend.frameon": False,
                "lines.linewidth": 1.6,
                "savefig.bbox": "tight",
                "svg.fonttype": "none",
                "svg.hashsalt": "plumbline",
            }
        )
        yield


UNLIKE_FIRST = (0, 1, 2, 4, 7, 9, 3, 5, 8, 6)
"""Order of seaborn's palette for the colour-blind that keeps its three oranges apart."""


def colours(names: Sequence[str]) -> dict[str, str]:
    """Return a colour a name, readable by the colour-blind, in the order given."""
    if len(names) > len(UNLIKE_FIRST):  # no longer readable by the colour-blind, but they must differ
        return dict(zip(names, sns.color_palette("husl", len(names)).as_hex(), strict=True))
    palette = sns.color_palette("colorblind").as_hex()
    return {name: palette[i] for name, i in zip(names, UNLIKE_FIRST, strict=False)}


LineStyle = dict[str, Any]
"""Colour and dashes of a line, as matplotlib takes them."""


class Look(Options):
    """How lines are told apart.

    Attributes:
        first: names that have the first colours in this order, drawn or not: a method looks the same in all figures.
        dashed: names whose lines are dashed, by the name whose colour they have.
    """

    first: tuple[str, ...] = ()
    dashed: dict[str, str] = Field(default_factory=dict)

    def of(self, names: Sequence[str]) -> dict[str, LineStyle]:
        """Return colour and dashes of the line of each name."""
        found = colours(list(dict.fromkeys([*self.first, *(self.dashed.get(name, name) for name in names)])))
        return {
            name: {"color": found[self.dashed.get(name, name)], "linestyle": "--" if name in self.dashed else "-"}
            for name in names
        }


PLAIN, CALIBRATED = "#d55e00", "#0173b2"
"""Orange for the plain method and blue for the calibrated one, as in CAL's figures; credible and conformal sets too."""

QUERY, TRUTH = "#cc0000", "0.25"
"""Of the star where a method asks, and of the dashed line that it does not know."""


def panels(rows: int, columns: int, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure of `rows x columns` panels, always as a list of lists."""
    width, height = PANEL
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(width * columns, height * rows),
        squeeze=False,
        layout="constrained",
        **options,
    )
    return figure, [list(row) for row in axes]


def add_legend(figure: Figure, columns: int = 8, last: str = "") -> None:
    """Put one legend for all panels above them, each label once and the label `last` at its end."""
    handles = {
        label: handle for ax in figure.axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if last in handles:
        handles[last] = handles.pop(last)
    columns = min(columns, len(handles))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)


def add_footer(figure: Figure, footer: Footer) -> None:
    """Print the footer below the panels."""
    figure.supxlabel(str(footer), fontsize=7, color="#cc0000" if footer.failed else "#666666")

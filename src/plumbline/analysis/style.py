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


def colours(names: Sequence[str]) -> dict[str, str]:
    """Return a colour a name, readable by the colour-blind, in the order given."""
    # Ten are readable by the colour-blind; beyond that they must at least differ.
    palette = sns.color_palette("colorblind" if len(names) <= 10 else "husl", len(names)).as_hex()
    return dict(zip(names, palette, strict=True))


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

"""The style of all figures: sizes, colours, and the footer with preset, seeds, budget and data."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import is_color_like, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogFormatterSciNotation

from plumbline.core.errors import unknown
from plumbline.study.legends import Legend
from plumbline.study.verdicts import Verdict

PANEL = (3.4, 2.6)
"""Width and height of a panel in inches."""

SHORT_DASHES = (0.0, (1.6, 0.9))
"""Of marks too short for those of a line."""


@dataclass(frozen=True)
class Footer:
    """What a figure rests on; printed in every one.

    Attributes:
        preset: the scale.
        seeds: how many, in words.
        budget: evaluations a trial, in words.
        data: datasets in use, stand-ins named as such; empty for none.
        failed: trials that are not in the figure because they failed.
    """

    preset: str
    seeds: str
    budget: str
    data: str = ""
    failed: int = 0

    def __str__(self) -> str:
        parts = [
            f"preset {self.preset}",
            self.seeds,
            self.budget,
            self.data,
        ]
        failed = f"{self.failed} FAILED TRIALS LEFT OUT" if self.failed else ""
        return "  ·  ".join(part for part in (*parts, failed) if part)


HOUSE_STYLE = Path(__file__).with_name("house.mplstyle")


@contextmanager
def house_style() -> Iterator[None]:
    """Set the style of figures inside the block, and restore the former one."""
    with mpl.style.context(HOUSE_STYLE, after_reset=True):
        yield


class PlainPowers(LogFormatterSciNotation):
    """Powers of ten on an axis, without the formulas that `house_style` switches off: `10⁻³`."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label at `x`."""
        text = re.sub(r"\$|\\mathdefault|[{}]", "", super().__call__(x, pos)).replace(r"\times", "×")
        return re.sub(r"\^(-?\d+)", lambda power: power[1].translate(SUPERSCRIPTS), text)


def plain_powers(axis: Axis) -> None:
    """Label a logarithmic axis by `PlainPowers`."""
    axis.set_major_formatter(PlainPowers())
    axis.set_minor_formatter(PlainPowers())


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def legend_entry(words: str) -> str:
    """Words of a legend: in one line, without control characters, and not left out for an underscore at the start.

    Matplotlib takes labels that begin with an underscore for its own; a space of no width before it is not seen.
    """
    line = "".join(one for one in " ".join(words.split()) if unicodedata.category(one) not in ("Cc", "Cs"))
    return f"\u200b{line}" if line.startswith("_") else line


PALETTE = {
    "blue": "#0173b2",
    "orange": "#de8f05",
    "green": "#029e73",
    "red": "#d55e00",
    "purple": "#cc78bc",
    "brown": "#ca9161",
    "pink": "#fbafe4",
    "grey": "#949494",
    "yellow": "#ece133",
    "sky": "#56b4e9",
}
"""Colours by name (`colorblind` of seaborn, which imports scipy.stats), distinguishable with colour blindness too."""

FREE = ("blue", "orange", "green", "purple", "grey", "sky", "red", "brown", "yellow", "pink")
"""The order in which they are given to what names none: it keeps the three that are most alike apart."""

LineStyle = dict[str, Any]
"""Colour and dashes of a line, as matplotlib takes them."""


def colour(name: str) -> str:
    """Return a colour of the palette, or `#rrggbb` as it is.

    Raises:
        PlumblineError: neither.
    """
    if name in PALETTE:
        return PALETTE[name]
    if not (name.startswith("#") and is_color_like(name)):
        raise unknown("colour", name, PALETTE)
    return name


def tint(colour: str, share: float = 0.25) -> tuple[float, float, float]:
    """Return `colour` on white: opaque, for bars side by side would show where transparent ones overlap."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


VERDICT_COLOURS: dict[Verdict, str] = {
    "reproduced": "blue",
    "partly": "yellow",
    "mixed": "purple",
    "not reproduced": "red",
    "smaller than published": "brown",
    "too small to matter": "sky",
    "inconclusive at this scale": "grey",
}
"""The colours of verdicts, in figures and on pages; a verdict on a claim that is not tested has none."""


def verdict_colour(verdict: Verdict) -> str:
    """The colour of a verdict, as `#rrggbb`: light enough for black words on it, and white for those without one."""
    name = VERDICT_COLOURS.get(verdict)
    return "#ffffff" if name is None else to_hex(tint(colour(name), 0.7))


def colours(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a colour a name, in the order given, none of those `taken`; all differ."""
    names, taken = list(names), set(taken)
    free = [PALETTE[name] for name in FREE if PALETTE[name] not in taken]
    if len(names) > len(free):  # no longer distinguishable with colour blindness, but they must differ
        import seaborn as sns

        free += [found for found in sns.color_palette("husl", len(names)).as_hex() if found not in taken]
    return dict(zip(names, free, strict=False))


def lines(legends: Mapping[str, Legend], methods: Iterable[str]) -> dict[str, LineStyle]:
    """Return colour and dashes of the line of each of `methods`.

    A method without a colour of its own has the next free one, counted over all `legends`, drawn or not: it has the
    same in all figures of an experiment. Methods with the same legend share it.

    Args:
        legends: by label of the method.
        methods: labels; one without a legend goes by its label.

    Raises:
        PlumblineError: an unknown colour.
    """
    all_legends = {**legends, **{method: Legend(label=method) for method in methods if method not in legends}}
    fixed = {legend.label: colour(legend.colour) for legend in all_legends.values() if legend.colour}
    open_ones = dict.fromkeys(legend.label for legend in all_legends.values() if legend.label not in fixed)
    found = fixed | colours(open_ones, fixed.values())
    return {
        method: {
            "color": colour(legend.colour) if legend.colour else found[legend.label],
            "linestyle": "--" if legend.dashed else "-",
        }
        for method in methods
        for legend in [all_legends[method]]
    }


PLAIN, CALIBRATED = PALETTE["orange"], PALETTE["blue"]
"""Of what is plain and what is calibrated, where no method says: as those of credible and conformal methods."""

QUERY, TRUTH = "#cc0000", "0.25"
"""Of the star where a method asks, and of the dashed line that it does not know."""


NOMINAL = "1 - alpha"
"""Words of the legend for the level that coverage should have."""


def line_width(place: int, count: int) -> float:
    """Return the width of one of `count` lines, drawn one after another: of few, the first are wider.

    So a line that another one covers shows on both sides of it.
    """
    return 1.6 + (0.6 * (count - 1 - place) if count <= 3 else 0.0)


def enlarge(figure: Figure) -> None:
    """Give a figure of one panel more room, for its legend too."""
    figure.set_size_inches(1.5 * PANEL[0], 1.35 * PANEL[1])


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
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(w_pad=0.09)  # else what stands beside a panel touches the label of the next
    return figure, [list(row) for row in axes]


def add_legend(figure: Figure, columns: int = 8, last: str = "") -> None:
    """Put one legend for all panels above them, each label once and the label `last` at its end."""
    handles = {
        label: handle for ax in figure.axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if last in handles:
        handles[last] = handles.pop(last)
    rows = -(-len(handles) // columns)
    columns = -(-len(handles) // max(rows, 1))  # rows of the same length, where they can be
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)


def add_footer(figure: Figure, footer: Footer) -> None:
    """Print the footer below the panels."""
    figure.supxlabel(str(footer), fontsize=7, color="#cc0000" if footer.failed else "#666666")

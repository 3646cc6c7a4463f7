"""The style of all figures: sizes, colours, and the footer with preset, seeds, budget and data."""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import is_color_like, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatterSciNotation, LogLocator

from plumbline.core.errors import unknown
from plumbline.study.legends import Legend
from plumbline.study.verdicts import LOOKS, OUTCOMES, slug

PANEL = (3.4, 2.6)
"""Width and height of a panel in inches."""

WIDEST = 9.0
"""Width of a figure in inches: of a wider one, pages could only show a reduction that is hard to read."""

LETTERS = 12
"""Of a title, in an inch of its panel with what stands beside it."""


APART = "  ·  "
"""Between the parts of a footer."""


UNDATED: Mapping[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""What a format is to leave out of its file, so that two drawings of the same results are the same bytes."""


@dataclass(frozen=True)
class Footer:
    """What a figure shows and rests on; printed in every one.

    Attributes:
        shown: what its lines, bands and bars are.
        preset: the scale.
        seeds: how many, in words.
        budget: evaluations a trial, in words.
        data: datasets in use, stand-ins named as such; empty for none.
        failed: trials that are not in the figure because they failed.
    """

    shown: str
    preset: str
    seeds: str
    budget: str
    data: str = ""
    failed: int = 0

    @property
    def parts(self) -> list[str]:
        """What there is to say, in the order of the fields."""
        failed = f"{self.failed} FAILED TRIALS LEFT OUT" if self.failed else ""
        found = (self.shown, f"preset {self.preset}", self.seeds, self.budget, self.data, failed)
        return [part for part in found if part]

    def lines(self, letters: int) -> list[str]:
        """Return the parts in lines of at most `letters`, as far as they can be."""
        found: list[str] = []
        for part in self.parts:
            longer = f"{found[-1]}{APART}{part}" if found else part
            found[-1:] = [longer] if not found or len(longer) <= letters else [found[-1], part]
        return [line for long in found for line in textwrap.wrap(long, max(letters, 20))]

    def __str__(self) -> str:
        return APART.join(self.parts)


HOUSE_STYLE = Path(__file__).with_name("house.mplstyle")


@contextmanager
def house_style() -> Iterator[None]:
    """Set the style of figures inside the block, and restore the former one."""
    with mpl.style.context(HOUSE_STYLE, after_reset=True):
        yield


class PlainPowers(LogFormatterSciNotation):
    """Powers of ten on an axis, without the formulas that `house_style` switches off: `10⁻³`.

    On an axis from hundredths to a thousand at most, plain numbers: `0.1`.
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label at `x`."""
        text = re.sub(r"\$|\\mathdefault|[{}]", "", super().__call__(x, pos)).replace(r"\times", "×")
        low, high = sorted(self.axis.get_view_interval()) if self.axis is not None else (0.0, np.inf)
        if text and low >= 0.005 and high <= 2000:
            return f"{x:g}"
        return re.sub(r"\^(-?\d+)", lambda power: power[1].translate(SUPERSCRIPTS), text)


def plain_powers(axis: Axis) -> None:
    """Label a logarithmic axis by `PlainPowers`."""
    axis.set_major_formatter(PlainPowers())
    axis.set_minor_formatter(PlainPowers())


def logarithmic(axis: Axis) -> None:
    """Make an axis logarithmic, with ticks at powers of ten."""
    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator())
    plain_powers(axis)


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def legend_entry(words: str) -> str:
    """Words of a legend: in one line, without control characters, and not left out for an underscore at the start.

    Matplotlib takes labels that begin with an underscore for its own; a space of no width before it is not seen.
    """
    line = "".join(one for one in " ".join(words.split()) if unicodedata.category(one) not in ("Cc", "Cs"))
    return f"\u200b{line}" if line.startswith("_") else line


PALETTE = {
    "blue": "#0173b2",
    "orange": "#d98a00",
    "green": "#63ab79",
    "red": "#b84a1c",
    "purple": "#5a2870",
    "brown": "#523010",
    "pink": "#d9a9c3",
    "grey": "#767a7d",
    "yellow": "#f5d13d",
    "sky": "#22aefb",
}
"""Colours by name: any two are 19 or more apart in CIELAB, to normal eyes, deuteranopes and protanopes alike."""

MARKERS = dict(zip(PALETTE, "os^DvPXp*<", strict=True))
"""The marker that goes with each colour, so that colour is never alone."""

OTHER_MARKERS = ">dHh8"
"""In turn, of colours that are not in the palette."""

FREE = ("blue", "orange", "green", "purple", "red", "sky", "pink", "brown", "yellow", "grey")
"""The order in which colours are given to what names none."""


@dataclass(frozen=True)
class MethodStyle:
    """How a method is drawn in every figure.

    Attributes:
        colour: of all that is drawn of it, `#rrggbb`.
        marker: of its points, and along its line.
        dashed: whether its line is dashed and its markers are hollow.
    """

    colour: str
    marker: str
    dashed: bool = False

    @property
    def line(self) -> dict[str, Any]:
        """Colour and dashes, as matplotlib takes them."""
        return {"color": self.colour, "linestyle": "--" if self.dashed else "-"}

    @property
    def points(self) -> dict[str, Any]:
        """Markers, as matplotlib takes them."""
        return {"marker": self.marker, "markerfacecolor": self.face, "markeredgecolor": self.colour}

    @property
    def filled(self) -> dict[str, Any]:
        """Markers, as matplotlib takes those of a scatter plot."""
        return {"marker": self.marker, "facecolors": self.face, "edgecolors": self.colour}

    @property
    def face(self) -> str:
        """The colour inside of markers."""
        return "white" if self.dashed else self.colour


def marker_of(colour: str) -> str:
    """Return the marker that goes with a colour of the palette, and of any other colour always the same one."""
    names = {code: name for name, code in PALETTE.items()}
    return MARKERS[names[colour]] if colour in names else OTHER_MARKERS[int(colour[1:], 16) % len(OTHER_MARKERS)]


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


def verdict_colour(word: str) -> str:
    """The colour of a verdict or an outcome: light enough for black words on it, and white for those without one."""
    look = LOOKS.get(word)
    return to_hex(tint(colour(look.colour), 0.7)) if look and look.colour else "#ffffff"


def verdict_styles() -> str:
    """Return the style sheet of pages.

    It has the palette by name (`--blue`), labels of verdicts and outcomes with black words on their colours
    (`.label.reproduced`), and the colour of marks (`--mark`, inside of `.holds`).
    """
    palette = " ".join(f"--{name}: {value};" for name, value in PALETTE.items())
    labels = [
        f".label.{slug(word)} {{ background: {verdict_colour(word)}; color: #000; "
        f"border: 1px {'solid transparent' if look.colour else 'dashed #5b6673'}; }}"
        for word, look in LOOKS.items()
    ]
    marks = [f".{slug(word)} {{ --mark: var(--{LOOKS[word].colour or 'grey'}); }}" for word in OUTCOMES]
    return "\n".join([f":root {{ {palette} }}", *labels, *marks]) + "\n"


def colours(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return one colour per name, in the order given, none of those `taken`; all differ."""
    names, taken = list(names), set(taken)
    free = [PALETTE[name] for name in FREE if PALETTE[name] not in taken]
    if len(names) > len(free):  # no longer distinguishable with colour blindness, but they must differ
        import seaborn as sns

        free += [found for found in sns.color_palette("husl", len(names)).as_hex() if found not in taken]
    return dict(zip(names, free, strict=False))


def method_styles(legends: Mapping[str, Legend], methods: Iterable[str]) -> dict[str, MethodStyle]:
    """Return the style of each of `methods`.

    A method without a colour of its own has the next free one, counted over all `legends`, drawn or not: it has the
    same in all figures of an experiment. Methods with the same legend share it. Where all `legends` are dashed, dashes
    would tell nothing apart, and lines are solid.

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
    all_dashed = all(legend.dashed for legend in all_legends.values())
    styles = {}
    for method in methods:
        legend = all_legends[method]
        its = colour(legend.colour) if legend.colour else found[legend.label]
        styles[method] = MethodStyle(its, marker_of(its), legend.dashed and not all_dashed)
    return styles


PLAIN, CALIBRATED = PALETTE["orange"], PALETTE["blue"]
"""Of what is plain and what is calibrated, where no method says: as those of credible and conformal methods."""

UTILITY = PALETTE["green"]
"""Of an acquisition function below a model."""

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
    figure.set_size_inches(1.9 * PANEL[0], 1.4 * PANEL[1])


def panels(rows: int, columns: int, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure of `rows x columns` panels, always as a list of lists."""
    width, height = PANEL
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(min(width * columns, WIDEST), height * rows),
        squeeze=False,
        layout="constrained",
        **options,
    )
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(w_pad=0.09)  # else what stands beside a panel touches the label of the next
    return figure, [list(row) for row in axes]


def wrapped_panels(count: int, across: int | None = None, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of `count` panels, `across` of them side by side, and more below.

    Where it is not given, there are three side by side at most, and two of four.
    """
    across = min(count, across or (2 if count == 4 else 3))
    figure, lines = panels(-(-count // across), across, **options)
    places = [ax for line in lines for ax in line]
    for ax in places[count:]:
        ax.remove()
    return figure, places[:count]


def begins_a_line(ax: Axes) -> bool:
    """Whether a panel is the first of those side by side."""
    place = ax.get_subplotspec()
    return place is not None and place.is_first_col()


def ends_a_column(ax: Axes) -> bool:
    """Whether a panel is the last of those below one another."""
    place = ax.get_subplotspec()
    return place is not None and place.is_last_row()


def set_title(ax: Axes, title: str, **options: Any) -> None:
    """Give a panel a title in lines that are no longer than it is wide."""
    place = ax.get_subplotspec()
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = figure.get_figwidth() / (place.get_gridspec().ncols if place is not None else 1)
    letters = int(LETTERS * width)
    lines = [line if len(line) <= letters else _wrapped(line, letters) for line in title.split("\n")]
    ax.set_title("\n".join(lines), **options)


def _wrapped(line: str, letters: int) -> str:
    tied = re.sub(r"(?<=\d) (?=dimensions?\b)|(?<=\bq) (?== )|(?<=\bq =) ", "\u00a0", line)
    lines = textwrap.fill(
        tied, letters, break_long_words=False, break_on_hyphens=False, expand_tabs=False, replace_whitespace=False
    )
    return lines.replace("\u00a0", " ")


def without_dashed_twins(handles: Mapping[str, Artist], dashed: str) -> dict[str, Artist]:
    """Return the entries of a legend in which a solid line speaks for the dashed one of its colour and marker.

    Args:
        handles: by label.
        dashed: what dashes mean, in words: the label of one more entry in place of those left out.
    """
    lines = {label: handle for label, handle in handles.items() if isinstance(handle, Line2D)}
    solid = {(line.get_color(), line.get_marker()) for line in lines.values() if line.get_linestyle() == "-"}
    twins = {
        label
        for label, line in lines.items()
        if line.get_linestyle() == "--" and (line.get_color(), line.get_marker()) in solid
    }
    kept = {label: handle for label, handle in handles.items() if label not in twins}
    return kept | {dashed: Line2D([], [], color="0.25", linestyle="--")} if twins else kept


def add_legend(figure: Figure, columns: int = 8, last: str = "", dashed: str = "") -> None:
    """Put one legend for all panels above them, no wider than they are.

    Each label is there once, and the label `last` at the end; there are at most so many `columns`. Where it is said
    what `dashed` lines are, those that differ from a solid one in nothing else have no entries of their own.
    """
    handles = {
        label: handle for ax in figure.axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if dashed:
        handles = without_dashed_twins(handles, dashed)
    if last in handles:
        handles[last] = handles.pop(last)
    for rows in range(max(-(-len(handles) // columns), 1), max(len(handles), 1) + 1):
        across = -(-len(handles) // rows)  # rows of the same length, where they can be
        legend = figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=across)
        room = legend.get_window_extent()
        if across == 1 or room.width <= figure.bbox.width:
            _make_room(figure, room.height / figure.dpi)
            return
        legend.remove()


def _make_room(figure: Figure, height: float) -> None:
    """Make a figure higher, in inches: what stands above or below its panels takes nothing from them."""
    figure.set_figheight(figure.get_figheight() + height)


def add_footer(figure: Figure, footer: Footer) -> None:
    """Print the footer below the panels."""
    lines = footer.lines(int(FOOTER_LETTERS * figure.get_figwidth()))
    figure.supxlabel("\n".join(lines), fontsize=FOOTER_SIZE, color="#cc0000" if footer.failed else "#666666")
    _make_room(figure, 1.6 * FOOTER_SIZE * len(lines) / 72)


FOOTER_SIZE, FOOTER_LETTERS = 7.5, 17
"""Size of a footer in points, and its letters in an inch of its figure."""

"""Metrics against evaluations or time, a column a task and a line a method: most figures of the documents."""

from collections.abc import Sequence
from itertools import chain, cycle
from typing import Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from plumbline.analysis.evidence.bands import LEVEL, BandKind, band, in_words
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.filed import NotOnFileError
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.metrics.spending import by_cost
from plumbline.statistics.over_seeds import student_interval

PUBLISHED_DASHES = ((0, (1, 1)), "-.", (0, (4, 1, 1, 1, 1, 1)), (0, (6, 3)))
"""Of lines that others published, which are grey: no method has one of them."""

MOST_BANDS = 4
"""Of one panel: more would hide the lines, whose intervals then stand at their ends, beside the panel."""

UNMOVED = "no query was better\nthan the initial design"

Array = NDArray[np.float64]

FIRST = "first"
"""The first method of each panel, in the place of a method's name."""


class Row(Options):
    """One row of panels.

    Attributes:
        metric: what is drawn.
        label: its axis.
        nominal: the metric that says what it should be, dotted.
        optimum: whether the task's optimum is drawn, dotted, where it is known.
        minimise: whether the row is turned upside down, as documents that minimise have it.
        limits: of the axis.
        logarithmic: whether that is logarithmic.
        methods: those of the panels that are drawn in this row; all where none are named.
        minus: a method whose value is taken off each other's, seed by seed: who is ahead, where bands overlap; `first`
            is the first of each panel.
        against: evaluations, or minutes since the initial design: what evaluations and all that the method did took.
        band: in place of the figure's: medians of shares of a few points jump.
    """

    metric: str
    label: str
    minus: str | None = None
    nominal: str | None = None
    optimum: bool = False
    minimise: bool = False
    limits: tuple[float | None, float | None] | None = None
    logarithmic: bool = False
    methods: tuple[str, ...] = ()
    against: Literal["evaluations", "minutes"] = "evaluations"
    band: BandKind | None = None

    @model_validator(mode="after")
    def _differences_are_of_evaluations(self) -> Self:
        if self.against == "minutes" and (self.minus or self.nominal):
            raise ValueError("`minus` and `nominal` are drawn against evaluations")
        return self


class Published(Options):
    """A line that others published, beside ours.

    Attributes:
        legend: whose it is.
        metric: the rows that it belongs to.
        evaluations: where it is known, initial ones counted.
        values: of the metric there, in our direction: problems are maximised.
        error: to either side within which they could be read off; drawn as a band.
    """

    legend: str
    metric: str
    evaluations: tuple[float, ...] = Field(min_length=2)
    values: tuple[float, ...]
    error: NonNegativeFloat = 0.0

    @model_validator(mode="after")
    def _a_value_each(self) -> Self:
        if len(self.values) != len(self.evaluations):
            raise ValueError(f"{len(self.evaluations)} evaluations and {len(self.values)} values: a value each")
        return self


class Panel(Options):
    """One column of panels: a task, and methods on it; all that have trials where none are named.

    Attributes:
        task: what methods ran on.
        methods: which.
        title: of the column; the task's own where it is empty.
        published: lines of others.
        costs: of the outcomes, in their order: lines go along what was spent, the initial design counted, where they
            are given.
    """

    task: str
    methods: tuple[str, ...] = ()
    title: str = ""
    published: tuple[Published, ...] = ()
    costs: tuple[PositiveFloat, ...] = ()


class CurvesOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        rows: of panels.
        panels: columns; a column a task with all of its methods where none are named.
        band: quantiles over seeds about the median, the median with its 95% interval, the mean with one standard error,
            or the mean with its 70% interval. Where a panel has more than four methods, whose bands would hide the
            lines, intervals are drawn at the ends of the lines only, beside all panels.
        quantiles: of the band of that name.
        queries: count queries only, without the initial design.
        across: panels side by side at most, where there is one row: more go on below. As many as are easily read where
            it is not given.
    """

    rows: tuple[Row, ...] = Field(default=(Row(metric="best_f", label="best value"),), min_length=1)
    panels: tuple[Panel, ...] = ()
    band: BandKind = "quantiles"
    quantiles: tuple[float, float] = (0.2, 0.8)
    queries: bool = False
    across: PositiveInt | None = None

    reads = ("optimum",)
    draws_curves = True

    @model_validator(mode="after")
    def _published_lines_have_a_row(self) -> Self:
        metrics = {row.metric for row in self.rows}
        for line in (line for panel in self.panels for line in panel.published):
            if line.metric not in metrics:
                raise ValueError(f"the published line {line.legend!r} is of {line.metric}, which no row draws")
        return self

    def names(self) -> Names:
        """Return the names in rows and panels."""
        methods = [*(panel.methods for panel in self.panels), *(row.methods for row in self.rows)]
        methods += [(row.minus,) for row in self.rows if row.minus not in (None, FIRST)]
        besides = ["round_seconds"] if self.timed else []
        # What was not observed cost nothing: the columns of `best_y` say what was.
        besides += ["best_y"] if any(panel.costs for panel in self.panels) else []
        return Names(
            tuple(panel.task for panel in self.panels),
            tuple(chain.from_iterable(methods)),
            (*(name for row in self.rows for name in (row.metric, row.nominal) if name), *besides),
        )

    @property
    def timed(self) -> bool:
        """Whether a row is drawn against time."""
        return any(row.against == "minutes" for row in self.rows)

    def shown(self, evidence: Evidence) -> str:
        """Return what lines and bands are; of rows with a band of their own, after their words."""
        own = {row.band: " ".join(row.label.split()) for row in self.rows if row.band not in (None, self.band)}
        parts = [in_words(self.band, self.quantiles)]
        parts += [f"{in_words(kind, self.quantiles)} ({label})" for kind, label in own.items() if kind]
        from_means = evidence.filed is not None and evidence.filed.rounds.empty
        differences = from_means and any(row.minus for row in self.rows)
        caveat = " (of differences at the end, where runs are on file)" if differences else ""
        return f"{', '.join(parts)} over seeds{caveat}"


class Line(NamedTuple):
    """A line of a panel, and the edges of its band, NaN where these are not known: `n` each."""

    x: Array
    low: Array
    middle: Array
    high: Array


def evaluations(trials: pd.DataFrame, rounds: pd.Index, queries: bool) -> Array:
    """Return the number of evaluations at the end of each round."""
    first = trials[trials["seed"] == trials["seed"].iloc[0]]
    counts = first.groupby("iteration")["evaluation"].max() + 1
    return (counts.reindex(rounds) - (counts.loc[0] if queries else 0)).to_numpy(dtype=float)


def in_time(table: pd.DataFrame, seconds: pd.DataFrame, moments: int = 200) -> tuple[Array, Array]:
    """Return minutes since the initial design, and the value of each trial at that time.

    Args:
        table: a metric at the end of each round, a row a seed.
        seconds: of the rounds, likewise.
        moments: how many, from when all trials have a value to when the first one ends.

    Returns:
        Minutes `m`, and values `seeds x m`.
    """
    # The initial design is nobody's round: it has no seconds.
    taken = seconds.reindex(index=table.index, columns=table.columns).fillna(0.0)
    ends = taken.cumsum(axis=1).to_numpy(dtype=float) / 60
    values = table.to_numpy(dtype=float)
    minutes = np.linspace(ends[:, 0].max(), max(ends[:, -1].min(), ends[:, 0].max()), moments)
    places = [np.searchsorted(one, minutes, side="right") - 1 for one in ends]
    return minutes, np.stack([one[place] for one, place in zip(values, places, strict=True)])


def values_by_column(found: Evidence, panel: Panel, method: str, metric: str) -> pd.DataFrame:
    """Return a metric of each seed at the end of each round, or at each cost where the panel has costs."""
    if panel.costs:
        return by_cost(found.trials(panel.task, method), metric, panel.costs)
    return found.by_round(panel.task, method, metric)


def positions(trials: pd.DataFrame, columns: pd.Index, panel: Panel, queries: bool) -> Array:
    """Return the positions of the columns of `values_by_column` on the axis."""
    return columns.to_numpy(dtype=float) if panel.costs else evaluations(trials, columns, queries)


def methods_of(found: Evidence, panel: Panel, row: Row) -> list[str]:
    """Return the methods of a panel that are drawn in a row."""
    return [method for method in found.named(row.methods or panel.methods, panel.task) if method in panel.methods]


def baseline_of(panel: Panel, row: Row) -> str | None:
    """Return the method that a row takes off the others in a panel, if it does."""
    return panel.methods[0] if row.minus == FIRST else row.minus


def line_of(found: Evidence, panel: Panel, method: str, row: Row, options: CurvesOptions) -> Line | None:
    """Return the line of a method in a panel; None where it has no value.

    Raises:
        PlumblineError: there are no trials, or not what it takes among the results on file.
    """
    kind, sign = row.band or options.band, -1 if row.minimise else 1
    if found.filed is not None and not found.filed.has_rounds(panel.task, method, row.metric):
        return filed_line(found, panel, method, row, options)
    trials = found.trials(panel.task, method)
    table = values_by_column(found, panel, method, row.metric)
    if (theirs := baseline_of(panel, row)) is not None:
        ours, others = table.align(values_by_column(found, panel, theirs, row.metric), join="inner")
        table = ours - others
    if table.empty:
        return None  # a method without a model has no coverage
    if row.against == "minutes":
        x, values = in_time(table, found.by_round(panel.task, method, "round_seconds"))
    else:
        x, values = positions(trials, table.columns, panel, options.queries), table.to_numpy()
    return Line(x, *band(sign * values, kind, options.quantiles))


def filed_line(found: Evidence, panel: Panel, method: str, row: Row, options: CurvesOptions) -> Line | None:
    """Return the line of a method from means by round on file.

    The band of a difference is known at the last round only, if single runs are on file.

    Raises:
        NotOnFileError: it is none of means, or against something else than evaluations.
    """
    assert found.filed is not None
    kind, sign, filed = row.band or options.band, -1 if row.minimise else 1, found.filed
    if kind not in ("mean-error", "mean-interval") or panel.costs or row.against == "minutes":
        raise NotOnFileError(f"no {row.metric} by round of single runs of {method} on {panel.task}")
    curve = filed.curve(panel.task, method, row.metric)
    if curve.empty:
        return None
    if (theirs := baseline_of(panel, row)) is None:
        low, middle, high = edges(curve["mean"], curve["standard_error"], curve["seeds"], kind)
    else:
        others = filed.curve(panel.task, theirs, row.metric)
        if not (curve["seeds"] == others["seeds"]).all():
            raise NotOnFileError(f"no {row.metric} by round of the runs that {method} and {theirs} have in common")
        middle = (curve["mean"] - others["mean"]).to_numpy(copy=True)
        low, high = np.full((2, len(middle)), np.nan)
        try:
            apart = found.ends(panel.task, method, row.metric) - found.ends(panel.task, theirs, row.metric)
        except NotOnFileError:
            pass
        else:
            low[-1], middle[-1], high[-1] = (float(one) for one in band(apart.to_numpy(), kind, options.quantiles))
    x = positions(found.trials(panel.task, method), curve.index, panel, options.queries)
    return Line(x, *((low, middle, high) if sign > 0 else (-high, -middle, -low)))


def edges(mean: pd.Series, error: pd.Series, seeds: pd.Series, kind: BandKind) -> tuple[Array, Array, Array]:
    """Return the band about means, of one standard error or their interval."""
    values = mean.to_numpy(), error.to_numpy(), seeds.to_numpy()
    if kind == "mean-interval":
        return student_interval(*values, LEVEL)
    return values[0] - values[1], values[0], values[0] + values[1]


def nominal_line(found: Evidence, panel: Panel, method: str, row: Row, options: CurvesOptions) -> Line:
    """Return the line of what a metric should be: a mean over seeds."""
    assert row.nominal is not None
    as_mean = row.model_copy(update={"metric": row.nominal, "band": "mean-error", "minus": None})
    line = line_of(found, panel, method, as_mean, options)
    if line is None:
        raise NotOnFileError(f"no {row.nominal} by round of {method} on {panel.task}")
    return line


def draw_row(
    ax: Axes,
    found: Evidence,
    panel: Panel,
    styles: dict[str, style.MethodStyle],
    row: Row,
    options: CurvesOptions,
    beside: bool,
) -> list[marks.Extent]:
    """Draw one panel: a line and a band a method, what the metric should be, and the optimum.

    Args:
        ax: where to.
        found: the evidence.
        panel: which.
        styles: of methods.
        row: of the panel.
        options: of the figure.
        beside: whether intervals are drawn at the ends of the lines, beside the panel.

    Returns:
        What was drawn, which limits may cut.
    """
    theirs, methods = baseline_of(panel, row), methods_of(found, panel, row)
    if theirs is not None:
        methods = [method for method in methods if method != theirs]
        found.trials(panel.task, theirs)
        marks.draw_level(ax, 0.0, styles[theirs], len(methods), len(methods) + 1, found.legend(theirs).label)
    lines = {method: line for method in methods if (line := line_of(found, panel, method, row, options)) is not None}
    beside = beside or any(np.isnan(line.low).any() for line in lines.values())
    drawn = []
    for i, (method, line) in enumerate(lines.items()):
        its = styles[method]
        width, words = style.line_width(i, len(lines)), found.legend(method).label
        marks.draw_line(ax, line.x, line.middle, its, i, len(lines), linewidth=width, label=words)
        if not beside:
            ax.fill_between(line.x, line.low, line.high, color=its.colour, alpha=0.18, linewidth=0)
        drawn.append(marks.Extent(ax, line.x, *((line.middle,) * 2 if beside else (line.low, line.high)), its.colour))
    if beside and lines:
        ends = [(styles[method], line.low[-1], line.middle[-1], line.high[-1]) for method, line in lines.items()]
        drawn += marks.draw_ends(ax, ends)
    if row.nominal and lines:
        level = nominal_line(found, panel, next(iter(lines)), row, options)
        ax.plot(level.x, level.middle, color="0.25", linestyle=":", linewidth=1.2, label=style.NOMINAL, zorder=3)
    if row.optimum:
        draw_optimum(ax, (-1 if row.minimise else 1) * optimum_of(found, panel), row)
    drawn += draw_published(ax, [line for line in panel.published if line.metric == row.metric], row)
    if row.limits:
        ax.set_ylim(*row.limits)
    if row.logarithmic:
        style.logarithmic(ax.yaxis)
    if row.metric == "best_f" and theirs is None and lines and all(np.ptp(line.middle) == 0 for line in lines.values()):
        ax.text(0.5, 0.65, UNMOVED, transform=ax.transAxes, ha="center", va="center", fontsize=8, color="0.35")
    return drawn


def optimum_of(found: Evidence, panel: Panel) -> float:
    """Return the optimum of a panel's task, NaN where it is not known."""
    if found.filed is not None:
        return found.filed.optimum(panel.task, panel.methods[0])
    return float(found.trials(panel.task, panel.methods[0])["optimum"].iloc[0])


def draw_published(ax: Axes, lines: Sequence[Published], row: Row) -> list[marks.Extent]:
    """Draw the lines of others, and how well they could be read, on an axis of ours that goes on to where they end."""
    drawn = []
    for line, dashes in zip(lines, cycle(PUBLISHED_DASHES), strict=False):
        low, high = ax.get_ylim()
        x, values = np.array(line.evaluations), (-1 if row.minimise else 1) * np.array(line.values)
        ax.plot(
            x, values, color="0.3", linestyle=dashes, linewidth=1.2, label=style.legend_entry(line.legend), zorder=1.5
        )
        if line.error:
            ax.fill_between(
                x, values - line.error, values + line.error, color="0.3", alpha=0.12, linewidth=0, zorder=1.4
            )
        ax.set_ylim(min(low, values[-1]), max(high, values[-1]))
        drawn.append(marks.Extent(ax, x, values, values, "0.3"))
    return drawn


def draw_optimum(ax: Axes, optimum: float, row: Row) -> None:
    """Draw a dotted line at the optimum, where that is known."""
    if np.isfinite(optimum):
        ax.axhline(optimum, color="0.4", linestyle=":", linewidth=1, label="minimum" if row.minimise else "maximum")


def share_scales(axes: Sequence[Sequence[Axes]], rows: Sequence[Row], panels: Sequence[Panel]) -> None:
    """Give all panels of one task that draw the same metric the same limits.

    Args:
        axes: by row and column.
        rows: what is drawn in each.
        panels: the columns.
    """
    first: dict[tuple[str, str, str | None], Axes] = {}
    for j, panel in enumerate(panels):
        for ax, row in zip((line[j] for line in axes), rows, strict=True):
            drawn = (panel.task, row.metric, row.minus)
            if drawn in first:
                ax.sharey(first[drawn])
                if row.limits is None:
                    ax.autoscale(axis="y")
                    ax.autoscale_view(scalex=False)  # at once: whichever panel is looked at first, none is cut
            first.setdefault(drawn, ax)


def panels_of(found: Evidence, panels: tuple[Panel, ...]) -> list[Panel]:
    """Return the panels that have trials, with their methods; without panels, one a task."""
    asked = panels or tuple(Panel(task=task) for task in found.tasks)
    complete = []
    for panel in asked:
        methods = tuple(found.named(panel.methods, panel.task) if panel.methods else found.methods(panel.task))
        if methods:
            title = panel.title or found.title(panel.task)
            complete.append(panel.model_copy(update={"methods": methods, "title": title}))
    if not complete:
        raise PlumblineError(f"no trials of {', '.join(panel.task for panel in asked)}: nothing to draw")
    return complete


def arrange(rows: int, columns: int, across: int | None, share: bool = True) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its panels by row and column: one column lies down, and one row goes on below.

    The rows of a column `share` their horizontal axis where it is of the same things.
    """
    if rows > 1 and columns > 1:
        return style.panels(rows, columns, sharex="col" if share else False)
    figure, places = style.wrapped_panels(rows * columns, across, sharex=share and columns == 1)
    if rows * columns == 1:
        style.enlarge(figure)
    return figure, [[ax] for ax in places] if columns == 1 else [places]


@figures.register("curves", CurvesOptions)
def curves(evidence: Evidence, options: CurvesOptions) -> Figure:
    """Metrics against evaluations: a row a metric, a column a task (one task: side by side), a line a method."""
    columns = panels_of(evidence, options.panels)
    styles = style.method_styles(evidence.legends, evidence.methods())
    apart = len({row.against for row in options.rows}) > 1
    beside = max(len(methods_of(evidence, panel, row)) for panel in columns for row in options.rows) > MOST_BANDS
    figure, axes = arrange(len(options.rows), len(columns), options.across, share=not apart)
    drawn = []
    for j, panel in enumerate(columns):
        for i, row in enumerate(options.rows):
            drawn += draw_row(axes[i][j], evidence, panel, styles, row, options, beside)
            whole = row.against == "evaluations"
            axes[i][j].xaxis.set_major_locator(MaxNLocator(6, integer=whole, steps=[1, 2, 5, 10]))
            axes[i][j].margins(x=0.02)
            if not axes[i][j].has_data():
                axes[i][j].set_axis_off()
    share_scales(axes, options.rows, columns)
    marks.mark_cuts(drawn)
    alone, wrapped = len(columns) == 1, len(options.rows) == 1
    for i, row in enumerate(options.rows):
        for j, panel in enumerate(columns):
            ax = axes[i][j]
            if j == 0 or (wrapped and style.begins_a_line(ax)):
                ax.set_ylabel(row.label)
            if i == 0 or alone:
                style.set_title(ax, panel.title)
            if i == len(options.rows) - 1 or alone or apart:
                counted = "cost" if panel.costs else "queries" if options.queries else "evaluations"
                ax.set_xlabel(counted if row.against == "evaluations" else row.against)
    style.add_legend(figure, last=style.NOMINAL)
    return figure

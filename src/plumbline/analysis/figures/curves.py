"""Metrics against evaluations or time, a column a task and a line a method: most figures of the documents."""

from collections.abc import Callable, Sequence
from itertools import chain, cycle
from typing import Literal, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.metrics.registry import by_round
from plumbline.metrics.spending import by_cost
from plumbline.statistics.over_seeds import mean_and_standard_error, mean_interval, median_interval

PUBLISHED_DASHES = ((0, (1, 1)), "-.", (0, (4, 1, 1, 1, 1, 1)), (0, (6, 3)))
"""Of lines that others published, which are grey: no method has one of them."""

Array = NDArray[np.float64]
Band = tuple[Array, Array, Array]


BandKind = Literal["quantiles", "median-interval", "mean-error", "mean-interval"]

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
            or the mean with its 70% interval. With more than four methods, whose bands would hide the lines, it is
            drawn at the end only, beside the lines.
        quantiles: of the band of that name.
        queries: count queries only, without the initial design.
        across: panels side by side at most, where there is one row: more go on below.
    """

    rows: tuple[Row, ...] = Field(default=(Row(metric="best_f", label="best value"),), min_length=1)
    panels: tuple[Panel, ...] = ()
    band: BandKind = "quantiles"
    quantiles: tuple[float, float] = (0.2, 0.8)
    queries: bool = False
    across: PositiveInt = 4

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


def band(options: CurvesOptions, kind: BandKind) -> Callable[[Array], Band]:
    """Return the function that maps `seeds x rounds` values to the lower edge, middle and upper edge of a band."""

    def quantiles(values: Array) -> Band:
        low, middle, high = np.nanquantile(values, [options.quantiles[0], 0.5, options.quantiles[1]], axis=0)
        return low, middle, high

    def mean_error(values: Array) -> Band:
        mean, error = mean_and_standard_error(values)
        return mean - error, mean, mean + error

    bands = {"quantiles": quantiles, "median-interval": median_interval, "mean-interval": mean_interval}
    return bands.get(kind, mean_error)


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


def values_by_column(trials: pd.DataFrame, metric: str, panel: Panel) -> pd.DataFrame:
    """Return a metric of each seed at the end of each round, or at each cost where the panel has costs."""
    return by_cost(trials, metric, panel.costs) if panel.costs else by_round(trials, metric)


def positions(trials: pd.DataFrame, columns: pd.Index, panel: Panel, queries: bool) -> Array:
    """Return the positions of the columns of `values_by_column` on the axis."""
    return columns.to_numpy(dtype=float) if panel.costs else evaluations(trials, columns, queries)


def draw_row(
    ax: Axes, found: Evidence, panel: Panel, styles: dict[str, style.MethodStyle], row: Row, options: CurvesOptions
) -> None:
    """Draw one panel: a line and a band a method, what the metric should be, and the optimum."""
    summarise, sign = band(options, row.band or options.band), -1 if row.minimise else 1
    nominal: pd.DataFrame | None = None
    methods = [method for method in found.named(row.methods or panel.methods, panel.task) if method in panel.methods]
    few = len(methods) <= 4
    taken_off: pd.DataFrame | None = None
    if row.minus is not None:
        theirs = panel.methods[0] if row.minus == FIRST else row.minus
        taken_off = values_by_column(found.trials(panel.task, theirs), row.metric, panel)
        methods = [method for method in methods if method != theirs]
        ax.axhline(0.0, **styles[theirs].line, linewidth=1.2, label=found.legend(theirs).label)
    for i, method in enumerate(methods):
        trials, its = found.trials(panel.task, method), styles[method]
        table = values_by_column(trials, row.metric, panel)
        if taken_off is not None:
            ours, others = table.align(taken_off, join="inner")
            table = ours - others
        table = sign * table
        if table.empty:
            continue  # a method without a model has no coverage
        if row.against == "minutes":
            steps, values = in_time(table, by_round(trials, "round_seconds"))
        else:
            steps, values = positions(trials, table.columns, panel, options.queries), table.to_numpy()
        low, middle, high = summarise(values)
        width = style.line_width(i, len(methods))
        ax.plot(
            steps,
            middle,
            **its.line,
            **its.points_along(i, len(methods)),
            linewidth=width,
            label=found.legend(method).label,
        )
        if few:
            ax.fill_between(steps, low, high, color=its.colour, alpha=0.18, linewidth=0)
        else:  # many bands over each other hide the lines: theirs at the end, side by side
            beside = steps[-1] + (0.02 + 0.015 * i) * (steps[-1] - steps[0])
            dashes = style.SHORT_DASHES if its.dashed else "-"
            ax.vlines(beside, low[-1], high[-1], color=its.colour, linestyle=dashes, linewidth=1.6)
        if row.nominal and nominal is None:
            nominal = sign * values_by_column(trials, row.nominal, panel)
            ax.plot(
                positions(trials, nominal.columns, panel, options.queries),
                nominal.mean(),
                color="0.25",
                linestyle=":",
                linewidth=1.2,
                label=style.NOMINAL,
                zorder=3,
            )
    if row.optimum:
        draw_optimum(ax, sign * found.trials(panel.task, panel.methods[0])["optimum"].iloc[0], row)
    draw_published(ax, [line for line in panel.published if line.metric == row.metric], sign)
    if row.limits:
        ax.set_ylim(*row.limits)
    if row.logarithmic:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()


def draw_published(ax: Axes, lines: Sequence[Published], sign: int) -> None:
    """Draw the lines of others, and how well they could be read, on an axis of ours that goes on to where they end."""
    for line, dashes in zip(lines, cycle(PUBLISHED_DASHES), strict=False):
        low, high = ax.get_ylim()
        values = sign * np.array(line.values)
        ax.plot(
            line.evaluations,
            values,
            color="0.3",
            linestyle=dashes,
            linewidth=1.2,
            label=style.legend_entry(line.legend),
            zorder=1.5,
        )
        if line.error:
            low_edge, high_edge = values - line.error, values + line.error
            ax.fill_between(line.evaluations, low_edge, high_edge, color="0.3", alpha=0.12, linewidth=0, zorder=1.4)
        ax.set_ylim(min(low, values[-1]), max(high, values[-1]))


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


def arrange(rows: int, columns: int, across: int, share: bool = True) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its panels by row and column: one column lies down, and one row goes on below.

    The rows of a column `share` their horizontal axis where it is of the same things.
    """
    if columns == 1:
        figure, (line,) = style.panels(1, rows, sharex=share)
        if rows == 1:
            style.enlarge(figure)
        return figure, [[ax] for ax in line]
    if rows > 1 or columns <= across:
        return style.panels(rows, columns, sharex="col" if share else False)
    figure, lines = style.panels(-(-columns // across), across)
    places = [ax for line in lines for ax in line]
    for ax in places[columns:]:
        ax.remove()
    return figure, [places[:columns]]


@figures.register("curves", CurvesOptions)
def curves(evidence: Evidence, options: CurvesOptions) -> Figure:
    """Metrics against evaluations: a row a metric, a column a task (one task: side by side), a line a method."""
    columns = panels_of(evidence, options.panels)
    styles = style.method_styles(evidence.legends, evidence.methods())
    apart = len({row.against for row in options.rows}) > 1
    figure, axes = arrange(len(options.rows), len(columns), options.across, share=not apart)
    for j, panel in enumerate(columns):
        for i, row in enumerate(options.rows):
            draw_row(axes[i][j], evidence, panel, styles, row, options)
            whole = row.against == "evaluations"
            axes[i][j].xaxis.set_major_locator(MaxNLocator("auto", integer=whole, steps=[1, 2, 5, 10]))
            if not axes[i][j].has_data():
                axes[i][j].set_axis_off()
    share_scales(axes, options.rows, columns)
    alone, wrapped = len(columns) == 1, len(options.rows) == 1
    for i, row in enumerate(options.rows):
        for j, panel in enumerate(columns):
            ax = axes[i][j]
            if j % options.across == 0 if wrapped else j == 0:
                ax.set_ylabel(row.label)
            if i == 0 or alone:
                ax.set_title(panel.title)
            if i == len(options.rows) - 1 or alone or apart:
                counted = "cost" if panel.costs else "queries" if options.queries else "evaluations"
                ax.set_xlabel(counted if row.against == "evaluations" else row.against)
    across = len(options.rows) if alone else min(len(columns), options.across if wrapped else len(columns))
    style.add_legend(figure, columns=min(3 * across + (across == 1), 8), last=style.NOMINAL)
    return figure

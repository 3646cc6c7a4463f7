"""Metrics against evaluations, a column a problem and a line a method: most figures of CBO and LOCBO."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray
from pydantic import Field

from plumbline.analysis import style
from plumbline.analysis.collect import Evidence
from plumbline.analysis.metrics import by_round
from plumbline.analysis.outputs import figures
from plumbline.analysis.statistics import mean_and_standard_error, mean_interval, median_interval
from plumbline.options import Options

NOMINAL = "1 - alpha"

Array = NDArray[np.float64]
Band = tuple[Array, Array, Array]


class Row(Options):
    """One row of panels.

    Attributes:
        metric: what is drawn.
        label: its axis.
        nominal: the metric that says what it should be, dotted.
        limits: of the axis.
        logarithmic: whether that is logarithmic.
    """

    metric: str
    label: str
    nominal: str | None = None
    limits: tuple[float, float] | None = None
    logarithmic: bool = False


class CurvesOptions(Options):
    """Options of the figure.

    Attributes:
        rows: of panels.
        band: quantiles over seeds about the median, the median with its 95% interval, the mean with one standard error,
            or the mean with its 70% interval.
        quantiles: of the band of that name.
        queries: count queries only, without the initial design.
        names: methods by the words of the legend, where their own labels will not do.
        look: how those are told apart.
    """

    rows: tuple[Row, ...] = Field(default=(Row(metric="best_f", label="best value"),), min_length=1)
    band: Literal["quantiles", "median-interval", "mean-error", "mean-interval"] = "quantiles"
    quantiles: tuple[float, float] = (0.2, 0.8)
    queries: bool = False
    names: dict[str, str] = Field(default_factory=dict)
    look: style.Look = style.Look()


def band(options: CurvesOptions) -> Callable[[Array], Band]:
    """Return what maps `seeds x rounds` values to the lower edge, the middle and the upper edge of a band."""

    def quantiles(values: Array) -> Band:
        low, middle, high = np.nanquantile(values, [options.quantiles[0], 0.5, options.quantiles[1]], axis=0)
        return low, middle, high

    def mean_error(values: Array) -> Band:
        mean, error = mean_and_standard_error(values)
        return mean - error, mean, mean + error

    bands: dict[str, Callable[[Array], Band]] = {
        "quantiles": quantiles,
        "median-interval": median_interval,
        "mean-error": mean_error,
        "mean-interval": mean_interval,
    }
    return bands[options.band]


def evaluations(trials: pd.DataFrame, rounds: pd.Index, queries: bool) -> Array:
    """Return how many evaluations there were at the end of each round."""
    first = trials[trials["seed"] == trials["seed"].iloc[0]]
    counts = first.groupby("iteration")["evaluation"].max() + 1
    return (counts.reindex(rounds) - (counts.loc[0] if queries else 0)).to_numpy(dtype=float)


def draw_row(
    ax: Axes, found: Evidence, problem: str, looks: dict[str, style.LineStyle], row: Row, options: CurvesOptions
) -> None:
    """Draw one panel: a line and a band a method, and what the metric should be."""
    summarise = band(options)
    nominal: pd.DataFrame | None = None
    for method, look in looks.items():
        if not len(found.rows[(found.rows["problem"] == problem) & (found.rows["method"] == method)]):
            continue
        trials = found.trials(problem, method)
        table = by_round(trials, row.metric)
        if table.empty:
            continue  # a method without a model has no coverage
        steps = evaluations(trials, table.columns, options.queries)
        low, middle, high = summarise(table.to_numpy())
        ax.plot(steps, middle, **look, label=options.names.get(method, method))
        # Many bands over each other would hide the lines.
        ax.fill_between(steps, low, high, color=look["color"], alpha=0.18 if len(looks) <= 4 else 0.07, linewidth=0)
        if row.nominal and nominal is None:
            nominal = by_round(trials, row.nominal)
            ax.plot(
                evaluations(trials, nominal.columns, options.queries),
                nominal.mean(),
                color="0.25",
                linestyle=":",
                linewidth=1.2,
                label=NOMINAL,
                zorder=3,
            )
    if row.limits:
        ax.set_ylim(*row.limits)
    if row.logarithmic:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()


@figures.register("curves", CurvesOptions)
def curves(evidence: Evidence, options: CurvesOptions) -> Figure:
    """Metrics against evaluations: a row a metric, a column a problem (one problem: side by side), a line a method."""
    problems = list(dict.fromkeys(evidence.rows["problem"]))
    methods = list(dict.fromkeys(evidence.rows["method"]))
    of_name = options.look.of([options.names.get(method, method) for method in methods])
    looks = {method: of_name[options.names.get(method, method)] for method in methods}
    if len(problems) == 1:
        figure, (line,) = style.panels(1, len(options.rows))
        axes = [[ax] for ax in line]
    else:
        figure, axes = style.panels(len(options.rows), len(problems), sharex="col")
    bottom = axes if len(problems) == 1 else axes[-1:]
    for column, problem in enumerate(problems):
        for i, row in enumerate(options.rows):
            draw_row(axes[i][column], evidence, problem, looks, row, options)
            if column == 0:
                axes[i][column].set_ylabel(row.label)
        axes[0][column].set_title(problem)
    for ax in (ax for row in bottom for ax in row):
        ax.set_xlabel("queries" if options.queries else "evaluations")
    across = len(options.rows) if len(problems) == 1 else len(problems)
    style.add_legend(figure, columns=min(3 * across, 8), last=NOMINAL)
    return figure

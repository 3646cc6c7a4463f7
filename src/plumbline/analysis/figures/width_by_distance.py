"""Lengths of sets against the distance to the nearest observation: where data are dense, and where they are sparse."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import PositiveFloat
from scipy.special import ndtri

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.model_steps import pictures_of
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import OutputOptions, figures
from plumbline.metrics.frames import entries

BINS = 15
"""Of the distances, up to the greatest that half of the runs have points at."""

QUANTILES = {"low": 0.2, "middle": 0.5, "high": 0.8}


class WidthByDistanceOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        reach: a distance to mark, such as the `reach` of the diagnostics, in units of x.
        top: the greatest length drawn; longer sets, including unbounded ones, are drawn at this height.
    """

    reach: PositiveFloat | None = None
    top: PositiveFloat = 6.0

    reads = ("x", "alpha")

    def shown(self, evidence: Evidence) -> str:
        """Return what line and band are."""
        low, high = (f"{QUANTILES[end]:.0%}" for end in ("low", "high"))
        return f"median and {low} to {high} quantiles over runs"


def relative_widths(picture: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return `distance` to the nearest observation and `width` in credible intervals along one picture of one run.

    Args:
        picture: of the model before a query.
        rows: of the trial.
    """
    now = picture["iteration"].iloc[0]
    data = rows.loc[rows["iteration"] < now, "x"].to_numpy(dtype=float)
    alpha = entries(rows.loc[rows["iteration"] == now, "alpha"])[0, 0]
    distance = np.abs(picture["x"].to_numpy()[:, None] - data).min(axis=1)
    credible = 2 * ndtri(1 - alpha / 2) * picture["sd"]
    return pd.DataFrame({"distance": distance, "width": (picture["width"] / credible).to_numpy()})


def by_distance(runs: list[pd.DataFrame], bins: int) -> pd.DataFrame:
    """Return quantiles over runs of their median relative widths, one row per bin of distances that half of them have.

    Quantiles are observed values: one cannot interpolate between a finite and an infinite one.
    """
    reaches = [run["distance"].max() for run in runs]
    edges = np.linspace(0.0, float(np.median(reaches)), bins + 1)
    centres = (edges[:-1] + edges[1:]) / 2
    medians = []
    for run in runs:
        near = run[run["distance"] <= edges[-1]]
        places = centres[np.searchsorted(edges[1:-1], near["distance"])]
        medians.append(near.groupby(places)["width"].quantile(0.5, interpolation="lower"))
    table = pd.concat(medians, axis=1).sort_index()
    table = table[table.notna().sum(axis=1) >= len(runs) / 2]
    found = table.quantile(list(QUANTILES.values()), axis=1, interpolation="lower").T
    return found.set_axis(list(QUANTILES), axis=1).set_axis(table.index.astype(float))


def draw_widths(ax: Axes, found: pd.DataFrame, its: style.MethodStyle, place: int, count: int, legend: str) -> None:
    """Draw the median and the 20% to 80% quantiles of one of `count` methods, as `by_distance` has them."""
    ax.fill_between(found.index, found["low"], found["high"], color=its.colour, alpha=0.2, linewidth=0)
    marks.draw_line(ax, found.index.to_numpy(), found["middle"].to_numpy(), its, place, count, label=legend)


@figures.register("width-by-distance", WidthByDistanceOptions)
def width_by_distance(evidence: Evidence, options: WidthByDistanceOptions) -> Figure:
    """Length of sets relative to credible intervals against the distance to the data, one panel per snapshot."""
    task = pictures_of(evidence, "")["task"].iloc[0]
    pictures = evidence.snapshots[evidence.snapshots["task"] == task]
    methods = evidence.methods(task)
    styles = style.method_styles(evidence.legends, evidence.methods())
    steps = sorted(pictures["iteration"].unique())
    figure, (axes,) = style.panels(1, len(steps), sharey=True)
    for i, method in enumerate(methods):
        of_method = pictures[pictures["method"] == method]
        trials = dict(iter(evidence.trials(task, method).groupby("seed")))
        for ax, step in zip(axes, steps, strict=True):
            runs = [
                relative_widths(picture, trials[seed])
                for seed, picture in of_method[of_method["iteration"] == step].groupby("seed")
            ]
            found = by_distance(runs, BINS).clip(upper=options.top)
            draw_widths(ax, found, styles[method], i, len(methods), evidence.legend(method).label)
            data = int((next(iter(trials.values()))["iteration"] < step).sum())
            ax.set_title(f"{data} observations")
    for ax in axes:
        ax.axhline(1.0, color=style.TRUTH, linestyle="--", linewidth=1, label="credible")
        if options.reach is not None:
            ax.axvline(options.reach, color="0.5", linestyle=":", linewidth=1)
        ax.set_ylim(0, options.top)
        ax.set_xlim(left=0)
        ax.set_xlabel("distance to the nearest observation")
    axes[0].set_ylabel("length of the set,\nin credible intervals")
    style.add_legend(figure, last="credible")
    return figure

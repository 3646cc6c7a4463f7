"""One posterior on a line and what acquisition functions make of it, a panel each."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import series
from plumbline.analysis.outputs.kinds import OutputOptions, figures

COLUMNS = 3
"""Panels side by side, at most."""

BINS, HEIGHT = 40, 0.16
"""Of histograms on the panel's edges, and how much of the panel the fullest bin takes."""


class AcquisitionsOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        titles: titles of the panels, by method.
    """

    titles: dict[str, str] = Field(default_factory=dict)

    def shown(self, evidence: Evidence) -> str:
        """Return what the band is."""
        return "band: 95% credible intervals of the posterior"


def draw_posterior(ax: Axes, found: pd.DataFrame) -> None:
    """Draw the posterior's band, mean and draws, the function and the data, and draws of the optimum if there are.

    Their place and value are shown together, and the density of either on an edge.
    """
    band, data = series(found, "posterior", "credible"), series(found, "posterior", "data")
    truth = series(found, "posterior", "truth")
    ax.fill_between(
        band["x"], band["low"], band["high"], color=style.tint(style.CALIBRATED, 0.2), label="credible band"
    )
    ax.plot(band["x"], band["value"], color=style.CALIBRATED, label="mean")
    ax.plot(truth["x"], truth["value"], color=style.TRUTH, linestyle="--", linewidth=1, label="function")
    names = found.loc[found["panel"] == "posterior", "series"]
    for name in names[names.str.startswith("draw ")].unique():
        path = series(found, "posterior", name)
        ax.plot(path["x"], path["value"], color="0.6", linewidth=0.7, label="draw")
    if (names == "optimum").any():
        optimum = series(found, "posterior", "optimum")
        ax.plot(optimum["x"], optimum["value"], ".", color=style.PLAIN, alpha=0.4, markersize=4, label="draw's optimum")
        draw_densities(ax, optimum)
    ax.plot(data["x"], data["value"], "o", color="black", markersize=4, label="data")
    ax.set(title="posterior", xlabel="x", ylabel="f(x)", xlim=(band["x"].min(), band["x"].max()))


def draw_densities(ax: Axes, optimum: pd.DataFrame) -> None:
    """Draw histograms of the optimum's place, from below, and of its value, from the right, each to its own scale."""
    for name, colour, label in (("x", style.QUERY, "density of x*"), ("value", style.TRUTH, "density of f*")):
        counts, edges = np.histogram(optimum[name], BINS)
        height, upright = HEIGHT * counts / counts.max(), name == "x"
        ax.stairs(
            height if upright else 1 - height,
            edges,
            baseline=0.0 if upright else 1.0,
            orientation="vertical" if upright else "horizontal",
            transform=ax.get_xaxis_transform() if upright else ax.get_yaxis_transform(),
            fill=True,
            color=colour,
            alpha=0.6,
            label=label,
        )


def draw_acquisition(ax: Axes, found: pd.DataFrame, method: str, title: str) -> None:
    """Draw an acquisition function and where it is greatest."""
    surface, query = series(found, method, "acquisition"), series(found, method, "query")
    ax.plot(surface["x"], surface["value"], color=style.PLAIN, label="acquisition function")
    ax.axvline(query["x"].item(), color=style.QUERY, linewidth=1, linestyle=":", label="next query")
    ax.set(title=title, xlabel="x", xlim=(surface["x"].min(), surface["x"].max()))


@figures.register("acquisitions-on-a-line", AcquisitionsOptions)
def acquisitions_on_a_line(evidence: Evidence, options: AcquisitionsOptions) -> Figure:
    """The posterior first, then the acquisition functions in the order of the illustration, each on its own scale."""
    found = evidence.illustration
    series(found, "posterior", "credible")
    methods = list(dict.fromkeys(found.loc[found["series"] == "acquisition", "panel"]))
    count = 1 + len(methods)
    rows = -(-count // COLUMNS)
    figure, axes = style.panels(rows, -(-count // rows))
    flat = [ax for row in axes for ax in row]
    draw_posterior(flat[0], found)
    for ax, method in zip(flat[1:], methods, strict=False):
        draw_acquisition(ax, found, method, options.titles.get(method, method))
    for ax in flat[count:]:
        ax.remove()
    style.add_legend(figure, 4)
    return figure

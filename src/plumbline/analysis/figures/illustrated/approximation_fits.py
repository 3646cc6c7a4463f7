"""Where few inducing points go, and what they do to the next query: AABO, figure 1."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import series
from plumbline.analysis.outputs.kinds import OutputOptions, figures

COLOURS = {"exact": "0.25", "ELBO": style.PLAIN, "EULBO": style.CALIBRATED}
WORDS = {"exact": "exact GP", "ELBO": "SVGP fitted by the ELBO", "EULBO": "SVGP refined by the EULBO"}
"""Of the models, whose means, improvements and queries have their colours."""

ALIKE = 0.005
"""Distances that differ by less count as the same: two steps of the grid that candidates are looked for on."""


def draw_fit(ax: Axes, found: pd.DataFrame, panel: str) -> None:
    """Draw an approximate fit with its inducing points on the data."""
    mean, inducing = series(found, panel, "mean"), series(found, panel, "inducing")
    truth, data = series(found, "all", "truth"), series(found, "all", "data")
    ax.fill_between(mean["x"], mean["low"], mean["high"], color=COLOURS[panel], alpha=0.15, linewidth=0)
    ax.plot(truth["x"], truth["value"], color=style.TRUTH, linestyle="--", linewidth=1, label="truth")
    ax.plot(data["x"], data["value"], "o", color="black", markersize=2.5, label="data")
    ax.plot(mean["x"], mean["value"], color=COLOURS[panel], label=WORDS[panel])
    ax.plot(
        inducing["x"],
        inducing["value"],
        "D",
        color=COLOURS[panel],
        markeredgecolor="black",
        markersize=5,
        clip_on=False,
        zorder=4,
    )
    ax.set(title=f"{panel} fit, {len(inducing)} inducing points", xlabel="x", ylabel="y", xlim=(-0.02, 1.02))
    low, high = (getattr(np, end)([*truth["value"], *data["value"]]) for end in ("min", "max"))
    ax.set_ylim(low - 0.35 * (high - low), high + 0.35 * (high - low))


def draw_queries(ax: Axes, found: pd.DataFrame, panels: tuple[str, ...]) -> None:
    """Draw a line down where each model asks."""
    for panel in panels:
        at = series(found, panel, "query")["x"].item()
        ax.axvline(at, color=COLOURS[panel], linestyle=":", linewidth=1.6, zorder=1)


def draw_improvements(ax: Axes, found: pd.DataFrame) -> None:
    """Draw the expected improvement of each model as a share of its greatest."""
    for panel, colour in COLOURS.items():
        improvement = series(found, panel, "improvement")
        ax.plot(improvement["x"], improvement["value"], color=colour, label=WORDS[panel])
    ax.set(title="expected improvement", xlabel="x", ylabel="EI divided by its maximum", xlim=(-0.02, 1.02))


def compared(pairs: pd.DataFrame) -> str:
    """Return in how many data sets a query is nearer to the exact one than the ELBO's, and in how many not."""
    nearer, farther = ((sign * (pairs["x"] - pairs["value"]) > ALIKE).sum() for sign in (1, -1))
    return f"{nearer} nearer, {farther} farther, {len(pairs) - nearer - farther} alike"


OTHER_QUERIES = ("query alone", "EULBO")
"""Queries that are compared with the ELBO's."""


def draw_distances(ax: Axes, found: pd.DataFrame) -> None:
    """Draw how far queries are from the exact model's against how far the ELBO's is, one dot per data set."""
    pairs = {name: series(found, "distance", name) for name in OTHER_QUERIES}
    end = 1.05 * max(ALIKE, *(float(one[axis].max()) for one in pairs.values() for axis in ("x", "value")))
    ax.plot([0, end], [0, end], color="0.6", linewidth=1, label="equal distances (d)")
    for (name, one), colour, filled in zip(pairs.items(), ("0.35", COLOURS["EULBO"]), ("none", "full"), strict=True):
        ax.plot(one["x"], one["value"], "o", color=colour, fillstyle=filled, markersize=4, label=f"{name} (d)")
    counts = "\n".join(f"{name}: {compared(one)}" for name, one in pairs.items())
    ax.text(0.02, 1.0, counts, transform=ax.transAxes, va="top", fontsize=7)
    ax.set(
        title="distance to the exact query",
        xlabel="distance of the ELBO's query",
        ylabel="distance of the other query",
        xlim=(-0.02, end),
    )
    ax.set_ylim(-0.02, 1.15 * end)  # with room for the counts


class FitsOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "band: mean and two standard deviations of a model"


@figures.register("approximation-fits", FitsOptions)
def approximation_fits(evidence: Evidence, options: OutputOptions) -> Figure:
    """Two fits with few inducing points, the improvements that they expect, and the distances of their queries."""
    found = evidence.illustration
    figure, ((elbo, improvement), (eulbo, distance)) = style.panels(2, 2)
    draw_fit(elbo, found, "ELBO")
    draw_improvements(improvement, found)
    draw_fit(eulbo, found, "EULBO")
    draw_queries(improvement, found, tuple(COLOURS))
    draw_queries(eulbo, found, tuple(COLOURS))
    draw_queries(elbo, found, ("exact", "ELBO"))
    draw_distances(distance, found)
    for ax, letter in zip((elbo, improvement, eulbo, distance), "abcd", strict=True):
        ax.set_title(f"({letter}) {ax.get_title()}")
    draw_entries(elbo)
    style.add_legend(figure, 3)
    return figure


def draw_entries(ax: Axes) -> None:
    """Draw what the legend shows of marks that each model has in its own colour."""
    ax.plot([], [], color="0.5", linestyle=":", linewidth=1.6, label="query of a model")
    ax.plot([], [], "D", color="white", markeredgecolor="black", markersize=5, label="inducing points")
    ax.fill_between([], [], color="0.5", alpha=0.25, linewidth=0, label="two standard deviations")

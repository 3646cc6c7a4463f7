"""Conformal and credible sets as data come in, under the right model: CBO, figure 14."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import draw_sets, series
from plumbline.analysis.outputs.kinds import OutputOptions, figures

LIMITS = (-3.0, 3.0)
"""Of the vertical axis."""


def draw_step(ax: Axes, found: pd.DataFrame, panel: str, limits: tuple[float, float]) -> None:
    """Draw the sets after some observations, with the data and the next query."""
    credible, data = series(found, panel, "credible"), series(found, panel, "data")
    query, alpha = series(found, panel, "query"), series(found, panel, "alpha")["value"].item()
    draw_sets(ax, series(found, panel, "set"), limits, style.CALIBRATED, "conformal set")
    for end in ("low", "high"):
        ax.plot(credible["x"], credible[end], color=style.PLAIN, linewidth=1.1, label="credible set")
    ax.plot(data["x"], data["value"], "o", color="black", markersize=3.5, label="data")
    ax.axvline(query["x"].item(), color=style.QUERY, linewidth=1, linestyle=":", label="next query")
    ax.set_title(f"{panel}, alpha = {alpha:.3g}")


class SetsOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "sets of level 1 - alpha of one model"


@figures.register("well-specified-bands", SetsOptions)
def well_specified_bands(evidence: Evidence, _: OutputOptions) -> Figure:
    """Conformal sets with credible sets as outlines, one panel per number of observations."""
    found = evidence.illustration
    truth = series(found, "all", "truth")
    steps = list(dict.fromkeys(found.loc[found["series"] == "query", "panel"]))
    figure, (axes,) = style.panels(1, len(steps), sharey=True)
    for ax, panel in zip(axes, steps, strict=True):
        draw_step(ax, found, panel, LIMITS)
        ax.plot(truth["x"], truth["value"], color=style.TRUTH, linestyle="--", linewidth=1, label="truth")
        ax.set(xlabel="x", xlim=(truth["x"].min(), truth["x"].max()))
    axes[0].set_ylabel("y")
    style.add_legend(figure, 6)
    return figure

"""A function, two acquisition surfaces and a density ratio on the unit square: CBO, figure 1."""

from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import series
from plumbline.analysis.outputs.kinds import OutputOptions, figures


class Panel(NamedTuple):
    """One panel: its name in the illustration, its title, the label and the colours of its surface."""

    name: str
    title: str
    label: str
    colours: str


PANELS = (
    Panel("f", "(a) Branin, turned upside down", "f(x), standardised", "viridis"),
    Panel("ucb", "(b) UCB", "UCB(x)", "viridis"),
    Panel("cucb", "(c) conformal UCB", "CUCB(x)", "viridis"),
    Panel("ratio", "(d) normalised density ratio", "ratio, 1 on average over the data", "magma"),
)


DECADES = 100.0
"""Positive values that differ by more than this factor have logarithmic colours."""


def draw_surface(ax: Axes, surface: pd.DataFrame, colours: str) -> ScalarMappable:
    """Draw values on a grid of the unit square."""
    values = surface.pivot(index="x2", columns="x", values="value")
    low, high = values.to_numpy().min(), values.to_numpy().max()
    norm = "log" if 0 < DECADES * low < high else "linear"
    return ax.pcolormesh(
        values.columns, values.index, values, cmap=colours, norm=norm, shading="nearest", rasterized=True
    )


def draw_level(ax: Axes, surface: pd.DataFrame, level: float) -> None:
    """Draw the dashed line where the surface is at `level`."""
    values = surface.pivot(index="x2", columns="x", values="value")
    if values.to_numpy().min() < level < values.to_numpy().max():
        ax.contour(values.columns, values.index, values, levels=[level], colors="white", linestyles="--")
    ax.plot([], [], color="0.35", linestyle="--", label=f"weight = alpha = {level:.3g}")


def draw_query(ax: Axes, query: pd.DataFrame) -> None:
    """Draw a star where the next query is, whole also on the edge of the square."""
    ax.plot(
        query["x"],
        query["x2"],
        "*",
        color=style.QUERY,
        markeredgecolor="white",
        markersize=13,
        clip_on=False,
        zorder=5,
        label="next query",
    )


class SurfacesOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "surfaces of one model"


@figures.register("branin-surfaces", SurfacesOptions)
def branin_surfaces(evidence: Evidence, options: OutputOptions) -> Figure:
    """Four surfaces on the unit square with the data, the next query of both bounds, and the line of weight alpha."""
    found = evidence.illustration
    data, alpha = series(found, "all", "data"), series(found, "all", "alpha")["value"].item()
    figure, axes = style.panels(2, 2, sharex=True, sharey=True)
    for ax, panel in zip([*axes[0], *axes[1]], PANELS, strict=True):
        surface = series(found, panel.name, "surface")
        drawn = draw_surface(ax, surface, panel.colours)
        bar = figure.colorbar(drawn, ax=ax, label=panel.label)
        if isinstance(drawn.norm, LogNorm):
            style.plain_powers(bar.ax.yaxis)
        ax.plot(data["x"], data["x2"], "o", color="black", markeredgecolor="white", markersize=5, label="data")
        if panel.name == "ratio":
            draw_level(ax, series(found, "weight", "surface"), alpha)
        if panel.name in ("ucb", "cucb"):
            draw_query(ax, series(found, panel.name, "query"))
        ax.set_title(panel.title)
        ax.set_aspect("equal")
    for ax in axes[-1]:
        ax.set_xlabel("x1")
    for row in axes:
        row[0].set_ylabel("x2")
    style.add_legend(figure, 3)
    return figure

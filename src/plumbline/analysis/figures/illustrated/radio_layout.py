"""A map of a cellular network with UAVs, and the gain of an antenna at a few tilts: LOCBO, figure 7."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Wedge

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import series
from plumbline.analysis.outputs.kinds import OutputOptions, figures
from plumbline.analysis.outputs.style import tint

USER, UAV = style.PALETTE["blue"], style.PALETTE["red"]
"""Colours of the two kinds of users."""

TILTS = tuple(style.PALETTE[name] for name in ("green", "grey", "purple", "orange", "sky"))
"""Colours of tilts in turn."""

ARROW = 45.0
"""Length of the arrows that say where antennas look, in metres."""


def draw_sectors(ax: Axes, antennas: pd.DataFrame, ring: tuple[float, float]) -> None:
    """Draw masts, where their antennas look, and the part of the ring about each that users of its sector are in."""
    inner, outer = ring
    for x, y, azimuth in antennas[["x", "x2", "value"]].to_numpy():
        wedge = Wedge((x, y), outer, azimuth - 60, azimuth + 60, width=outer - inner)
        wedge.set(facecolor=(0.5, 0.5, 0.5, 0.1), edgecolor="0.65", linewidth=0.7, zorder=1)
        ax.add_patch(wedge)
    ahead = np.deg2rad(antennas["value"])
    ax.quiver(
        antennas["x"],
        antennas["x2"],
        ARROW * np.cos(ahead),
        ARROW * np.sin(ahead),
        angles="xy",
        scale_units="xy",
        scale=1,
        color="0.35",
        width=0.008,
        headwidth=5,
        headlength=5,
        headaxislength=4.5,
        zorder=2,
    )
    ax.fill([], [], facecolor="0.92", edgecolor="0.65", linewidth=0.7, label="sector")
    masts = antennas.groupby(antennas.index // 3)[["x", "x2"]].mean()
    ax.plot(
        masts["x"],
        masts["x2"],
        "^",
        color="black",
        markersize=8,
        zorder=4,
        label="mast of three base stations",
    )


def draw_corridors(ax: Axes, corners: pd.DataFrame) -> None:
    """Draw the rectangles that UAVs fly in."""
    for _, corridor in corners.groupby("value"):
        ax.add_patch(Polygon(corridor[["x", "x2"]].to_numpy(), facecolor=tint(UAV), edgecolor="none", zorder=1))
    ax.fill([], [], color=tint(UAV), label="corridor")


def draw_map(ax: Axes, found: pd.DataFrame) -> None:
    """Draw the network from above."""
    antennas = series(found, "map", "antenna").reset_index(drop=True)
    ring = series(found, "map", "ring")
    draw_sectors(ax, antennas, (ring["low"].item(), ring["high"].item()))
    users, uavs = series(found, "map", "ground user"), series(found, "map", "uav")
    ax.plot(users["x"], users["x2"], "o", color=USER, markersize=4, zorder=3, label="user on the ground")
    ax.plot(uavs["x"], uavs["x2"], "D", color=UAV, markersize=4, zorder=3, label="UAV at 150 m")
    draw_corridors(ax, series(found, "map", "corridor"))
    ax.set(xlabel="x in m", ylabel="y in m", title="(a) the network from above", aspect="equal")


def draw_gain(ax: Axes, found: pd.DataFrame) -> None:
    """Draw the gain over elevation, and ticks where users are seen from the antenna nearest to them."""
    gains = series(found, "gain", "gain")
    for i, (tilt, curve) in enumerate(gains.groupby("x2")):
        ax.plot(
            curve["x"],
            curve["value"],
            color=TILTS[i % len(TILTS)],
            label=f"gain at a tilt of {tilt:.0f}°".replace("-", "\N{MINUS SIGN}"),
        )
    low, high = gains["value"].min(), gains["value"].max()
    for name, colour, level in (("ground user", USER, low - 3.5), ("uav", UAV, low - 6.5)):
        places = series(found, "gain", name)["x"]
        ax.eventplot(places, lineoffsets=level, linelengths=2.4, colors=colour, linewidths=0.8)
    ax.text(gains["x"].min() + 2, low - 6.5, "elevations of users", va="center", fontsize=7, color="0.35")
    ax.set_ylim(low - 8.5, high + 2)
    ax.set(xlabel="elevation in degrees", ylabel="gain in dB", title="(b) gain of an antenna, straight ahead")
    ax.set_xlim(gains["x"].min(), gains["x"].max())
    ax.set_xticks([-90, -45, 0, 45, 90])


class LayoutOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "one draw of the users"


@figures.register("radio-layout", LayoutOptions)
def radio_layout(evidence: Evidence, options: OutputOptions) -> Figure:
    """The network from above on the left; on the right the gain of an antenna at a few tilts, and where users are."""
    found = evidence.illustration
    figure, (axes,) = style.panels(1, 2, width_ratios=[1.25, 1])
    figure.set_size_inches(7.6, 4.0)
    draw_map(axes[0], found)
    draw_gain(axes[1], found)
    style.add_legend(figure, 4)
    return figure

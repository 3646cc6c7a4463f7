"""How the coverage of sets is distributed over trials: CBO, figure 5."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.curve_options import Panel
from plumbline.analysis.figures.curves import panels_of
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures

Array = NDArray[np.float64]


class CoverageDensityOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        panels: the panels, side by side; by default one for each task.
        level: the nominal coverage.
    """

    panels: tuple[Panel, ...] = ()
    level: float = Field(gt=0.0, lt=1.0)

    def names(self) -> Names:
        """Return the names in panels, and the metric of coverage."""
        return Names(
            tuple(panel.task for panel in self.panels),
            tuple(method for panel in self.panels for method in panel.methods),
            ("query_coverage",),
        )

    def shown(self, evidence: Evidence) -> str:
        """Return what curves and ticks are."""
        return "kernel estimate of the density on [0, 1], and a tick a trial; dashed: the level"


TICKS = 0.045
"""Height of the ticks of a method, as a share of its panel's."""


def density(values: Array, x: Array) -> Array:
    """Return the kernel estimate of a density of shares at `x`: what a kernel has beyond 0 and 1 is reflected there.

    Args:
        values: of the shares, not all the same: `n`.
        x: from 0 to 1, of any length.
    """
    from scipy.stats import gaussian_kde  # takes long to import, and other figures need none of it

    kernel = gaussian_kde(values)
    return kernel(x) + kernel(-x) + kernel(2 - x)


def density_line(values: Array) -> tuple[Array, Array]:
    """Return the places and the heights of a line that encloses all of a density, with height 0 at both ends.

    Where shares come near 0 or 1 the density is positive there, and the line goes straight down to the axis: a line
    that stopped in the air would look cut, as if there were more beyond.

    Args:
        values: as `density` has them.
    """
    reach = 3 * values.std()
    x = np.linspace(max(values.min() - reach, 0.0), min(values.max() + reach, 1.0), 200)
    return np.pad(x, 1, mode="edge"), np.pad(density(values, x), 1)


def draw_method(ax: Axes, coverage: Array, its: style.MethodStyle, label: str, place: int, count: int) -> None:
    """Draw the density of the coverage of one of `count` methods, and below it a tick a trial."""
    ticks = np.full(len(coverage), (place + 0.6) * TICKS)
    ax.plot(coverage, ticks, "|", color=its.colour, alpha=0.7, markersize=5, transform=ax.get_xaxis_transform())
    if np.ptp(coverage) == 0:
        ax.axvline(coverage[0], **its.line, label=label)
        return
    x, height = density_line(coverage)
    ax.fill_between(x, height, color=its.colour, alpha=0.12, linewidth=0)
    width = style.line_width(place, count)
    marks.draw_line(ax, x, height, its, place, count, label=label, linewidth=width)


@figures.register("coverage-density", CoverageDensityOptions)
def coverage_density(evidence: Evidence, options: CoverageDensityOptions) -> Figure:
    """Distribution over trials of the coverage of queries, one density estimate per method."""
    columns = panels_of(evidence, options.panels)
    styles = style.method_styles(evidence.legends, evidence.methods())
    figure, axes = style.wrapped_panels(len(columns), sharex=True, sharey=True)
    for ax, panel in zip(axes, columns, strict=True):
        found = {
            method: evidence.ends(panel.task, method, "query_coverage").to_numpy(dtype=float)
            for method in panel.methods
        }
        if not any(map(len, found.values())):
            marks.say(ax, marks.NO_VALUE)
        for i, (method, coverage) in enumerate(found.items()):
            if len(coverage):  # not of a method without sets
                draw_method(ax, coverage, styles[method], evidence.legend(method).label, i, len(panel.methods))
        ax.axvline(options.level, color="0.25", linestyle="--", linewidth=1)
        style.set_title(ax, panel.title)
        if style.ends_a_column(ax):
            ax.set_xlabel("share of a trial's queries covered")
        if style.begins_a_line(ax):
            ax.set_ylabel("density over trials")
    axes[0].set_ylim(bottom=0)  # of all: they share it
    style.add_legend(figure)
    return figure

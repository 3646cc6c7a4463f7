"""How the coverage of sets is distributed over trials: CBO, figure 5."""

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from pydantic import Field

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.curves import Panel, panels_of
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures


class CoverageDensityOptions(OutputOptions):
    """Options of the figure: its panels, one a task where none are named, and the level that coverage should have."""

    panels: tuple[Panel, ...] = ()
    level: float = Field(gt=0.0, lt=1.0)

    def names(self) -> Names:
        """Return the names in panels, and the metric of coverage."""
        return Names(
            tuple(panel.task for panel in self.panels),
            tuple(method for panel in self.panels for method in panel.methods),
            ("query_coverage",),
        )

    def shown(self) -> str:
        """Return what curves and ticks are."""
        return "kernel estimate of the density, and a tick a trial; dashed: the level"


@figures.register("coverage-density", CoverageDensityOptions)
def coverage_density(evidence: Evidence, options: CoverageDensityOptions) -> Figure:
    """Kernel estimates, one a method, of the distribution over trials of the coverage of queries."""
    columns = panels_of(evidence, options.panels)
    styles = style.method_styles(evidence.legends, evidence.methods())
    figure, axes = style.panels(1, len(columns), sharex=True, sharey=True)
    for ax, panel in zip(axes[0], columns, strict=True):
        for i, method in enumerate(panel.methods):
            coverage = evidence.ends(panel.task, method, "query_coverage").to_numpy()
            if not len(coverage):
                continue  # a method without sets
            colour, legend = styles[method].colour, evidence.legend(method).label
            sns.rugplot(x=coverage, ax=ax, color=colour, height=0.04, alpha=0.7)
            if len(np.unique(coverage)) > 1:
                width = style.line_width(i, len(panel.methods))
                sns.kdeplot(x=coverage, ax=ax, color=colour, label=legend, linewidth=width, clip=(0, 1))
            else:
                ax.axvline(coverage[0], color=colour, label=legend)
        ax.axvline(options.level, color="0.25", linestyle="--", linewidth=1)
        ax.set_title(panel.title)
        ax.set_xlabel("coverage of a trial")
    axes[0][0].set_ylabel("density over trials")
    style.add_legend(figure)
    return figure

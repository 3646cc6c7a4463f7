"""How the coverage of sets is distributed over trials: CBO, figure 5."""

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from pydantic import Field

from plumbline.analysis import style
from plumbline.analysis.collect import Evidence
from plumbline.analysis.metrics import by_round
from plumbline.analysis.outputs import figures
from plumbline.options import Options


class Panel(Options):
    """One panel: a problem, and methods by the words that the legend uses."""

    title: str
    problem: str
    methods: dict[str, str]


class CoverageDensityOptions(Options):
    """Options of the figure: its panels, and the level that coverage should have."""

    panels: tuple[Panel, ...] = Field(min_length=1)
    level: float = Field(gt=0.0, lt=1.0)


@figures.register("coverage-density", CoverageDensityOptions)
def coverage_density(evidence: Evidence, options: CoverageDensityOptions) -> Figure:
    """Kernel estimates, one a method, of the distribution over trials of the coverage of queries."""
    names = list(dict.fromkeys(name for panel in options.panels for name in panel.methods.values()))
    colours = style.colours(names)
    figure, axes = style.panels(1, len(options.panels), sharex=True, sharey=True)
    for ax, panel in zip(axes[0], options.panels, strict=True):
        for method, name in panel.methods.items():
            coverage = by_round(evidence.trials(panel.problem, method), "query_coverage").to_numpy()[:, -1]
            sns.rugplot(x=coverage, ax=ax, color=colours[name], height=0.04, alpha=0.7)
            if len(np.unique(coverage)) > 1:
                sns.kdeplot(
                    x=coverage,
                    ax=ax,
                    color=colours[name],
                    label=name,
                    fill=True,
                    alpha=0.15,
                    linewidth=1.6,
                    clip=(0, 1),
                )
            else:
                ax.axvline(coverage[0], color=colours[name], label=name)
        ax.axvline(options.level, color="0.25", linestyle="--", linewidth=1)
        ax.set_title(panel.title)
        ax.set_xlabel("coverage of a trial")
    axes[0][0].set_ylabel("density over trials")
    style.add_legend(figure)
    return figure

"""Expected improvement by expected quality and standard deviation."""

import numpy as np
from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import series
from plumbline.analysis.outputs.kinds import OutputOptions, figures


class MapOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "exact values"


@figures.register("improvement-map", MapOptions)
def improvement_map(evidence: Evidence, options: OutputOptions) -> Figure:
    """Colours and lines of equal expected improvement: each line is a trade of quality for uncertainty."""
    surface = series(evidence.illustration, "improvement", "surface")
    values = surface.pivot(index="x2", columns="x", values="value")
    figure, ((ax,),) = style.panels(1, 1)
    style.enlarge(figure)
    mesh = ax.pcolormesh(values.columns, values.index, values, cmap="viridis", shading="nearest", rasterized=True)
    figure.colorbar(mesh, ax=ax, label="expected improvement")
    levels = np.linspace(0.0, values.to_numpy().max(), 9)[1:-1]
    ax.contour(values.columns, values.index, values, levels=levels, colors="white", linewidths=0.7)
    ax.plot([], [], color="0.6", linewidth=0.7, label="equal expected improvement")
    ax.axvline(0.0, color="white", linestyle="--", linewidth=1.2)
    ax.plot([], [], color="0.6", linestyle="--", linewidth=1.2, label="as good as the best so far")
    ax.set(xlabel="expected quality Delta: mean minus the best so far", ylabel="standard deviation")
    style.add_legend(figure, 2)
    return figure

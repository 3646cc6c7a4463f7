"""A posterior's credible sets, candidate labels and conformal sets on a line: CBO, figure 3."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import draw_sets, series
from plumbline.analysis.outputs.kinds import OutputOptions, figures

LIMITS = (-2.5, 2.5)
"""Of the vertical axis."""


def draw_candidates(ax: Axes, evidence: Evidence) -> None:
    """Draw the candidate labels drawn from the posterior."""
    labels = series(evidence.illustration, "candidates", "label")
    ax.plot(labels["x"], labels["value"], ".", color="0.6", markersize=1.5, label="candidate labels", zorder=1)


class BandsOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "sets of level 1 - alpha of one model"


@figures.register("conformal-bands", BandsOptions)
def conformal_bands(evidence: Evidence, _: OutputOptions) -> Figure:
    """Credible sets, candidate labels and conformal sets of one model, with data and truth."""
    found = evidence.illustration
    figure, axes = style.panels(1, 3, sharey=True)
    first, second, third = axes[0]
    draw_sets(first, series(found, "credible", "credible"), LIMITS, style.PLAIN, "credible set")
    draw_candidates(second, evidence)
    draw_sets(third, series(found, "conformal", "set"), LIMITS, style.CALIBRATED, "conformal set")
    truth, data = series(found, "all", "truth"), series(found, "all", "data")
    titles = ("(a) credible sets", "(b) candidate labels", "(c) conformal sets")
    for ax, title in zip(axes[0], titles, strict=True):
        ax.plot(truth["x"], truth["value"], color=style.TRUTH, linestyle="--", linewidth=1, label="truth")
        ax.plot(data["x"], data["value"], "o", color="black", markersize=3, label="data")
        ax.set(title=title, xlabel="x", xlim=(truth["x"].min(), truth["x"].max()))
    first.set_ylabel("y")
    style.add_legend(figure, 5)
    return figure

"""The density of a label, plain and under the conformal posterior: CBO, figure 4."""

from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import draw_union, series
from plumbline.analysis.outputs.kinds import OutputOptions, figures
from plumbline.analysis.outputs.style import tint


class DensityOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "densities and sets at one point"


@figures.register("conformal-density", DensityOptions)
def conformal_density(evidence: Evidence, options: OutputOptions) -> Figure:
    """The density of a label at one point, plain and conformal, with the sets of both below."""
    found = evidence.illustration
    plain, conformal = series(found, "density", "plain"), series(found, "density", "conformal")
    sets = series(found, "density", "set")
    alpha = series(found, "density", "alpha")["value"].item()
    figure, axes = style.panels(1, 1)
    ax = axes[0][0]
    style.enlarge(figure)
    y = conformal["x"]
    in_set = sum(((y >= row.low) & (y <= row.high)).astype(int) for row in sets.itertuples()) > 0
    ax.fill_between(
        y, conformal["value"], where=in_set, color=tint(style.CALIBRATED), label=f"in the set: {1 - alpha:.3g}"
    )
    ax.fill_between(y, conformal["value"], where=~in_set, color=tint("#333333"), label=f"outside: {alpha:.3g}")
    ax.plot(y, conformal["value"], color=style.CALIBRATED, label="conformal density")
    ax.plot(plain["x"], plain["value"], color=style.PLAIN, linestyle="--", label="plain density")
    ax.set_xlim(y.min(), y.max())
    top = max(plain["value"].max(), conformal["value"].max())
    draw_union(ax, sets, -0.06 * top, style.CALIBRATED, "conformal set")
    draw_union(ax, series(found, "density", "credible"), -0.13 * top, style.PLAIN, "credible set")
    ax.set(xlabel="y", ylabel="density", ylim=(-0.19 * top, None))
    style.add_legend(figure, 3)
    return figure

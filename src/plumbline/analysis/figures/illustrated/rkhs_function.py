"""Draws of a process, and a function of known norm with the same kernel: CBO, figure 9."""

from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import series
from plumbline.analysis.outputs.kinds import OutputOptions, figures


class FunctionOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "one draw of each function"


@figures.register("rkhs-function", FunctionOptions)
def rkhs_function(evidence: Evidence, options: OutputOptions) -> Figure:
    """Draws of the prior on the left, the function with the labels that made it and its norm on the right."""
    found = evidence.illustration
    truth, labels = series(found, "function", "truth"), series(found, "function", "labels")
    figure, (axes,) = style.panels(1, 2)
    left, right = axes
    draws = found[found["panel"] == "prior"]
    for name, colour in style.colours(list(dict.fromkeys(draws["series"]))).items():
        draw = draws[draws["series"] == name]
        left.plot(draw["x"], draw["value"], color=colour, linewidth=1.1)
    right.plot(truth["x"], truth["value"], color=style.TRUTH, linestyle="--", label="f*")
    right.plot(labels["x"], labels["value"], "o", color="black", markersize=3.5, label="labels at basis points")
    left.set_title("(a) draws of the prior")
    right.set_title(f"(b) f*, of norm {series(found, 'function', 'norm')['value'].item():.4f}")
    for ax in axes:
        ax.set(xlabel="x", ylabel="f(x)", xlim=(0, 1))
    style.add_legend(figure, 2)
    return figure

"""The four steps that make a conformal set: CBO, figure 2."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.intervals import draw_union, series
from plumbline.analysis.outputs.kinds import OutputOptions, figures
from plumbline.analysis.outputs.style import tint

BETTER, KEPT, GUESS = style.CALIBRATED, "0.45", style.QUERY
"""Data that score better than the guess, the others, and the guess."""


def draw_scores(ax: Axes, found: pd.DataFrame) -> None:
    """Draw the scores of data and guess, and a line at the guess's."""
    for name, colour, label in (
        ("better", BETTER, "better than the guess: masked"),
        ("kept", KEPT, "no better: kept"),
        ("guess", GUESS, "the guess"),
    ):
        one = found[(found["panel"] == "scores") & (found["series"] == name)]
        ax.plot(one["x"], one["value"], "o", color=colour, label=label)
    ax.axhline(series(found, "scores", "guess")["value"].item(), color=GUESS, linewidth=0.8, linestyle=":")
    ax.set(title="(a) conformal scores", xlabel="example index", ylabel="log predictive density")


def draw_weights(ax: Axes, found: pd.DataFrame) -> None:
    """Draw the importance weights; masked ones are outlines."""
    for name, colour in (("better", BETTER), ("kept", KEPT), ("guess", GUESS)):
        one = found[(found["panel"] == "weights") & (found["series"] == name)]
        masked = name == "better"
        ax.bar(
            one["x"],
            one["value"],
            color=tint(colour, 0.15) if masked else colour,
            edgecolor=colour,
            linestyle="--" if masked else "-",
            linewidth=0.8,
        )
    ax.set(title="(b) importance weights", xlabel="example index", ylabel="weight")


def draw_sums(ax: Axes, found: pd.DataFrame, alpha: float) -> None:
    """Draw the partial sums of the weights that are left, and the level that the last must exceed."""
    sums = series(found, "sums", "sum")
    ax.step(sums["x"], sums["value"], where="mid", color=KEPT)
    ax.plot(sums["x"].iloc[-1:], sums["value"].iloc[-1:], "o", color=GUESS)
    ax.axhline(alpha, color="black", linestyle="--", linewidth=1, label=f"alpha = {alpha:g}")
    verdict = "accepted" if sums["value"].iloc[-1] > alpha else "rejected"
    ax.set(title=f"(c) partial sums: the guess is {verdict}", xlabel="example index", ylabel="sum of kept weights")
    ax.set_ylim(bottom=0)


def draw_set(ax: Axes, found: pd.DataFrame, alpha: float) -> None:
    """Draw the whole sum of each of many guesses, and the exact set below them."""
    guesses = found[(found["panel"] == "set") & found["series"].isin(["accepted", "rejected"])]
    width = guesses["x"].sort_values().diff().median()
    for name, share in (("accepted", 1.0), ("rejected", 0.35)):
        one = guesses[guesses["series"] == name]
        colour = tint("#333333", share)
        # Edges of the colour of the bars close the seams between them.
        ax.bar(one["x"], one["value"], width, color=colour, edgecolor=colour, linewidth=0.4, label=name)
    ax.axhline(alpha, color="black", linestyle="--", linewidth=1)
    ax.axvline(series(found, "set", "guess")["x"].item(), color=GUESS, linewidth=0.8, linestyle=":")
    top = 1.12 * guesses["value"].max()
    draw_union(ax, series(found, "set", "set"), 0.96 * top, BETTER, "exact set")
    ax.set(title="(d) many guesses", xlabel="guessed label", ylabel="sum of kept weights")
    ax.set_ylim(0, top)


class ConformalStepsOptions(OutputOptions):
    """The figure has no options."""

    def shown(self, evidence: Evidence) -> str:
        """Return what bands and lines are."""
        return "one set, step by step"


@figures.register("conformal-steps", ConformalStepsOptions)
def conformal_steps(evidence: Evidence, options: OutputOptions) -> Figure:
    """Scores, weights and partial sums for one guess of a label, and which of many guesses are accepted."""
    found = evidence.illustration
    alpha = series(found, "set", "alpha")["value"].item()
    figure, axes = style.panels(2, 2)
    draw_scores(axes[0][0], found)
    draw_weights(axes[0][1], found)
    draw_sums(axes[1][0], found, alpha)
    draw_set(axes[1][1], found, alpha)
    for ax in (*axes[0], axes[1][0]):
        ax.xaxis.set_major_locator(MultipleLocator(5))
    style.add_legend(figure, 4)
    return figure

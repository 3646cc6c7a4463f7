"""The sets of methods along a line at the end of a run: LOCBO, figure 4."""

from matplotlib.figure import Figure
from pydantic import Field

from plumbline.analysis import style
from plumbline.analysis.collect import Evidence
from plumbline.analysis.outputs import figures
from plumbline.options import Options


class SetBandsOptions(Options):
    """Options of the figure: its problem, and the title of each method's panel."""

    problem: str
    panels: dict[str, str] = Field(min_length=1)


@figures.register("set-bands", SetBandsOptions)
def set_bands(evidence: Evidence, options: SetBandsOptions) -> Figure:
    """Truth, the model's mean, its symmetric sets of the first level and the data, before the last snapshot's query."""
    pictures = evidence.snapshots[evidence.snapshots["problem"] == options.problem]
    pictures = pictures[pictures["seed"] == pictures["seed"].min()]
    now = pictures["iteration"].max()
    figure, axes = style.panels(1, len(options.panels), sharex=True, sharey=True)
    for ax, (method, title) in zip(axes[0], options.panels.items(), strict=True):
        picture = pictures[(pictures["method"] == method) & (pictures["iteration"] == now)]
        rows = evidence.trials(options.problem, method)
        seen = rows[(rows["seed"] == picture["seed"].iloc[0]) & (rows["iteration"] < now)]
        low, high = (picture["mean"] + side * picture["width"] / 2 for side in (-1, 1))
        band = style.CALIBRATED
        ax.fill_between(picture["x"], low, high, color=band, alpha=0.2, linewidth=0, label="set")
        ax.plot(picture["x"], picture["mean"], color=band, label="mean")
        ax.plot(picture["x"], picture["f"], color=style.TRUTH, linestyle="--", linewidth=1, label="truth")
        ax.plot(seen["x"].str[0], seen["y"].str[0], "o", color="black", markersize=3, label="observed", zorder=3)
        ax.set_title(title)
        ax.set_xlabel("x")
    axes[0][0].set_ylabel("y")
    style.add_legend(figure)
    return figure

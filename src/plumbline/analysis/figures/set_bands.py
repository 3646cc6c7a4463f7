"""The sets of methods along a line at the end of a run: LOCBO, figure 4."""

from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.model_steps import pictures_of
from plumbline.analysis.figures.set_parts import mark_optima, optima
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures


class SetBandsOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        task: a one-dimensional task whose trials took snapshots; by default the first.
        methods: the methods, one panel each; by default all on the task.
    """

    task: str = ""
    methods: tuple[str, ...] = ()

    reads = ("x", "y")

    def names(self) -> Names:
        """Return the task and the methods."""
        return Names((self.task,) if self.task else (), self.methods)

    def shown(self, evidence: Evidence) -> str:
        """Return what the band is."""
        return "one run; band: prediction set of level 1 - alpha"


@figures.register("set-bands", SetBandsOptions)
def set_bands(evidence: Evidence, options: SetBandsOptions) -> Figure:
    """Truth, the model's mean, its symmetric sets of the first level and the data, before the last snapshot's query.

    Below, the thresholds of the sets, where methods have any.
    """
    pictures = pictures_of(evidence, options.task)
    task = pictures["task"].iloc[0]
    methods = evidence.named(options.methods, task) if options.methods else evidence.methods(task)
    now = pictures["iteration"].max()
    localised = bool(pictures["threshold"].notna().any())
    figure, axes = style.panels(1 + localised, len(methods), sharex=True, sharey="row")
    for column, method in enumerate(methods):
        ax = axes[0][column]
        picture = pictures[(pictures["method"] == method) & (pictures["iteration"] == now)]
        rows = evidence.trials(task, method)
        seen = rows[(rows["seed"] == picture["seed"].iloc[0]) & (rows["iteration"] < now)]
        low, high = (picture["mean"] + side * picture["width"] / 2 for side in (-1, 1))
        band = style.CALIBRATED
        ax.fill_between(picture["x"], low, high, color=band, alpha=0.2, linewidth=0, label="set")
        ax.plot(picture["x"], picture["mean"], color=band, label="mean")
        ax.plot(picture["x"], picture["f"], color=style.TRUTH, linestyle="--", linewidth=1, label="truth")
        ax.plot(seen["x"], seen["y"], "o", color="black", markersize=3, label="observed", zorder=3)
        ax.set_title(evidence.legend(method).label)
        if localised:
            axes[1][column].plot(picture["x"], picture["threshold"], color=band)
        for row in axes:
            mark_optima(row[column], optima(picture))
        axes[-1][column].set_xlabel("x")
    for row, words in zip(axes, ("y", "threshold"), strict=False):
        row[0].set_ylabel(words)
    style.add_legend(figure)
    return figure

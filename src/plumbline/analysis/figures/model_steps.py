"""What a method believed, and why it asked where it did, at selected steps of a one-dimensional run: CAL, figure 1."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import NonNegativeInt

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.reference import NotInReferenceError
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError


class StepsOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        task: a one-dimensional task whose trials took snapshots; by default the first.
        methods: the methods, one row each; by default all on the task.
        minimise: whether it is drawn for minimisation, as in papers that minimise.
        seed: the seed whose run is shown; by default the first that took snapshots.
    """

    task: str = ""
    methods: tuple[str, ...] = ()
    minimise: bool = False
    seed: NonNegativeInt | None = None

    reads = ("x", "y", "f")

    def names(self) -> Names:
        """Return the task and the methods."""
        return Names((self.task,) if self.task else (), self.methods)

    def shown(self, evidence: Evidence) -> str:
        """Return what the band is."""
        return "one run; band: mean and two standard deviations of its model"


def pictures_of(evidence: Evidence, task: str, seed: int | None = None) -> pd.DataFrame:
    """Return the snapshots of one seed on a task, or on the first that has any where it is empty.

    Args:
        evidence: of the experiment.
        task: its name, or nothing.
        seed: the first that has any where none is given.

    Raises:
        PlumblineError: there are none.
        NotInReferenceError: there are reference results, which hold none.
    """
    found = evidence.snapshots
    if evidence.reference is not None:
        raise NotInReferenceError("pictures of models")
    if len(found):
        found = found[found["task"] == (task or found["task"].iloc[0])]
    if found.empty:
        raise PlumblineError(f"no snapshots of {task or 'any task'}: ask for them under `diagnostics`")
    seeds = sorted(found["seed"].unique().tolist())
    of_seed = found[found["seed"] == (seeds[0] if seed is None else seed)]
    if of_seed.empty:
        raise PlumblineError(f"no snapshots of seed {seed}: the experiment has {seeds}")
    return of_seed


def draw_model(ax: Axes, picture: pd.DataFrame, rows: pd.DataFrame, sign: int, colour: str) -> None:
    """Draw truth, model, data and the next query."""
    now = picture["iteration"].iloc[0]
    seen, query = rows[rows["iteration"] < now], rows[rows["iteration"] == now]
    mean, band = sign * picture["mean"], 2 * picture["sd"]
    ax.fill_between(picture["x"], mean - band, mean + band, color=colour, alpha=0.2, linewidth=0, label="mean ± 2 sd")
    ax.plot(picture["x"], mean, color=colour)
    ax.plot(picture["x"], sign * picture["f"], color="0.25", linestyle="--", linewidth=1, label="truth")
    ax.plot(seen["x"], sign * seen["y"], "o", color="black", markersize=3.5, label="observed")
    ax.plot(
        query["x"],
        sign * query["y"],
        "*",
        color=style.QUERY,
        markersize=10,
        label="next query",
        zorder=4,
    )


def draw_utility(ax: Axes, picture: pd.DataFrame, query: float) -> None:
    """Draw the acquisition function, which is always maximised, and where."""
    ax.plot(picture["x"], picture["acquisition"], color=style.UTILITY, linewidth=1.2)
    ax.axvline(query, color=style.QUERY, linewidth=0.8)
    ax.set_yticks([])


@figures.register("model-steps", StepsOptions)
def model_steps(evidence: Evidence, options: StepsOptions) -> Figure:
    """The model before selected queries of one seed, one row per method, with the acquisition function below."""
    pictures = pictures_of(evidence, options.task, options.seed)
    task, seed = pictures["task"].iloc[0], pictures["seed"].iloc[0]
    methods = evidence.named(options.methods, task) if options.methods else evidence.methods(task)
    steps = sorted(pictures["iteration"].unique())
    sign = -1 if options.minimise else 1
    styles = style.method_styles(evidence.legends, evidence.methods())
    figure, axes = style.panels(2 * len(methods), len(steps), sharex=True, height_ratios=[3, 1] * len(methods))
    figure.set_size_inches(min(2.9 * len(steps), style.WIDEST), 2.9 * len(methods))
    truth = sign * pictures["f"]
    margin = 0.25 * (truth.max() - truth.min())
    limits = (truth.min() - margin, truth.max() + margin)
    for i, method in enumerate(methods):
        of_method = pictures[pictures["method"] == method]
        rows = evidence.trials(task, method)
        rows = rows[rows["seed"] == seed]
        for j, step in enumerate(steps):
            top, bottom = axes[2 * i][j], axes[2 * i + 1][j]
            picture = of_method[of_method["iteration"] == step]
            draw_model(top, picture, rows, sign, styles[method].colour)
            draw_utility(bottom, picture, rows.loc[rows["iteration"] == step, "x"].iloc[0])
            top.set_ylim(*limits)
            style.set_title(top, f"{evidence.legend(method).label},\nbefore round {step}")
        axes[2 * i][0].set_ylabel("f(x)")
        axes[2 * i + 1][0].set_ylabel("utility")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    for ax in axes[-1]:
        ax.set_xlabel("x")
    return figure

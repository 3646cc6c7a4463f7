"""Calibration score and best value against steps: CAL, figures 2 and 3."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.analysis import style
from plumbline.analysis.collect import Evidence
from plumbline.analysis.metrics import by_round
from plumbline.analysis.outputs import figures
from plumbline.analysis.statistics import mean_and_standard_error
from plumbline.options import Options


class Panel(Options):
    """One column of the figure: a problem, the plain method and the calibrated one."""

    title: str
    problem: str
    plain: str
    calibrated: str


class CurvesOptions(Options):
    """Options of the figure."""

    panels: tuple[Panel, ...]


def draw_band(
    ax: Axes, evidence: Evidence, problem: str, method: str, metric: str, colour: str, label: str, sign: int
) -> None:
    """Draw mean and one standard error over seeds of a metric against rounds."""
    table = sign * by_round(evidence.trials(problem, method), metric)
    mean, error = mean_and_standard_error(table.to_numpy())
    steps = table.columns.to_numpy()
    ax.plot(steps, mean, color=colour, label=label)
    ax.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


@figures.register("calibration-curves", CurvesOptions)
def calibration_curves(evidence: Evidence, options: CurvesOptions) -> Figure:
    """Calibration score (top) and least value found (bottom) against steps, plain and calibrated."""
    figure, axes = style.panels(2, len(options.panels), sharex="col")
    for column, panel in enumerate(options.panels):
        top, bottom = axes[0][column], axes[1][column]
        for method, colour, label in (
            (panel.plain, style.PLAIN, "plain"),
            (panel.calibrated, style.CALIBRATED, "calibrated"),
        ):
            draw_band(top, evidence, panel.problem, method, "calibration_score", colour, label, 1)
            # Problems are maximised here and minimised in the paper.
            draw_band(bottom, evidence, panel.problem, method, "best_f", colour, label, -1)
        top.set_title(panel.title)
        top.set_ylim(bottom=0)
        optimum = -(evidence.trials(panel.problem, panel.plain)[["best_f", "regret"]].sum(axis=1, skipna=False).iloc[0])
        if np.isfinite(optimum):
            bottom.axhline(optimum, color="0.4", linestyle=":", linewidth=1, label="minimum")
        bottom.set_xlabel("step")
    axes[0][0].set_ylabel("calibration score")
    axes[1][0].set_ylabel("least value found")
    figure.legend(*axes[1][0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure

"""Metrics against evaluations or time, one column per task, one line per method: most figures of the documents."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.curve_lines import baseline_of, line_of, methods_of, nominal_line, optimum_of
from plumbline.analysis.figures.curve_options import CurvesOptions, Panel, Published, Row
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.errors import PlumblineError

PUBLISHED_DASHES = ((0, (1, 1)), "-.", (0, (4, 1, 1, 1, 1, 1)), (0, (6, 3)))
"""Of lines that others published, which are grey: no method has one of them."""

MOST_BANDS = 4
"""Of one panel: more would hide the lines, whose intervals then stand at their ends, beside the panel."""

UNMOVED = "no query was better\nthan the initial design"


def draw_row(
    ax: Axes,
    found: Evidence,
    panel: Panel,
    styles: dict[str, style.MethodStyle],
    row: Row,
    options: CurvesOptions,
    beside: bool,
) -> list[marks.Extent]:
    """Draw one panel: a line and one band per method, what the metric should be, and the optimum.

    Args:
        ax: where to.
        found: the evidence.
        panel: the methods; by default all of the task.
        styles: of methods.
        row: of the panel.
        options: of the figure.
        beside: whether intervals are drawn at the ends of the lines, beside the panel.

    Returns:
        What was drawn, which limits may cut.
    """
    if row.logarithmic:  # before the lines, whose markers stand on them as this axis has them
        style.logarithmic(ax.yaxis)
    theirs, methods = baseline_of(panel, row), methods_of(found, panel, row)
    if theirs is not None:
        methods = [method for method in methods if method != theirs]
        found.trials(panel.task, theirs)
        marks.draw_level(ax, 0.0, styles[theirs], len(methods), len(methods) + 1, found.legend(theirs).label)
    lines = {method: line for method in methods if (line := line_of(found, panel, method, row, options)) is not None}
    beside = beside or any(np.isnan(line.low).any() for line in lines.values())
    drawn = []
    for i, (method, line) in enumerate(lines.items()):
        its = styles[method]
        width, words = style.line_width(i, len(lines)), found.legend(method).label
        marks.draw_line(ax, line.x, line.middle, its, i, len(lines), linewidth=width, label=words)
        if not beside:
            ax.fill_between(line.x, line.low, line.high, color=its.colour, alpha=0.18, linewidth=0)
        drawn.append(marks.Extent(ax, line.x, *((line.middle,) * 2 if beside else (line.low, line.high)), its.colour))
    if beside and lines:
        ends = [(styles[method], line.low[-1], line.middle[-1], line.high[-1]) for method, line in lines.items()]
        drawn += marks.draw_ends(ax, ends)
    if row.nominal and lines:
        level = nominal_line(found, panel, next(iter(lines)), row, options)
        ax.plot(level.x, level.middle, color="0.25", linestyle=":", linewidth=1.2, label=style.NOMINAL, zorder=3)
    if row.optimum:
        draw_optimum(ax, (-1 if row.minimise else 1) * optimum_of(found, panel), row)
    drawn += draw_published(ax, [line for line in panel.published if line.metric == row.metric], row)
    if row.limits:
        ax.set_ylim(*row.limits)
    if row.metric == "best_f" and theirs is None and lines and all(np.ptp(line.middle) == 0 for line in lines.values()):
        marks.say(ax, UNMOVED, 0.65)
    return drawn


def draw_published(ax: Axes, lines: Sequence[Published], row: Row) -> list[marks.Extent]:
    """Draw the lines of others, and how well they could be read, on an axis of ours that goes on to where they end."""
    drawn = []
    for line, dashes in zip(lines, cycle(PUBLISHED_DASHES), strict=False):
        low, high = ax.get_ylim()
        x, values = np.array(line.evaluations), (-1 if row.minimise else 1) * np.array(line.values)
        ax.plot(
            x, values, color="0.3", linestyle=dashes, linewidth=1.2, label=style.legend_entry(line.legend), zorder=1.5
        )
        if line.error:
            ax.fill_between(
                x, values - line.error, values + line.error, color="0.3", alpha=0.12, linewidth=0, zorder=1.4
            )
        ax.set_ylim(min(low, values[-1]), max(high, values[-1]))
        drawn.append(marks.Extent(ax, x, values, values, "0.3"))
    return drawn


def draw_optimum(ax: Axes, optimum: float, row: Row) -> None:
    """Draw a dotted line at the optimum, where that is known."""
    if np.isfinite(optimum):
        ax.axhline(optimum, color="0.4", linestyle=":", linewidth=1, label="minimum" if row.minimise else "maximum")


def share_scales(axes: Sequence[Sequence[Axes]], rows: Sequence[Row], panels: Sequence[Panel]) -> None:
    """Give all panels of one task that draw the same metric the same limits.

    Args:
        axes: by row and column.
        rows: what is drawn in each.
        panels: the columns.
    """
    first: dict[tuple[str, str, str | None], Axes] = {}
    for j, panel in enumerate(panels):
        for ax, row in zip((line[j] for line in axes), rows, strict=True):
            drawn = (panel.task, row.metric, row.minus)
            if drawn in first:
                ax.sharey(first[drawn])
                if row.limits is None:
                    ax.autoscale(axis="y")
                    ax.autoscale_view(scalex=False)  # at once: whichever panel is looked at first, none is cut
            first.setdefault(drawn, ax)


def panels_of(found: Evidence, panels: tuple[Panel, ...]) -> list[Panel]:
    """Return the panels that have trials, with their methods; without panels, one a task.

    Raises:
        PlumblineError: no panel has trials.
    """
    asked = panels or tuple(Panel(task=task) for task in found.tasks)
    complete = []
    for panel in asked:
        methods = tuple(found.named(panel.methods, panel.task) if panel.methods else found.methods(panel.task))
        if methods:
            title = panel.title or found.title(panel.task)
            complete.append(panel.model_copy(update={"methods": methods, "title": title}))
    if not complete:
        raise PlumblineError(f"no trials of {', '.join(panel.task for panel in asked)}: nothing to draw")
    return complete


def arrange(rows: int, columns: int, across: int | None, share: bool = True) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its panels by row and column: one column lies down, and one row goes on below.

    The rows of a column `share` their horizontal axis where it is of the same things.
    """
    if rows > 1 and columns > 1:
        return style.panels(rows, columns, sharex="col" if share else False)
    figure, places = style.wrapped_panels(rows * columns, across, sharex=share and columns == 1)
    if rows * columns == 1:
        style.enlarge(figure)
    return figure, [[ax] for ax in places] if columns == 1 else [places]


@figures.register("curves", CurvesOptions)
def curves(evidence: Evidence, options: CurvesOptions) -> Figure:
    """Metrics against evaluations: one row per metric, one column per task, one line per method.

    Those of one task stand side by side.
    """
    options = options.drawable(evidence)
    columns = panels_of(evidence, options.panels)
    styles = style.method_styles(evidence.legends, evidence.methods())
    apart = len({row.against for row in options.rows}) > 1
    beside = max(len(methods_of(evidence, panel, row)) for panel in columns for row in options.rows) > MOST_BANDS
    figure, axes = arrange(len(options.rows), len(columns), options.across, share=not apart)
    drawn = []
    for j, panel in enumerate(columns):
        for i, row in enumerate(options.rows):
            drawn += draw_row(axes[i][j], evidence, panel, styles, row, options, beside)
            whole = row.against == "evaluations"
            axes[i][j].xaxis.set_major_locator(MaxNLocator(6, integer=whole, steps=[1, 2, 5, 10]))
            axes[i][j].margins(x=0.02)
            if not axes[i][j].has_data():
                axes[i][j].set_axis_off()
                marks.say(axes[i][j], marks.NO_VALUE if methods_of(evidence, panel, row) else marks.NOT_RUN)
    share_scales(axes, options.rows, columns)
    marks.mark_cuts(drawn)
    alone, wrapped = len(columns) == 1, len(options.rows) == 1
    for i, row in enumerate(options.rows):
        for j, panel in enumerate(columns):
            ax = axes[i][j]
            if j == 0 or (wrapped and style.begins_a_line(ax)):
                ax.set_ylabel(row.label)
            if i == 0 or alone:
                style.set_title(ax, panel.title)
            if i == len(options.rows) - 1 or alone or apart:
                counted = "cost" if panel.costs else "queries" if options.queries else "evaluations"
                ax.set_xlabel(counted if row.against == "evaluations" else row.against)
    style.add_legend(figure, last=style.NOMINAL, dashed=style.legend_entry(options.dashed))
    return figure

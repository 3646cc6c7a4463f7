"""Paired effects of methods against a baseline: a dot with its interval a task and method, and over all tasks."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.analysis.comparisons.effects import ALL, Effect, EffectOptions, effects, unit
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.errors import PlumblineError

SPREAD = 0.7
"""Share of the height of a line that its dots take."""


Dots = dict[str, tuple[str, style.MethodStyle]]
"""Words and style of each method."""


def dots_of(found: Evidence, methods: Sequence[str], arms: Sequence[str]) -> Dots:
    """Return words and style of each method; where there are arms, each has its words and its marker."""
    styles = style.method_styles(found.legends, found.methods())
    if arms:
        return {
            method: (arm, style.MethodStyle(styles[method].colour, marker, styles[method].dashed))
            for method, arm, marker in zip(methods, arms, cycle(style.MARKERS.values()), strict=False)
        }
    return {name: (found.legend(name).label, styles[name]) for name in methods}


def draw_panel(ax: Axes, some: Sequence[Effect], lines: Sequence[str], dots: Dots) -> list[marks.Extent]:
    """Draw the effects of each method, those on a task in the line of its words; return their intervals."""
    drawn = []
    steps = (np.arange(len(dots)) - (len(dots) - 1) / 2) * SPREAD / len(dots)
    for (method, (_, its)), step in zip(dots.items(), steps, strict=True):
        of = [one for one in some if one.method == method and np.isfinite([one.low, one.high]).all()]
        value, low, high = np.array([(one.value, one.low, one.high) for one in of]).reshape(-1, 3).T
        at = np.array([lines.index(one.task) + step for one in of])
        ax.errorbar(
            value,
            at,
            xerr=(value - low, high - value),
            color=its.colour,
            **its.points,
            linestyle="none",
            markersize=3.8,
            elinewidth=1.1,
        )
        ends = zip(at, low, high, strict=True)
        drawn += [marks.interval(ax, *end, colour=its.colour, sideways=True) for end in ends]
    if not drawn:
        marks.say(ax, "no method shares enough seeds\nwith the baseline here")
    ax.axvline(0, color="0.5", linestyle=":", linewidth=1)
    if ALL in lines:
        ax.axhline(lines.index(ALL) - 0.5, color="0.8", linewidth=0.8)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    return drawn


def draw_entries(ax: Axes, columns: Sequence[Dots]) -> None:
    """Draw what the legend shows of each method; an arm, whose colour is another one in each column, is grey."""
    colours = defaultdict[str, set[str]](set)
    for words, its in (dot for dots in columns for dot in dots.values()):
        colours[words].add(its.colour)
    for words, its in {words: its for dots in columns for words, its in dots.values()}.items():
        shown = its if len(colours[words]) == 1 else style.MethodStyle("0.35", its.marker, its.dashed)
        ax.plot([], [], color=shown.colour, **shown.points, linestyle="none", label=style.legend_entry(words))


def limits_of(some: Sequence[Effect]) -> tuple[float, float] | None:
    """Return limits of an axis that all dots are within, and most intervals: of few seeds some are endless."""
    ends = np.abs([end for one in some for end in (one.low, one.high) if np.isfinite(end)])
    if not len(ends):
        return None
    reach = max(1.1 * max(abs(one.value) for one in some if np.isfinite(one.value)), 1.5 * np.quantile(ends, 0.8))
    return -reach, reach


@figures.register("paired-effects", EffectOptions)
def paired_effects(evidence: Evidence, options: EffectOptions) -> Figure:
    """Mean paired difference from a baseline, in standard deviations over seeds, with a 95% interval; a column each.

    Raises:
        PlumblineError: no task has trials of a method and of its baseline.
        NotInReferenceError: there are reference results, and a value is not among them.
    """
    some = {name: list(effects(evidence, options.baselines, name)) for name in options.metrics}
    there = {one.task for of in some.values() for one in of}
    lines = [task for task in (*evidence.tasks, ALL) if task in there]
    if not lines:
        raise PlumblineError("no trials of a method and its baseline on one task: nothing to draw")
    columns = {name: dots_of(evidence, others, options.arms) for name, others in options.baselines.items()}
    most = max(len(dots) for dots in columns.values())
    figure, axes = style.panels(len(some), len(columns), sharey=True, sharex="row")
    width, _ = style.PANEL
    drawn: list[marks.Extent] = []
    figure.set_size_inches(width * len(columns) + 1.2, len(some) * (0.7 + len(lines) * max(0.3, 0.075 * most)))
    for row, (name, of) in zip(axes, some.items(), strict=True):
        for ax, (baseline, dots) in zip(row, columns.items(), strict=True):
            mine = [one for one in of if one.baseline == baseline]
            drawn += draw_panel(ax, mine, lines, dots)
            theirs = evidence.legend(baseline).label
            spread = unit(evidence, options.baselines, name, theirs)
            ax.set_xlabel(f"difference in {options.metrics[name]} from {theirs}\n({spread})")
            ax.set_title(f"compared with {theirs}")
        row[0].set_yticks(range(len(lines)), [one if one == ALL else evidence.title(one) for one in lines])
        row[0].set_ylabel("task")
        if limits := limits_of(of):
            row[0].set_xlim(*limits)
    marks.mark_cuts(drawn)
    draw_entries(axes[0][0], list(columns.values()))
    style.add_legend(figure, columns=4)
    return figure

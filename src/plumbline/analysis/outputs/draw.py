"""An experiment's figure and table, from its evidence and its YAML."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from plumbline.analysis.evidence.evidence import Evidence, evidence, refuse_foreign
from plumbline.analysis.outputs.kinds import OutputOptions, figures, tables
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.files import atomic
from plumbline.core.options import parse
from plumbline.metrics.registry import columns_of
from plumbline.registry.registry import Entry
from plumbline.store.provenance import read_provenance
from plumbline.store.records import read_table
from plumbline.study.experiments import Output
from plumbline.study.resolved import ResolvedExperiment


def budget_label(rows: pd.DataFrame) -> str:
    """Return the evaluations of a trial in words, initial design first; empty where there are no trials."""
    if rows.empty:
        return ""
    groups = rows.assign(first=rows["iteration"] == 0).groupby(["task", "method", "seed"], observed=True)["first"]
    counts = groups.agg(["sum", "size"]).drop_duplicates()
    texts = sorted({f"{first} + {size - first}" for first, size in counts.itertuples(index=False, name=None)})
    return f"{' or '.join(texts)} evaluations"


def seeds_label(rows: pd.DataFrame) -> str:
    """Return the number of seeds of each task and method, in words; empty where there are no trials."""
    if rows.empty:
        return ""
    counts = sorted(rows.groupby(["task", "method"], observed=True)["seed"].nunique().unique())
    return f"{' or '.join(str(count) for count in counts)} seed{'s' * (counts != [1])}"


def evidence_of(
    resolved: ResolvedExperiment,
    columns: Sequence[str],
    records: Path | None = None,
    snapshots: Path | None = None,
    illustration: Path | None = None,
) -> Evidence:
    """Return the evidence of an experiment in the files given, with its legends, titles and parameters.

    Raises:
        PlumblineError: the experiment has trials, and no file of their records was given, or one of other trials.
    """
    if records is None and resolved.trials:
        raise PlumblineError(f"{resolved.name} rests on trials: give its collected records (--records)")
    found = evidence(records, columns, snapshots, illustration)
    if records is not None:
        refuse_foreign(found, resolved.evaluations, resolved.name, records)
    if illustration is not None:
        refuse_another_illustration(resolved.name, illustration)
    return replace(
        found,
        legends=resolved.legends,
        titles=resolved.titles,
        task_parameters=resolved.parameters,
        spaces=resolved.study.spaces,
        methods_in_use={label: (one.ref.name, one.ref.options) for label, one in resolved.entries.methods.items()},
        budgets={task: one.budget.model_dump(mode="json") for task, one in resolved.entries.tasks.items()},
    )


def refuse_another_illustration(experiment: str, path: Path) -> None:
    """Raise PlumblineError where an illustration says that it is another experiment's."""
    name = read_provenance(read_table(path).schema.metadata, path).get("experiment", experiment)
    if name != experiment:
        raise PlumblineError(f"{path} is the illustration of {name}, not of {experiment}")


def output_of(resolved: ResolvedExperiment, kind: str) -> tuple[Entry, OutputOptions]:
    """Return the registered builder of the figure or the table of an experiment, and its options.

    Raises:
        PlumblineError: it has none, or its options are wrong.
    """
    output: Output | None = getattr(resolved.experiment, kind)
    if output is None:
        raise PlumblineError(f"{resolved.name} has no {kind}")
    entry = (figures if kind == "figure" else tables)[output.kind]
    options = parse(entry.options, output.options, f"{kind} of {resolved.name}")
    assert isinstance(options, OutputOptions)
    return entry, options


def columns_for(resolved: ResolvedExperiment, kind: str) -> tuple[str, ...]:
    """Return the columns of the records that the figure or the table of an experiment reads.

    Raises:
        PlumblineError: it has none, its options are wrong, or they name a metric that does not exist.
    """
    _, options = output_of(resolved, kind)
    return tuple(dict.fromkeys([*options.reads, *columns_of(options.names().metrics)]))


def formats() -> list[str]:
    """Return the endings that figures may have."""
    from matplotlib.backend_bases import FigureCanvasBase

    return sorted(FigureCanvasBase.get_supported_filetypes())


def check_formats(outputs: Sequence[Path]) -> None:
    """Raise PlumblineError for an ending that no figure can have."""
    for path in outputs:
        if path.suffix.removeprefix(".") not in formats():
            raise unknown(f"format of {path}", path.suffix.removeprefix("."), formats())


def draw(resolved: ResolvedExperiment, found: Evidence, outputs: Sequence[Path]) -> None:
    """Draw the figure of an experiment into each of `outputs`.

    Raises:
        PlumblineError: the experiment has no figure, its options are wrong, a file has an unknown ending, or there is
            nothing to draw: no trial that ended well and no illustration, or no trial with a value.
    """
    import matplotlib.pyplot as plt

    from plumbline.analysis.outputs import style

    entry, options = output_of(resolved, "figure")
    check_formats(outputs)
    if found.rows.empty and found.illustration.empty:
        raise PlumblineError(
            f"{resolved.name} has no trial that ended well and no illustration: nothing to draw; "
            "see `plumbline failures`"
        )
    with style.house_style():
        shown = {
            name: legend.model_copy(update={"label": style.legend_entry(legend.label)})
            for name, legend in found.legends.items()
        }
        there = set(plt.get_fignums())
        try:
            figure = entry.build(replace(found, legends=shown), options)
        except BaseException:
            for begun in set(plt.get_fignums()) - there:
                plt.close(begun)
            raise
        if not any(np.isfinite(ax.dataLim.get_points()).any() for ax in figure.axes):
            plt.close(figure)
            raise PlumblineError(
                f"{resolved.name}: nothing to draw: none of its trials has a value of "
                f"{', '.join(options.names().metrics) or 'what the figure shows'}"
            )
        illustrated = found.rows.empty  # one draw of all that is random in it
        footer = style.Footer(
            options.shown(found),
            resolved.preset,
            "1 seed" if illustrated else seeds_label(found.rows),
            "illustration" if illustrated else budget_label(found.rows),
            resolved.data,
            len(found.failures),
        )
        style.add_footer(figure, footer)
        try:
            for path in outputs:
                with atomic(path) as part:
                    ending = path.suffix.removeprefix(".")
                    figure.savefig(part, format=ending, metadata=style.UNDATED.get(ending))
                figure.set_layout_engine("none")  # found once, which takes as long as to draw, and the same in all
        finally:
            plt.close(figure)


def tabulate(resolved: ResolvedExperiment, found: Evidence) -> pd.DataFrame:
    """Return the table of an experiment; raise PlumblineError where it has none."""
    entry, options = output_of(resolved, "table")
    return entry.build(found, options)

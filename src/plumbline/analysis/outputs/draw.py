"""An experiment's figure and table, from its evidence and its YAML."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from plumbline.analysis.evidence.evidence import Evidence, evidence
from plumbline.analysis.outputs.kinds import OutputOptions, figures, tables
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.files import atomic
from plumbline.core.options import parse
from plumbline.metrics.registry import columns_of
from plumbline.registry.registry import Entry
from plumbline.study.experiments import Output
from plumbline.study.plan import Plan

STANDS_IN = "stands in for"
"""What `data_label` says of data in the place of others."""


def data_label(plan: Plan, name: str) -> str:
    """Return the datasets that an experiment reads, stand-ins named as such; empty if it reads none."""
    real = {stand_in: dataset for dataset, stand_in in plan.stand_ins.items()}

    def label(name: str) -> str:
        generated = "generated, " if name in plan.generated else ""
        return f"{name} ({generated}{STANDS_IN} {real[name]})" if name in real else name

    return ", ".join(map(label, plan.inputs(name)))


def budget_label(rows: pd.DataFrame) -> str:
    """Return the evaluations of a trial in words, initial design first; empty where there are no trials."""
    if rows.empty:
        return ""
    groups = rows.assign(first=rows["iteration"] == 0).groupby(["task", "method", "seed"], observed=True)["first"]
    counts = groups.agg(["sum", "size"]).drop_duplicates()
    texts = sorted({f"{first} + {size - first}" for first, size in counts.itertuples(index=False, name=None)})
    return f"{' or '.join(texts)} evaluations"


def seeds_label(rows: pd.DataFrame) -> str:
    """Return how many seeds each task and method has, in words; empty where there are no trials."""
    if rows.empty:
        return ""
    counts = sorted(rows.groupby(["task", "method"], observed=True)["seed"].nunique().unique())
    return f"{' or '.join(str(count) for count in counts)} seed{'s' * (counts != [1])}"


def evidence_of(
    plan: Plan,
    name: str,
    columns: Sequence[str],
    records: Path | None = None,
    snapshots: Path | None = None,
    illustration: Path | None = None,
) -> Evidence:
    """Return the evidence of experiment `name` in the files given, with its looks, titles and parameters.

    Raises:
        PlumblineError: the experiment has trials, and no file of their records was given.
    """
    if records is None and plan.experiment(name).grid:
        raise PlumblineError(f"{name} rests on trials: give its collected records (--records)")
    found = evidence(
        records,
        columns,
        snapshots,
        illustration,
        legends=plan.legends(name),
        titles=plan.task_titles(name),
        task_parameters=plan.task_parameters(name),
        spaces=plan.study_of(name).spaces,
    )
    return replace(
        found,
        methods_in_use={label: (one.ref.name, one.ref.options) for label, one in plan.library.methods.items()},
        budgets={task: one.budget.model_dump(mode="json") for task, one in plan.library.tasks.items()},
    )


def output_of(plan: Plan, name: str, kind: str) -> tuple[Entry, OutputOptions]:
    """Return what builds the figure or the table of an experiment, and its options.

    Raises:
        PlumblineError: it has none, or its options are wrong.
    """
    output: Output | None = getattr(plan.experiment(name), kind)
    if output is None:
        raise PlumblineError(f"{name} has no {kind}")
    entry = (figures if kind == "figure" else tables)[output.kind]
    options = parse(entry.options, output.options, f"{kind} of {name}")
    assert isinstance(options, OutputOptions)
    return entry, options


def columns_for(plan: Plan, name: str, kind: str) -> tuple[str, ...]:
    """Return the columns of the records that the figure or the table of an experiment reads.

    Raises:
        PlumblineError: it has none, its options are wrong, or they name a metric that there is not.
    """
    _, options = output_of(plan, name, kind)
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


def draw(plan: Plan, name: str, found: Evidence, outputs: Sequence[Path]) -> None:
    """Draw the figure of experiment `name` into each of `outputs`.

    Raises:
        PlumblineError: the experiment has no figure, its options are wrong, or a file has an unknown ending.
    """
    import matplotlib.pyplot as plt

    from plumbline.analysis.outputs import style

    entry, options = output_of(plan, name, "figure")
    check_formats(outputs)
    if found.rows.empty and found.illustration.empty:
        raise PlumblineError(
            f"{name} has no trial that ended well and no illustration: nothing to draw; see `plumbline failures`"
        )
    with style.house_style():
        figure = entry.build(found, options)
        illustrated = found.rows.empty  # one draw of all that is random in it
        footer = style.Footer(
            plan.config.preset,
            "1 seed" if illustrated else seeds_label(found.rows),
            "illustration" if illustrated else budget_label(found.rows),
            data_label(plan, name),
            len(found.failures),
        )
        style.add_footer(figure, footer)
        try:
            for path in outputs:
                with atomic(path) as part:
                    # Without a date two drawings of the same records are the same file.
                    metadata = {"Date": None} if path.suffix == ".svg" else {}
                    figure.savefig(part, format=path.suffix.removeprefix("."), metadata=metadata)
        finally:
            plt.close(figure)


def tabulate(plan: Plan, name: str, found: Evidence) -> pd.DataFrame:
    """Return the table of experiment `name`; raise PlumblineError where it has none."""
    entry, options = output_of(plan, name, "table")
    return entry.build(found, options)

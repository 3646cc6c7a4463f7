"""Curves that readers explore on the report: the numbers its script draws, and the chart that it draws them in."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.evidence.evidence import Evidence, evidence
from plumbline.analysis.figures.curve_lines import evaluations
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.draw import output_of
from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.reference import PAIR
from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_csv
from plumbline.metrics.registry import by_round, columns_of, find_metric
from plumbline.store.records import read_table
from plumbline.store.reference_files import ExperimentFiles
from plumbline.study.legends import Legend
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.study.resolved import ResolvedExperiment

MOST_POINTS = 60
"""Rounds of a run on the page, at most: the first, the last, and others at equal distances."""

MOST_VALUES = 6_000
"""Points of all seeds of a method on a task, about: with more than a hundred seeds each has fewer rounds."""

FEWEST_POINTS = 12
"""Rounds of a run that are left, however many seeds there are."""

DIGITS = 4
"""Significant digits of a number on the page."""

Explored = dict[str, Any]
"""What the script draws of an experiment.

`methods` have legends, `tasks` titles, `metrics` words; `runs` have one row per task and method: `evaluations`,
and by seed `seconds` since the initial design, or one row for all seeds, and `values` by metric. Where the
reference results have only means, `means` and `errors` by metric stand in place of values.
Points without a value are null.
"""


def metrics_of(resolved: ResolvedExperiment) -> tuple[str, ...]:
    """Return the metrics of an experiment's figure and table."""
    kinds = [kind for kind in ("figure", "table") if getattr(resolved.experiment, kind) is not None]
    return tuple(dict.fromkeys(metric for kind in kinds for metric in output_of(resolved, kind)[1].names().metrics))


def explored_records(resolved: ResolvedExperiment, records: Path) -> Explored | None:
    """Return the curves of all seeds from an experiment's records; None where it has none.

    Args:
        resolved: the experiment.
        records: its collected records.
    """
    metrics = metrics_of(resolved)
    if not metrics or not resolved.trials:
        return None
    found = evidence(records, (*columns_of(metrics), "round_seconds"))
    runs = [run for task, method in found.pairs if (run := _run(found, task, method, metrics)) is not None]
    return explored(runs, resolved.legends, resolved.titles) if runs else None


def _run(found: Evidence, task: str, method: str, metrics: Sequence[str]) -> dict[str, Any] | None:
    """Return the runs of one method on one task; None without any value."""
    rows = found.trials(task, method)
    tables = {metric: by_round(rows, metric) for metric in metrics}
    seeds = sorted(rows["seed"].unique())
    rounds = thinned(sorted(rows["iteration"].unique()), len(seeds))
    seconds = by_round(rows, "round_seconds")
    taken = seconds.reindex(index=seeds, columns=range(max(rounds) + 1)).fillna(0.0).cumsum(axis=1)[rounds]
    values = {
        metric: compact(table.reindex(index=seeds, columns=rounds).to_numpy())
        for metric, table in tables.items()
        if table.size
    }
    if not values:
        return None
    return {
        "task": task,
        "method": method,
        "seeds": [int(seed) for seed in seeds],
        "evaluations": evaluations(rows, pd.Index(rounds), queries=False).astype(int).tolist(),
        "seconds": compact(taken.to_numpy()),
        "values": values,
    }


def explored_reference(
    files: ExperimentFiles, costs: Mapping[tuple[str, str], float], entries: MethodsAndTasks, titles: Titles
) -> Explored | None:
    """Return the reference curves of an experiment: of single seeds where those are kept, else means; None without any.

    Args:
        files: of the experiment among the reference results.
        costs: median seconds of a round, by task and method.
        entries: with the budgets of tasks and the legends of methods; what is no longer an entry goes by its name.
        titles: of tasks.
    """
    if not files.curves.is_file():
        return None
    table = _curves(files.curves)
    singles = dict(list(_curves(files.rounds).groupby(PAIR, sort=False))) if files.rounds.is_file() else {}
    runs = []
    for pair, rows in table.groupby(PAIR, sort=False):
        task, method = map(str, pair)
        seeds_of_pair = singles[pair]["seed"].nunique() if pair in singles else 1
        rounds = thinned(sorted(rows["iteration"].unique()), seeds_of_pair)
        budget = entries.tasks[task].budget if task in entries.tasks else None
        first, q = (budget.initial.size, budget.q) if budget else (0, 1)
        values = _values_of_seeds(singles[pair], rounds) if pair in singles else _means(rows, rounds)
        runs.append(
            {
                "task": task,
                "method": method,
                "evaluations": [first + q * int(one) for one in rounds],
                **values,
                "seconds": compact(np.array([rounds]) * costs.get((task, method), np.nan)),
            }
        )
    methods, tasks = (dict.fromkeys(run[name] for run in runs) for name in ("method", "task"))
    legends = {name: entries.methods[name].legend for name in methods if name in entries.methods}
    return explored(runs, legends, {name: titles.task(name) for name in tasks})


def _curves(path: Path) -> pd.DataFrame:
    return read_table(path).to_pandas().astype({"task": str, "method": str, "metric": str})


def _means(rows: pd.DataFrame, rounds: list[int]) -> dict[str, Any]:
    """Return means with standard errors of one method on one task, by metric; its seeds are one line."""
    by_metric = {metric: some.set_index("iteration").reindex(rounds) for metric, some in rows.groupby("metric")}
    return {
        "seeds": [0],
        **{
            name: {metric: compact(some[[column]].T.to_numpy())[0] for metric, some in by_metric.items()}
            for name, column in (("means", "mean"), ("errors", "standard_error"))
        },
    }


def _values_of_seeds(rows: pd.DataFrame, rounds: list[int]) -> dict[str, Any]:
    """Return values of single seeds by metric; a round without a value has no row."""
    seeds = sorted(rows["seed"].unique())
    by_metric = {
        metric: some.pivot(index="seed", columns="iteration", values="value").reindex(index=seeds, columns=rounds)
        for metric, some in rows.groupby("metric", sort=False)
    }
    return {
        "seeds": [int(seed) for seed in seeds],
        "values": {metric: compact(some.to_numpy()) for metric, some in by_metric.items()},
    }


def explored(runs: Sequence[dict[str, Any]], legends: Mapping[str, Legend], titles: Mapping[str, str]) -> Explored:
    """Return runs with the words and looks of what they speak of."""
    methods = list(dict.fromkeys(run["method"] for run in runs))
    styles = style.method_styles(legends, methods)
    metrics = dict.fromkeys(metric for run in runs for metric in run.get("values") or run["means"])
    return {
        "methods": {
            name: {
                "label": legends[name].label if name in legends else name,
                "colour": styles[name].colour,
                "dashed": styles[name].dashed,
            }
            for name in methods
        },
        "tasks": {task: titles.get(task, task) for task in dict.fromkeys(run["task"] for run in runs)},
        "metrics": {name: _words(name) for name in metrics},
        "runs": list(runs),
    }


def _words(metric: str) -> dict[str, str]:
    """Return what is said of a metric; of one that there is no longer, its name."""
    label = metric.rpartition(".")[2].replace("_", " ")
    try:
        found = find_metric(metric)
    except PlumblineError:
        return {"label": label, "summary": "", "better": ""}
    return {"label": label, "summary": found.summary, "better": found.better}


def thinned(rounds: Iterable[int], seeds: int = 1) -> list[int]:
    """Return some of the rounds at equal distances, the first and the last among them.

    Those are `MOST_POINTS`, or fewer where there are many `seeds`, and all where there are no more.
    """
    rounds = [int(one) for one in rounds]
    most = min(MOST_POINTS, max(FEWEST_POINTS, MOST_VALUES // max(seeds, 1)))
    if len(rounds) <= most:
        return rounds
    return [rounds[place] for place in np.linspace(0, len(rounds) - 1, most).round().astype(int)]


def compact(values: NDArray[np.float64]) -> list[list[float | None]]:
    """Return a matrix in few digits, null where there is no number."""
    return [[float(f"{one:.{DIGITS}g}") if np.isfinite(one) else None for one in row] for row in values]


def reference_costs(path: Path) -> dict[tuple[str, str], float]:
    """Return the median seconds of a round by task and method; empty where there is no such file."""
    if not path.is_file():
        return {}
    table = read_csv(path, ["task", "method"], ["seconds_a_round"])
    return {(str(task), str(method)): float(seconds) for task, method, seconds in table.itertuples(index=False)}


@cache
def line_chart() -> str:
    """Return the Vega-Lite chart of all views as JSON: a line with its band per method, and thin lines of single seeds.

    The script fills in its data sets `lines` and `seeds`, the titles of its axes, and whether they are logarithmic.
    """
    import altair as alt

    x = alt.X("x:Q", title=None, scale=alt.Scale(zero=False, nice=False))
    colour = alt.Color("colour:N", scale=None)
    dash = alt.condition("datum.dashed", alt.value([5, 3]), alt.value([1, 0]))
    lines = alt.Chart(alt.NamedData("lines")).encode(x=x, color=colour, detail="label:N")
    y = alt.Y("middle:Q", title=None, scale=alt.Scale(zero=False))
    shown = [alt.Tooltip(f"{name}:N", title=title) for name, title in TOOLTIP.items()]
    single = alt.Chart(alt.NamedData("seeds")).mark_line(strokeWidth=0.7, opacity=0.45)
    layers = alt.layer(
        lines.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=None), y2="high:Q"),
        single.encode(x=x, y=y, color=colour, detail="run:N", tooltip=[alt.Tooltip("run:N", title="run")]),
        lines.mark_line(strokeWidth=2.2).encode(y=y, strokeDash=dash),
        lines.mark_point(size=70, opacity=0, filled=True).encode(y=y, tooltip=shown),
    )
    chart = layers.properties(width="container", height=380, background="transparent").configure(
        font="system-ui, sans-serif",
        axis=alt.AxisConfig(labelFontSize=13, titleFontSize=14, titleFontWeight="normal", grid=True, gridOpacity=0.4),
        view=alt.ViewConfig(stroke=None),
    )
    return json.dumps({**chart.to_dict(), "autosize": {"type": "fit-x", "contains": "padding"}})


TOOLTIP = {"label": "method", "at": "at", "said": "value"}
"""Fields of a point that hovering over it shows, with their titles."""


@cache
def chart_library() -> str:
    """Return Vega-Embed with Vega and Vega-Lite as one script that needs no network."""
    import altair as alt
    import vl_convert

    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version))

"""Runs of an edition of the atlas, with the columns that runs of other experiments have."""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import pandas as pd

from plumbline.analysis.atlas.edition import PAIR, check_edition, read_cells, read_rounds, read_tasks
from plumbline.analysis.evidence.runs import COLUMNS
from plumbline.core.errors import unknown
from plumbline.metrics.summaries import summaries

MEASURED: dict[str, dict[str, Callable[[pd.DataFrame], pd.Series]]] = {
    "value": {
        "regret": lambda rounds: rounds["optimum"] - rounds["best"],
        "best_f": lambda rounds: rounds["best"],
        "incumbent_f": lambda rounds: rounds["incumbent"],
    },
    "penalised": {
        "penalty_regret": lambda rounds: -rounds["best"],
        "incumbent_regret": lambda rounds: -rounds["incumbent"],
    },
    "hypervolume": {"hypervolume": lambda rounds: rounds["best"]},
}
"""Metrics of the rounds of a task, by its `measure`; the first one with values is meant where none is named."""


def _query_coverage(rounds: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose observation lay in the 50% set, the first level of the atlas' trials."""
    covered = rounds["covered_50"].where(rounds["round"] > 0)
    return covered.groupby([rounds["method"], rounds["seed"]], observed=True).transform(
        lambda run: run.expanding().mean()
    )


OF_ALL: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "query_coverage": _query_coverage,
    **{name: itemgetter(name) for name in ("nll", "fit_seconds", "acquire_seconds", "evaluate_seconds")},
}
"""Metrics of the rounds of any task."""


PREFIX = "ATLAS-"
"""Of the names of experiments, before the name of the track whose tasks they have."""


def experiment_of(track: str) -> str:
    """Return the name of the experiment that has the tasks of a track."""
    return f"{PREFIX}{track}"


def track_of(experiment: str) -> str:
    """Return the track whose tasks an experiment has."""
    return experiment.removeprefix(PREFIX)


def index(folder: Path) -> pd.DataFrame:
    """Return `task`, `method` and `experiment` of all runs.

    Raises:
        PlumblineError: no atlas there, or one of another edition.
    """
    check_edition(folder)
    experiments = read_tasks(folder).set_index("task")["track"].map(experiment_of)
    cells = read_cells(folder).query("seeds > 0")
    return cells[PAIR].assign(experiment=cells["task"].map(experiments)).reset_index(drop=True)


def runs(folder: Path, experiment: str, metric: str = "") -> pd.DataFrame:
    """Return the runs of an experiment of the atlas (`plumbline.analysis.evidence.runs.COLUMNS`).

    Args:
        folder: of an edition.
        experiment: its name.
        metric: the only one; where empty that of each task's measure, which is regret where the optimum is known.

    Raises:
        PlumblineError: a metric that no task of the experiment has.
    """
    tasks = read_tasks(folder).set_index("task")
    frames, known = [], dict.fromkeys(OF_ALL)
    for task in index(folder).query("experiment == @experiment")["task"].unique():
        rounds, measured = read_rounds(folder, [task]), MEASURED[str(tasks.loc[task, "measure"])]
        known |= dict.fromkeys(measured)
        asked = [metric] if metric else list(measured)
        values = {name: of(rounds) for name, of in (measured | OF_ALL).items() if name in asked}
        for name in [name for name in values if values[name].notna().any()][:1]:
            found = runs_of_metric(rounds.assign(value=values[name]))
            initial = int(tasks.loc[task, "initial"])
            frames.append(found.assign(task=task, metric=name, evaluations=found["of"] + initial))
    if not frames:
        raise unknown(f"metric of {experiment}", metric, known)
    return pd.concat(frames, ignore_index=True)[COLUMNS]


def runs_of_metric(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of each method on one task, by the column `value`; those of a method without values are absent.

    Args:
        rounds: of a query each.
    """
    frames = []
    for method, rows in rounds.dropna(subset="value").groupby("method", observed=True):
        by_round = rows.pivot(index="seed", columns="round", values="value")
        frames.append(summaries(by_round).assign(of=rounds["round"].max(), method=str(method)).reset_index())
    return pd.concat(frames, ignore_index=True)

"""Summaries of runs, one row per trial and metric: all that verdicts need, and small enough to commit."""

from collections.abc import Iterable

import pandas as pd

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.core.errors import PlumblineError
from plumbline.metrics.summaries import SUMMARIES, shorten, summarise
from plumbline.study.claims import split_metric

COLUMNS = ["task", "method", "metric", "seed", *SUMMARIES, "rounds", "of", "evaluations"]
"""Columns of a table of runs: summaries of a trial, rounds with a value, all rounds, and evaluations."""

RunName = tuple[str, str, str]
"""A task, a method and a metric."""


def runs_of(evidence: Evidence, wanted: Iterable[RunName]) -> pd.DataFrame:
    """Return the runs of these tasks and methods.

    Raises:
        PlumblineError: there are no trials of one.
    """
    frames = []
    for task, method, metric in dict.fromkeys(wanted):
        name, share = split_metric(metric)
        rows = shorten(evidence.trials(task, method), share)
        seeds = rows.groupby("seed", observed=True)
        found = summarise(rows, name).assign(of=seeds["iteration"].max(), evaluations=seeds["evaluation"].max() + 1)
        frames.append(found.rename_axis("seed").reset_index().assign(task=task, method=method, metric=metric))
    return pd.concat(frames, ignore_index=True)[COLUMNS] if frames else pd.DataFrame(columns=COLUMNS)


class Runs:
    """A table of runs, indexed by task, method and metric."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.tables = {
            (str(task), str(method), str(metric)): rows.set_index("seed")
            for (task, method, metric), rows in table.groupby(["task", "method", "metric"], sort=False, observed=True)
        }

    @property
    def trials(self) -> set[tuple[str, str]]:
        """The (task, method) of the runs."""
        return {(task, method) for task, method, _ in self.tables}

    def __call__(self, task: str, method: str, metric: str) -> pd.DataFrame:
        """Return the runs of one method on one task by one metric, one row per seed.

        Raises:
            PlumblineError: there are none.
        """
        if (task, method, metric) not in self.tables:
            known = ", ".join(sorted({f"{of} x {by}" for of, by, kept in self.tables if kept == metric}))
            raise PlumblineError(
                f"no {metric} of {method!r} on {task!r} among the runs, but of: {known or 'none'}; if they were kept "
                "before the claim was changed, keep them again: plumbline reference"
            )
        return self.tables[task, method, metric]

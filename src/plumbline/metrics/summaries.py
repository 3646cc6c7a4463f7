"""Summaries of a run: one number of its last round, or of all rounds, a seed."""

import pandas as pd

from plumbline.metrics.registry import by_round

SUMMARIES = ("last", "mean", "median")
"""Of the rounds after the initial design; the last one may be the initial design where there are no rounds."""


ROUNDING = 1e-9
"""Error of a share of a number of rounds, as .29 of 100."""


def shorten(rows: pd.DataFrame, share: float) -> pd.DataFrame:
    """Return the rows of the first rounds, a share of them, rounded down; the initial design stays."""
    return rows[rows["iteration"] <= share * rows["iteration"].max() + ROUNDING]


def summarise(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return a metric's value after the last round, and the mean and the median over the rounds, of each run.

    Args:
        rows: of one method on one task.
        metric: its name.

    Returns:
        One row per seed with the columns of `SUMMARIES`, and `rounds` that have a value; NaN where a run has none. The
        last round is that of the longest run.
    """
    return summaries(by_round(rows, metric))


def summaries(table: pd.DataFrame) -> pd.DataFrame:
    """Return the summaries of a metric, as `summarise` does.

    Args:
        table: the metric at the end of each round, one row per seed; column 0 is the initial design.
    """
    rounds = table.drop(columns=0, errors="ignore")
    last = table.iloc[:, -1] if table.shape[1] else pd.Series(index=table.index, dtype=float)
    return pd.DataFrame(
        {"last": last, "mean": rounds.mean(axis=1), "median": rounds.median(axis=1), "rounds": rounds.count(axis=1)}
    )

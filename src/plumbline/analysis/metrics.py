"""Metrics of a trial, round by round: columns of the records, and what is derived from them."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from plumbline.errors import unknown
from plumbline.records import RECORD, SECONDS

COVERAGE_LEVEL = 0
"""Which of an experiment's levels the coverage metrics are about: the first."""


def _of_level(column: pd.Series) -> pd.Series:
    return column.map(lambda values: values[COVERAGE_LEVEL] if values is not None and len(values) else np.nan)


def _queries(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["iteration"] > 0]


def cumulative_regret(rows: pd.DataFrame) -> pd.Series:
    """Return the sum of regrets of all queries so far; the initial design does not count."""
    return _queries(rows).groupby("key")["instant_regret"].cumsum()


def query_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose observation lay in the model's set."""
    covered = _of_level(_queries(rows)["covered"])
    return covered.groupby(rows["key"]).transform(lambda column: column.expanding().mean())


def holdout_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of holdout observations in the model's sets."""
    return _of_level(rows["holdout_coverage"])


def nominal_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the level that coverage should have."""
    return 1 - _of_level(rows["alpha"])


def mean_nominal_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the mean level of the sets of all queries so far, which their coverage should have."""
    return nominal_coverage(_queries(rows)).groupby(rows["key"]).transform(lambda column: column.expanding().mean())


def query_miscoverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose observation lay outside of the model's set."""
    return 1 - query_coverage(rows)


def f_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose noise-free value lay in the model's set."""
    covered = _of_level(_queries(rows)["f_covered"])
    return covered.groupby(rows["key"]).transform(lambda column: column.expanding().mean())


def f_miscoverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose noise-free value lay outside of the model's set."""
    return 1 - f_coverage(rows)


def miscoverage_over_bound(rows: pd.DataFrame) -> pd.Series:
    """Return how far the share of missed observations lies above the bound of LOCBO's Lemma 1; it should not."""
    return query_miscoverage(rows) - metric(rows, "notes.bound_y")


def f_miscoverage_over_bound(rows: pd.DataFrame) -> pd.Series:
    """Return how far the share of missed noise-free values lies above the bound of LOCBO's Lemma 2."""
    return f_miscoverage(rows) - metric(rows, "notes.bound_f")


def holdout_width(rows: pd.DataFrame) -> pd.Series:
    """Return the average length of the model's sets over the holdout."""
    return _of_level(rows["holdout_width"])


def optimum_width(rows: pd.DataFrame) -> pd.Series:
    """Return the length of the model's set at the optimum."""
    return _of_level(rows["optimum_width"])


def relative_optimum_width(rows: pd.DataFrame) -> pd.Series:
    """Return the length of the model's set at the optimum, in average lengths over the holdout."""
    return optimum_width(rows) / holdout_width(rows)


def set_width(rows: pd.DataFrame) -> pd.Series:
    """Return the length of the model's set at the query."""
    return _of_level(rows["width"])


def query_coverage_gap(rows: pd.DataFrame) -> pd.Series:
    """Return how far the coverage of queries so far lies above the level that it should have."""
    return query_coverage(rows) - mean_nominal_coverage(rows)


def query_coverage_error(rows: pd.DataFrame) -> pd.Series:
    """Return the size of the gap of query coverage."""
    return query_coverage_gap(rows).abs()


def holdout_coverage_gap(rows: pd.DataFrame) -> pd.Series:
    """Return how far holdout coverage lies above the level that it should have."""
    return holdout_coverage(rows) - nominal_coverage(rows)


def holdout_coverage_error(rows: pd.DataFrame) -> pd.Series:
    """Return the size of the gap of holdout coverage."""
    return holdout_coverage_gap(rows).abs()


DERIVED: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    metric.__name__: metric
    for metric in (
        cumulative_regret,
        query_coverage,
        holdout_coverage,
        nominal_coverage,
        mean_nominal_coverage,
        set_width,
        query_coverage_gap,
        query_coverage_error,
        holdout_coverage_gap,
        holdout_coverage_error,
        query_miscoverage,
        f_coverage,
        f_miscoverage,
        miscoverage_over_bound,
        f_miscoverage_over_bound,
        holdout_width,
        optimum_width,
        relative_optimum_width,
    )
}
"""Metrics that are not a column of the records."""

COLUMNS = [field.name for field in RECORD if str(field.type) == "double"]
"""Metrics that are."""


NOTE = "notes."
"""`notes.effective_sample_size` is the metric of a number that a method noted."""


def metric(rows: pd.DataFrame, name: str) -> pd.Series:
    """Return a metric of every row, NaN where it is not defined.

    Raises:
        PlumblineError: unknown metric.
    """
    if name in DERIVED:
        return DERIVED[name](rows).reindex(rows.index)
    if name in COLUMNS:
        return rows[name]
    if name in SECONDS:
        return rows[name].where(rows["iteration"] > 0)  # the initial design is nobody's round
    if name.startswith(NOTE):
        note = name.removeprefix(NOTE)
        return rows["notes"].map(lambda notes: (notes or {}).get(note, np.nan)).astype(float)
    raise unknown("metric", name, [*DERIVED, *COLUMNS, *SECONDS])


def by_round(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a metric at the end of each round.

    Args:
        rows: all rows of one method on one problem.
        name: a metric; running values are taken at the last row of a round, others averaged over its rows.

    Returns:
        One row a seed, one column an iteration; rounds without a value are left out.
    """
    values = metric(rows, name)
    how = "mean" if name in PER_QUERY else "last"
    table = values.groupby([rows["seed"], rows["iteration"]]).agg(how).unstack()
    return table.dropna(axis="columns", how="all")


PER_QUERY = ("nll", "crps", "pit", "predicted_sd", "predicted_mean", "instant_regret", "set_width")
"""Metrics of a single evaluation."""

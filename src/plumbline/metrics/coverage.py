"""Metrics of coverage and width of the sets that methods forecast."""

import numpy as np
import pandas as pd

from plumbline.metrics.frames import entries
from plumbline.metrics.registry import enter, metric, queries, running_mean

COVERAGE_LEVEL = 0
"""Which of an experiment's levels the metrics of sets are about: the first."""


def _of_level(rows: pd.DataFrame, name: str) -> pd.Series:
    return pd.Series(entries(rows[name])[:, COVERAGE_LEVEL], index=rows.index)


@enter("running", "covered", streamed=True)
def query_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose observation lay in the model's set."""
    return running_mean(_of_level(queries(rows), "covered"), rows)


@enter("running", "query_coverage")
def query_miscoverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose observation lay outside of the model's set."""
    return 1 - metric(rows, "query_coverage")


@enter("running", "f_covered", streamed=True)
def f_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose noise-free value lay in the model's set."""
    return running_mean(_of_level(queries(rows), "f_covered"), rows)


@enter("running", "f_coverage")
def f_miscoverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose noise-free value lay outside of the model's set."""
    return 1 - metric(rows, "f_coverage")


@enter("round", "alpha")
def nominal_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the level that coverage should have."""
    return 1 - _of_level(rows, "alpha")


@enter("running", "alpha")
def mean_nominal_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the mean level of the sets of all queries so far, which their coverage should have."""
    asked = queries(rows)
    return running_mean(metric(asked, "nominal_coverage"), asked)


@enter("running", "query_coverage", "mean_nominal_coverage")
def query_coverage_gap(rows: pd.DataFrame) -> pd.Series:
    """Return how far the coverage of queries so far lies above the level that it should have."""
    return metric(rows, "query_coverage") - metric(rows, "mean_nominal_coverage")


@enter("running", "query_coverage_gap", better="lower")
def query_coverage_error(rows: pd.DataFrame) -> pd.Series:
    """Return the size of the gap of query coverage."""
    return metric(rows, "query_coverage_gap").abs()


@enter("running", "query_miscoverage", "notes", better="lower")
def miscoverage_over_bound(rows: pd.DataFrame) -> pd.Series:
    """Return how far the share of missed observations lies above the bound of LOCBO's Lemma 1; it should not."""
    return metric(rows, "query_miscoverage") - metric(rows, "notes.bound_y")


@enter("running", "f_miscoverage", "notes", better="lower")
def f_miscoverage_over_bound(rows: pd.DataFrame) -> pd.Series:
    """Return how far the share of missed noise-free values lies above the bound of LOCBO's Lemma 2."""
    return metric(rows, "f_miscoverage") - metric(rows, "notes.bound_f")


@enter("query", "width", streamed=True)
def set_width(rows: pd.DataFrame) -> pd.Series:
    """Return the length of the model's set at the query."""
    return _of_level(rows, "width")


@enter("running", "width", better="lower")
def vacuous_sets(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose set was the whole line: it covers whatever comes."""
    widths = _of_level(queries(rows), "width")
    return running_mean(widths.eq(np.inf).astype(float).where(widths.notna()), rows)


@enter("round", "holdout_coverage", streamed=True)
def holdout_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of holdout observations in the model's sets."""
    return _of_level(rows, "holdout_coverage")


@enter("round", "holdout_coverage", "nominal_coverage")
def holdout_coverage_gap(rows: pd.DataFrame) -> pd.Series:
    """Return how far holdout coverage lies above the level that it should have."""
    return metric(rows, "holdout_coverage") - metric(rows, "nominal_coverage")


@enter("round", "holdout_coverage_gap", better="lower")
def holdout_coverage_error(rows: pd.DataFrame) -> pd.Series:
    """Return the size of the gap of holdout coverage."""
    return metric(rows, "holdout_coverage_gap").abs()


@enter("running", "end_coverage", streamed=True)
def end_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of observations in the model's sets where climbs of searches ended, averaged over the rounds."""
    return running_mean(_of_level(queries(rows), "end_coverage"), rows)


@enter("running", "end_coverage", "mean_nominal_coverage")
def end_coverage_gap(rows: pd.DataFrame) -> pd.Series:
    """Return how far coverage where climbs of the search ended lies above the level that it should have, so far."""
    return metric(rows, "end_coverage") - metric(rows, "mean_nominal_coverage")


@enter("round", "holdout_width", streamed=True)
def holdout_width(rows: pd.DataFrame) -> pd.Series:
    """Return the average length of the model's sets over the holdout."""
    return _of_level(rows, "holdout_width")


@enter("round", "optimum_width", streamed=True)
def optimum_width(rows: pd.DataFrame) -> pd.Series:
    """Return the average length of the model's sets at the optima."""
    return _of_level(rows, "optimum_width")


@enter("round", "optimum_width", "holdout_width")
def relative_optimum_width(rows: pd.DataFrame) -> pd.Series:
    """Return the average length of the model's sets at the optima, in average lengths over the holdout."""
    return metric(rows, "optimum_width") / metric(rows, "holdout_width")


@enter("round", "near_width", streamed=True)
def near_width(rows: pd.DataFrame) -> pd.Series:
    """Return the median length of the model's sets near observations, in credible intervals of the same level."""
    return _of_level(rows, "near_width")


@enter("round", "far_width", streamed=True)
def far_width(rows: pd.DataFrame) -> pd.Series:
    """Return the median length of the model's sets far from observations, in credible intervals of the same level."""
    return _of_level(rows, "far_width")

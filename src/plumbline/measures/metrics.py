"""The metrics of trials: one registry of what figures, tables, claims, reference results and MLflow speak of.

A metric computes itself from rows of one method on one task: trials told apart by their seed, each in the order of its
evaluations. It reads the columns of the records that it names and no others, and none of them loads torch.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.calibration.diagnostics import LEVELS
from plumbline.errors import unknown
from plumbline.measures.frames import entries, lookup
from plumbline.measures.hypervolume import hypervolume_so_far
from plumbline.records import SECONDS

Array = NDArray[np.float64]
Kind = Literal["query", "running", "round"]

COVERAGE_LEVEL = 0
"""Which of an experiment's levels the metrics of sets are about: the first."""

EQUALITY_TOLERANCE = 1e-4
"""How far from zero an equality may be and hold, as in the CEC competitions: no search hits zero exactly."""

LEAST_REGRET = 1e-12
"""What is no more than rounding errors, where a logarithm is taken."""


@dataclass(frozen=True)
class Metric:
    """What is known of a metric.

    Attributes:
        name: what YAML and tables call it.
        summary: one line.
        columns: of the records, that it reads besides those that say which evaluation a row is.
        kind: `query`, of a single evaluation, averaged over a round; `running`, of all so far, the last of a round,
            which stands until there is another; `round`, of a whole round.
        compute: rows to a value a row, NaN where it is not defined.
        streamed: whether MLflow gets it.
    """

    name: str
    summary: str
    columns: tuple[str, ...]
    kind: Kind
    compute: Callable[[pd.DataFrame], Array | pd.Series]
    streamed: bool = False


METRICS: dict[str, Metric] = {}
"""Every metric by name, notes excepted."""

NOTE = "notes."
"""`notes.effective_sample_size` is the metric of a number that a method noted; a problem's are `notes.problem.*`."""


def _enter(
    kind: Kind, *reads: str, streamed: bool = False
) -> Callable[[Callable[[pd.DataFrame], Array | pd.Series]], Callable[[pd.DataFrame], Array | pd.Series]]:
    """Register the decorated function; `reads` names columns, or other metrics whose columns it needs."""

    def enter(compute: Callable[[pd.DataFrame], Array | pd.Series]) -> Callable[[pd.DataFrame], Array | pd.Series]:
        nested = (METRICS[name].columns if name in METRICS else (name,) for name in reads)
        columns = tuple(dict.fromkeys(column for names in nested for column in names))
        summary = (compute.__doc__ or "").strip().splitlines()[0].removeprefix("Return ").rstrip(".")
        name = compute.__name__
        METRICS[name] = Metric(name, summary, columns, kind, compute, streamed)
        return compute

    return enter


def find_metric(name: str) -> Metric:
    """Return a metric by name; raise PlumblineError with the nearest name if there is none."""
    if name in METRICS:
        return METRICS[name]
    note = name.removeprefix(NOTE)
    if name.startswith(NOTE) and note:
        summary = f"{note}, as it was noted"
        return Metric(name, summary, ("notes",), "round", lambda rows: lookup(rows["notes"], note), streamed=True)
    raise unknown("metric", name, METRICS)


def check_metric(name: str) -> None:
    """Raise PlumblineError with the nearest name if there is no such metric."""
    find_metric(name)


def columns_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of the records that metrics read; raise PlumblineError for one that there is not."""
    return tuple(dict.fromkeys(column for name in names for column in find_metric(name).columns))


def metric(rows: pd.DataFrame, name: str) -> pd.Series:
    """Return a metric of every row, NaN where it is not defined.

    Args:
        rows: of one method on one task, each trial in the order of its evaluations.
        name: of the metric.

    Raises:
        PlumblineError: unknown metric.
    """
    found = find_metric(name).compute(rows)
    if isinstance(found, pd.Series):
        return found.reindex(rows.index)
    return pd.Series(found, index=rows.index)


def by_round(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a metric at the end of each round.

    Returns:
        One row a seed, one column an iteration; rounds without a value are left out. NaN where single trials lack one.
    """
    kind = find_metric(name).kind
    groups = metric(rows, name).groupby([rows["seed"], rows["iteration"]])
    table = (groups.mean() if kind == "query" else groups.last()).unstack()
    table = table.dropna(axis="columns", how="all")
    return table.ffill(axis="columns") if kind == "running" else table


def _of_trials(rows: pd.DataFrame, running: Callable[..., Array], *values: Array) -> Array:
    """Return `running` of the values of each trial, put back in place."""
    found = np.full(len(rows), np.nan)
    for places in rows.groupby("seed", sort=False).indices.values():
        found[places] = running(*(value[places] for value in values))
    return found


# Outcomes: what is to be great, and what must be so.


def _outcomes(rows: pd.DataFrame, column: str) -> tuple[Array, Array, Array]:
    """Return objectives (`n x k`), inequalities (to be at least zero) and equalities (to be zero) of `y` or `f`."""
    roles = np.array(rows["roles"].iloc[0] if len(rows) else ["objective"])
    values = entries(rows[column])
    if values.shape[1] < len(roles):  # nothing at all was recorded
        values = np.full((len(rows), len(roles)), np.nan)
    return tuple(values[:, roles == role] for role in ("objective", "at_least_zero", "zero"))  # type: ignore[return-value]


def _objective(rows: pd.DataFrame, column: str) -> Array:
    """Return the only objective; NaN where there are several."""
    objectives, _, _ = _outcomes(rows, column)
    return objectives[:, 0] if objectives.shape[1] == 1 else np.full(len(rows), np.nan)


def _feasible(rows: pd.DataFrame, column: str) -> NDArray[np.bool_]:
    """Return where all constraints hold; not where one of them was not observed."""
    _, inequalities, equalities = _outcomes(rows, column)
    return np.all(inequalities >= 0, axis=1) & np.all(np.abs(equalities) <= EQUALITY_TOLERANCE, axis=1)


def _feasible_objective(rows: pd.DataFrame, column: str) -> Array:
    return np.where(_feasible(rows, column), _objective(rows, column), np.nan)


def _optimum(rows: pd.DataFrame) -> Array:
    return rows["optimum"].to_numpy(dtype=np.float64)


def _constrained(rows: pd.DataFrame) -> bool:
    return len(rows) > 0 and any(role != "objective" for role in rows["roles"].iloc[0])


def incumbents(y: Array, f: Array) -> Array:
    """Return the `f` of the greatest `y` so far of one trial, of the first of equals; NaN before any."""
    before = np.fmax.accumulate(np.concatenate([[-np.inf], y[:-1]]))
    place = np.maximum.accumulate(np.where(y > before, np.arange(len(y)), -1))
    return np.where(place >= 0, f[place], np.nan)


@_enter("running", "y", "roles", streamed=True)
def best_y(rows: pd.DataFrame) -> Array:
    """Return the best observation so far, of those whose observed constraints hold."""
    return _of_trials(rows, np.fmax.accumulate, _feasible_objective(rows, "y"))


@_enter("running", "f", "roles", streamed=True)
def best_f(rows: pd.DataFrame) -> Array:
    """Return the best noise-free value so far; with constraints, of feasible points, NaN before the first of them."""
    return _of_trials(rows, np.fmax.accumulate, _feasible_objective(rows, "f"))


@_enter("running", "best_f")
def best_query(rows: pd.DataFrame) -> pd.Series:
    """Return the best noise-free value of the queries so far: what was searched for, and not known to begin with."""
    return metric(_queries(rows), "best_f")


@_enter("running", "y", "f", "roles", streamed=True)
def incumbent_f(rows: pd.DataFrame) -> Array:
    """Return the noise-free value of the best observation so far."""
    return _of_trials(rows, incumbents, _feasible_objective(rows, "y"), _objective(rows, "f"))


def _violation(rows: pd.DataFrame) -> Array:
    _, inequalities, equalities = _outcomes(rows, "f")
    return np.maximum(-inequalities, 0.0).sum(axis=1) + np.abs(equalities).sum(axis=1)


@_enter("query", "f", "roles", "optimum")
def instant_regret(rows: pd.DataFrame) -> Array:
    """Return the optimum minus the noise-free value of this evaluation.

    With constraints, where positive, plus violation: an infeasible value may exceed the optimum, and pays for it.
    """
    gap = _optimum(rows) - _objective(rows, "f")
    return np.maximum(gap, 0.0) + _violation(rows) if _constrained(rows) else gap


@_enter("running", "best_f", "optimum", streamed=True)
def regret(rows: pd.DataFrame) -> Array:
    """Return the optimum minus the best noise-free value so far."""
    return _optimum(rows) - np.asarray(best_f(rows))


@_enter("running", "regret")
def queries_to_optimum(rows: pd.DataFrame) -> pd.Series:
    """Return how many queries so far it took to find the optimum: all of them where it is not found yet.

    Zero where the initial design has it. Of tables: elsewhere no query is the optimum, and all count.
    """
    gap = metric(rows, "regret")
    looked_for = ~(gap.groupby(rows["seed"]).shift() <= 0) & (rows["iteration"] > 0)
    return looked_for.astype(float).groupby(rows["seed"]).cumsum().where(~np.isnan(_optimum(rows)))


@_enter("round", "optimum", "notes")
def inference_regret(rows: pd.DataFrame) -> Array:
    """Return the optimum minus the noise-free value of the point that the method holds to be it, where that was noted.

    That is after the last round, by `diagnostics.recommend`.
    """
    return _optimum(rows) - lookup(rows["notes"], "recommended_f")


@_enter("running", "y", "instant_regret", streamed=True)
def incumbent_regret(rows: pd.DataFrame) -> Array:
    """Return the regret of the best observation so far, as `instant_regret` has it."""
    best = _feasible_objective(rows, "y")
    return _of_trials(rows, incumbents, best, np.asarray(instant_regret(rows)))


@_enter("running", "instant_regret")
def cumulative_regret(rows: pd.DataFrame) -> pd.Series:
    """Return the sum of regrets of all queries so far; the initial design does not count."""
    queries = _queries(rows)
    return metric(queries, "instant_regret").groupby(queries["seed"]).cumsum()


@_enter("running", "cumulative_regret")
def cumulative_regret_area(rows: pd.DataFrame) -> pd.Series:
    """Return the area under the curve of cumulative regret so far, over the number of queries: its mean."""
    return _running_mean(metric(rows, "cumulative_regret"), rows)


def regrets_of_rest(values: Array, greater: Array, equal: Array, after: Array, best: Array) -> Array:
    """Return the sum so far of how far the best row that is left lies above the one asked for, in one trial.

    Rows with one value are a group, which is known by how many rows are `greater`; when all its `equal` members are
    taken, the best that is left has the value `after` it. `best` is that of the first group.
    """
    found = np.full(len(values), np.nan)
    if np.isnan(greater).any():  # nothing was noted: the problem is no table
        return found
    taken, sizes = dict[float, int](), dict[float, tuple[float, float]]()
    total, group, left = 0.0, 0.0, best[0] if len(best) else np.nan
    for i, value in enumerate(values):
        total += left - value
        found[i] = total
        taken[greater[i]] = taken.get(greater[i], 0) + 1
        sizes[greater[i]] = equal[i], after[i]
        while group in sizes and taken[group] >= sizes[group][0]:
            size, left = sizes[group]
            group += size
    return found


@_enter("running", "f", "roles", "optimum", "notes")
def ranking_regret(rows: pd.DataFrame) -> pd.Series:
    """Return the sum of regrets of all queries so far, each against the best row of a table that is left (CBO, C.3).

    For initial designs without any of the best rows.
    """
    queries = _queries(rows)
    notes = (lookup(queries["notes"], f"problem.{name}") for name in ("greater", "equal", "next"))
    values = _of_trials(queries, regrets_of_rest, _objective(queries, "f"), *notes, _optimum(queries))
    return pd.Series(values, index=queries.index)


@_enter("running", "ranking_regret")
def ranking_regret_area(rows: pd.DataFrame) -> pd.Series:
    """Return the area under the curve of ranking regret so far, over the number of queries: its mean."""
    return _running_mean(metric(rows, "ranking_regret"), rows)


@_enter("query", "f", "roles", streamed=True)
def violation(rows: pd.DataFrame) -> Array:
    """Return by how much constraints fail: shortfalls and absolute equalities added up; NaN without constraints."""
    return _violation(rows) if _constrained(rows) else np.full(len(rows), np.nan)


@_enter("query", "f", "roles", streamed=True)
def feasible(rows: pd.DataFrame) -> Array:
    """Return 1 where all constraints hold (equalities to within 1e-4), else 0; NaN without constraints."""
    return np.asarray(_feasible(rows, "f"), dtype=np.float64) if _constrained(rows) else np.full(len(rows), np.nan)


@_enter("running", "instant_regret", streamed=True)
def penalty_regret(rows: pd.DataFrame) -> Array:
    """Return the least `instant_regret` so far; NaN without constraints."""
    if not _constrained(rows):
        return np.full(len(rows), np.nan)
    return _of_trials(rows, np.fmin.accumulate, np.asarray(instant_regret(rows)))


@_enter("running", "penalty_regret")
def log_penalty_regret(rows: pd.DataFrame) -> Array:
    """Return the decimal logarithm of `penalty_regret`, which counts as 1e-12 where it is less."""
    return np.log10(np.maximum(np.asarray(penalty_regret(rows)), LEAST_REGRET))


def of_next_round(iterations: Array, values: Array) -> Array:
    """Return, for each evaluation of one trial, what was noted in the round after its own; NaN in the last."""
    after = np.searchsorted(iterations, iterations, side="right")
    return np.append(values, np.nan)[after]


def regrets_of_rows(rows: Array, regrets: Array) -> Array:
    """Return the regrets of some rows of one trial, by number; NaN where no row is named."""
    named = ~np.isnan(rows)
    return np.where(named, regrets[np.where(named, rows, 0).astype(int)], np.nan)


@_enter("running", "instant_regret", "notes")
def recommended_regret(rows: pd.DataFrame) -> Array:
    """Return the `instant_regret` of the point that is recommended after a round, as the method noted it in the next.

    It counts what the method would answer, not what it happened to ask for: a point of which it saw one outcome alone
    is judged by all of them only once it is recommended. There is none of the last round.
    """
    notes = _of_trials(
        rows, of_next_round, rows["iteration"].to_numpy(dtype=np.float64), lookup(rows["notes"], "recommended")
    )
    return _of_trials(rows, regrets_of_rows, notes, np.asarray(instant_regret(rows)))


@_enter("running", "recommended_regret")
def log_recommended_regret(rows: pd.DataFrame) -> Array:
    """Return the decimal logarithm of `recommended_regret`, which counts as 1e-12 where it is less."""
    return np.log10(np.maximum(np.asarray(recommended_regret(rows)), LEAST_REGRET))


@_enter("running", "f", "roles", "ref_point", streamed=True)
def hypervolume(rows: pd.DataFrame) -> Array:
    """Return the volume that noise-free feasible values so far dominate above the reference point."""
    objectives, _, _ = _outcomes(rows, "f")
    ref_points = entries(rows["ref_point"])
    if ref_points.shape[1] != objectives.shape[1] or np.isnan(ref_points).any():
        return np.full(len(rows), np.nan)
    values = np.where(_feasible(rows, "f")[:, None], objectives, np.nan)
    return _of_trials(rows, lambda F, points: hypervolume_so_far(F, points[0]), values, ref_points)


# Forecasts.


def _column(name: str) -> Callable[[pd.DataFrame], Array]:
    return lambda rows: rows[name].to_numpy(dtype=np.float64)


for _name, _summary, _streamed in (
    ("predicted_mean", "mean that was forecast of the observation", False),
    ("predicted_sd", "standard deviation that was forecast of the observation", False),
    ("pit", "forecast probability of at most the observation", False),
    ("nll", "negative log density that was forecast at the observation", True),
    ("crps", "continuous ranked probability score of the forecast", True),
):
    METRICS[_name] = Metric(_name, _summary, (_name,), "query", _column(_name), streamed=_streamed)


def calibration_scores(pit: Array) -> Array:
    """Return the calibration score of all forecasts so far of one trial; NaN where there is none of this evaluation."""
    there = ~np.isnan(pit)
    counts = np.cumsum(pit[there, None] <= LEVELS, axis=0)
    levels = counts / np.arange(1, len(counts) + 1)[:, None]
    found = np.full(len(pit), np.nan)
    found[there] = np.sum((LEVELS - levels) ** 2, axis=1)
    return found


@_enter("running", "pit", streamed=True)
def calibration_score(rows: pd.DataFrame) -> Array:
    """Return the calibration score of all queries so far (CAL, section 5.1)."""
    return _of_trials(rows, calibration_scores, rows["pit"].to_numpy(dtype=np.float64))


# Sets of the first level.


def _queries(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["iteration"] > 0]


def _of_level(rows: pd.DataFrame, name: str) -> pd.Series:
    return pd.Series(entries(rows[name])[:, COVERAGE_LEVEL], index=rows.index)


def _running_mean(values: pd.Series, rows: pd.DataFrame) -> pd.Series:
    return values.groupby(rows["seed"]).transform(lambda column: column.expanding().mean())


@_enter("running", "covered", streamed=True)
def query_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose observation lay in the model's set."""
    return _running_mean(_of_level(_queries(rows), "covered"), rows)


@_enter("running", "query_coverage")
def query_miscoverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose observation lay outside of the model's set."""
    return 1 - metric(rows, "query_coverage")


@_enter("running", "f_covered", streamed=True)
def f_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose noise-free value lay in the model's set."""
    return _running_mean(_of_level(_queries(rows), "f_covered"), rows)


@_enter("running", "f_coverage")
def f_miscoverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose noise-free value lay outside of the model's set."""
    return 1 - metric(rows, "f_coverage")


@_enter("round", "alpha")
def nominal_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the level that coverage should have."""
    return 1 - _of_level(rows, "alpha")


@_enter("running", "alpha")
def mean_nominal_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the mean level of the sets of all queries so far, which their coverage should have."""
    queries = _queries(rows)
    return _running_mean(metric(queries, "nominal_coverage"), queries)


@_enter("running", "query_coverage", "mean_nominal_coverage")
def query_coverage_gap(rows: pd.DataFrame) -> pd.Series:
    """Return how far the coverage of queries so far lies above the level that it should have."""
    return metric(rows, "query_coverage") - metric(rows, "mean_nominal_coverage")


@_enter("running", "query_coverage_gap")
def query_coverage_error(rows: pd.DataFrame) -> pd.Series:
    """Return the size of the gap of query coverage."""
    return metric(rows, "query_coverage_gap").abs()


@_enter("running", "query_miscoverage", "notes")
def miscoverage_over_bound(rows: pd.DataFrame) -> pd.Series:
    """Return how far the share of missed observations lies above the bound of LOCBO's Lemma 1; it should not."""
    return metric(rows, "query_miscoverage") - metric(rows, "notes.bound_y")


@_enter("running", "f_miscoverage", "notes")
def f_miscoverage_over_bound(rows: pd.DataFrame) -> pd.Series:
    """Return how far the share of missed noise-free values lies above the bound of LOCBO's Lemma 2."""
    return metric(rows, "f_miscoverage") - metric(rows, "notes.bound_f")


@_enter("query", "width", streamed=True)
def set_width(rows: pd.DataFrame) -> pd.Series:
    """Return the length of the model's set at the query."""
    return _of_level(rows, "width")


@_enter("running", "width")
def vacuous_sets(rows: pd.DataFrame) -> pd.Series:
    """Return the share of queries so far whose set was the whole line: it covers whatever comes."""
    widths = _of_level(_queries(rows), "width")
    return _running_mean(widths.eq(np.inf).astype(float).where(widths.notna()), rows)


@_enter("round", "holdout_coverage", streamed=True)
def holdout_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of holdout observations in the model's sets."""
    return _of_level(rows, "holdout_coverage")


@_enter("round", "holdout_coverage", "nominal_coverage")
def holdout_coverage_gap(rows: pd.DataFrame) -> pd.Series:
    """Return how far holdout coverage lies above the level that it should have."""
    return metric(rows, "holdout_coverage") - metric(rows, "nominal_coverage")


@_enter("round", "holdout_coverage_gap")
def holdout_coverage_error(rows: pd.DataFrame) -> pd.Series:
    """Return the size of the gap of holdout coverage."""
    return metric(rows, "holdout_coverage_gap").abs()


@_enter("running", "end_coverage", streamed=True)
def end_coverage(rows: pd.DataFrame) -> pd.Series:
    """Return the share of observations in the model's sets where climbs of searches ended, averaged over the rounds."""
    return _running_mean(_of_level(_queries(rows), "end_coverage"), rows)


@_enter("running", "end_coverage", "mean_nominal_coverage")
def end_coverage_gap(rows: pd.DataFrame) -> pd.Series:
    """Return how far coverage where climbs of the search ended lies above the level that it should have, so far."""
    return metric(rows, "end_coverage") - metric(rows, "mean_nominal_coverage")


@_enter("round", "holdout_width", streamed=True)
def holdout_width(rows: pd.DataFrame) -> pd.Series:
    """Return the average length of the model's sets over the holdout."""
    return _of_level(rows, "holdout_width")


@_enter("round", "optimum_width", streamed=True)
def optimum_width(rows: pd.DataFrame) -> pd.Series:
    """Return the average length of the model's sets at the optima."""
    return _of_level(rows, "optimum_width")


@_enter("round", "optimum_width", "holdout_width")
def relative_optimum_width(rows: pd.DataFrame) -> pd.Series:
    """Return the average length of the model's sets at the optima, in average lengths over the holdout."""
    return metric(rows, "optimum_width") / metric(rows, "holdout_width")


@_enter("round", "near_width", streamed=True)
def near_width(rows: pd.DataFrame) -> pd.Series:
    """Return the median length of the model's sets near observations, in credible intervals of the same level."""
    return _of_level(rows, "near_width")


@_enter("round", "far_width", streamed=True)
def far_width(rows: pd.DataFrame) -> pd.Series:
    """Return the median length of the model's sets far from observations, in credible intervals of the same level."""
    return _of_level(rows, "far_width")


# Costs.


def _seconds(name: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda rows: rows[name].where(rows["iteration"] > 0)  # the initial design is nobody's round


for _name in SECONDS:
    _part = _name.removesuffix("_seconds")
    METRICS[_name] = Metric(_name, f"seconds of a round: {_part}", (_name,), "round", _seconds(_name), streamed=True)

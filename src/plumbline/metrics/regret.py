"""Metrics of regret, feasibility and hypervolume."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.metrics.frames import entries, lookup
from plumbline.metrics.hypervolume import hypervolume_so_far
from plumbline.metrics.registry import Array, enter, metric, of_trials, queries, running_mean

EQUALITY_TOLERANCE = 1e-4
"""How far from zero an equality may be and hold, as in the CEC competitions: no search hits zero exactly."""

LEAST_REGRET = 1e-12
"""What is no more than rounding errors, where a logarithm is taken."""


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


@enter("running", "y", "roles", streamed=True, better="higher")
def best_y(rows: pd.DataFrame) -> Array:
    """Return the best observation so far, of those whose observed constraints hold."""
    return of_trials(rows, np.fmax.accumulate, _feasible_objective(rows, "y"))


@enter("running", "f", "roles", streamed=True, better="higher")
def best_f(rows: pd.DataFrame) -> Array:
    """Return the best noise-free value so far; with constraints, of feasible points, NaN before the first of them."""
    return of_trials(rows, np.fmax.accumulate, _feasible_objective(rows, "f"))


@enter("running", "best_f", better="higher")
def best_query(rows: pd.DataFrame) -> pd.Series:
    """Return the best noise-free value of the queries so far: what was searched for, and not known to begin with."""
    return metric(queries(rows), "best_f")


@enter("running", "y", "f", "roles", streamed=True, better="higher")
def incumbent_f(rows: pd.DataFrame) -> Array:
    """Return the noise-free value of the best observation so far."""
    return of_trials(rows, incumbents, _feasible_objective(rows, "y"), _objective(rows, "f"))


def _violation(rows: pd.DataFrame) -> Array:
    _, inequalities, equalities = _outcomes(rows, "f")
    return np.maximum(-inequalities, 0.0).sum(axis=1) + np.abs(equalities).sum(axis=1)


@enter("query", "f", "roles", "optimum", better="lower", best=0.0)
def instant_regret(rows: pd.DataFrame) -> Array:
    """Return the optimum minus the noise-free value of this evaluation.

    With constraints, where positive, plus violation: an infeasible value may exceed the optimum, and pays for it.
    """
    gap = _optimum(rows) - _objective(rows, "f")
    return np.maximum(gap, 0.0) + _violation(rows) if _constrained(rows) else gap


@enter("running", "best_f", "optimum", streamed=True, better="lower", best=0.0)
def regret(rows: pd.DataFrame) -> Array:
    """Return the optimum minus the best noise-free value so far."""
    return _optimum(rows) - np.asarray(best_f(rows))


@enter("running", "regret", better="lower")
def queries_to_optimum(rows: pd.DataFrame) -> pd.Series:
    """Return how many queries so far it took to find the optimum: all of them where it is not found yet.

    Zero where the initial design has it. Of tables: elsewhere no query is the optimum, and all count.
    """
    gap = metric(rows, "regret")
    looked_for = ~(gap.groupby(rows["seed"]).shift() <= 0) & (rows["iteration"] > 0)
    return looked_for.astype(float).groupby(rows["seed"]).cumsum().where(~np.isnan(_optimum(rows)))


@enter("round", "optimum", "notes", better="lower", best=0.0)
def inference_regret(rows: pd.DataFrame) -> Array:
    """Return the optimum minus the noise-free value of the point that the method holds to be it, where that was noted.

    That is after the last round, by `diagnostics.recommend`.
    """
    return _optimum(rows) - lookup(rows["notes"], "recommended_f")


@enter("running", "y", "instant_regret", streamed=True, better="lower", best=0.0)
def incumbent_regret(rows: pd.DataFrame) -> Array:
    """Return the noise-free regret of the point with the best observation so far."""
    best = _feasible_objective(rows, "y")
    return of_trials(rows, incumbents, best, np.asarray(instant_regret(rows)))


@enter("running", "instant_regret", better="lower", best=0.0)
def cumulative_regret(rows: pd.DataFrame) -> pd.Series:
    """Return the sum of regrets of all queries so far; the initial design does not count."""
    asked = queries(rows)
    return metric(asked, "instant_regret").groupby(asked["seed"]).cumsum()


@enter("running", "cumulative_regret", better="lower", best=0.0)
def cumulative_regret_area(rows: pd.DataFrame) -> pd.Series:
    """Return the area under the curve of cumulative regret so far, over the number of queries: its mean."""
    return running_mean(metric(rows, "cumulative_regret"), rows)


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


@enter("running", "f", "roles", "optimum", "notes", better="lower", best=0.0)
def ranking_regret(rows: pd.DataFrame) -> pd.Series:
    """Return the sum of regrets of all queries so far, each against the best row of a table that is left (CBO, C.3).

    For initial designs without any of the best rows.
    """
    asked = queries(rows)
    notes = (lookup(asked["notes"], f"problem.{name}") for name in ("greater", "equal", "next"))
    values = of_trials(asked, regrets_of_rest, _objective(asked, "f"), *notes, _optimum(asked))
    return pd.Series(values, index=asked.index)


@enter("running", "ranking_regret", better="lower", best=0.0)
def ranking_regret_area(rows: pd.DataFrame) -> pd.Series:
    """Return the area under the curve of ranking regret so far, over the number of queries: its mean."""
    return running_mean(metric(rows, "ranking_regret"), rows)


@enter("query", "f", "roles", streamed=True, better="lower")
def violation(rows: pd.DataFrame) -> Array:
    """Return by how much constraints fail: shortfalls and absolute equalities added up; NaN without constraints."""
    return _violation(rows) if _constrained(rows) else np.full(len(rows), np.nan)


@enter("query", "f", "roles", streamed=True, better="higher")
def feasible(rows: pd.DataFrame) -> Array:
    """Return 1 where all constraints hold (equalities to within 1e-4), else 0; NaN without constraints."""
    return np.asarray(_feasible(rows, "f"), dtype=np.float64) if _constrained(rows) else np.full(len(rows), np.nan)


@enter("running", "instant_regret", streamed=True, better="lower", best=0.0)
def penalty_regret(rows: pd.DataFrame) -> Array:
    """Return the least `instant_regret` so far; NaN without constraints."""
    if not _constrained(rows):
        return np.full(len(rows), np.nan)
    return of_trials(rows, np.fmin.accumulate, np.asarray(instant_regret(rows)))


@enter("running", "penalty_regret", better="lower")
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


@enter("running", "instant_regret", "notes", better="lower", best=0.0)
def recommended_regret(rows: pd.DataFrame) -> Array:
    """Return the `instant_regret` of the point that is recommended after a round, as the method noted it in the next.

    It counts what the method would answer, not what it happened to ask for: a point of which it saw one outcome alone
    is judged by all of them only once it is recommended. There is none of the last round.
    """
    notes = of_trials(
        rows, of_next_round, rows["iteration"].to_numpy(dtype=np.float64), lookup(rows["notes"], "recommended")
    )
    return of_trials(rows, regrets_of_rows, notes, np.asarray(instant_regret(rows)))


@enter("running", "recommended_regret", better="lower")
def log_recommended_regret(rows: pd.DataFrame) -> Array:
    """Return the decimal logarithm of `recommended_regret`, which counts as 1e-12 where it is less."""
    return np.log10(np.maximum(np.asarray(recommended_regret(rows)), LEAST_REGRET))


@enter("running", "f", "roles", "ref_point", streamed=True, better="higher")
def hypervolume(rows: pd.DataFrame) -> Array:
    """Return the volume that noise-free feasible values so far dominate above the reference point."""
    objectives, _, _ = _outcomes(rows, "f")
    ref_points = entries(rows["ref_point"])
    if ref_points.shape[1] != objectives.shape[1] or np.isnan(ref_points).any():
        return np.full(len(rows), np.nan)
    values = np.where(_feasible(rows, "f")[:, None], objectives, np.nan)
    return of_trials(rows, lambda F, points: hypervolume_so_far(F, points[0]), values, ref_points)

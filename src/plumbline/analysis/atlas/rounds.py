"""What the atlas keeps of a cell, a method on a task: one row per seed and round."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.metrics.frames import entries, lookup
from plumbline.metrics.registry import columns_of, metric

Array = NDArray[np.float64]

LEVELS = {"covered_50": 0.5, "covered_80": 0.2, "covered_95": 0.05}
"""Columns of coverage, with the miscoverage level of their sets."""

WIDTH_OF = 0.2
"""Miscoverage level of the sets whose width is kept."""

DIGITS = 3
"""Significant digits of forecasts' scores, widths and seconds, which are not known to more."""

SECONDS_KEPT = ("fit_seconds", "acquire_seconds", "evaluate_seconds")
"""Columns of seconds."""

COLUMNS = (
    *("seed", "round", "optimum", "best", "incumbent", "recommended"),
    *(*LEVELS, "pit", "nll", "width_80"),
    *SECONDS_KEPT,
)
"""Columns of a cell; `results/atlas/README.md` has their meaning."""

RECORDED = (
    *columns_of(("best_f", "incumbent_f", "penalty_regret", "incumbent_regret", "hypervolume")),
    *("optimum", "alpha", "covered", "pit", "nll", "width", "notes", *SECONDS_KEPT),
)
"""Columns of records that a cell is made of."""


def measure_of(roles: list[str]) -> str:
    """Return what is best on a task, by the roles of its outcomes: a value, a hypervolume, or a distance."""
    if roles.count("objective") > 1:
        return "hypervolume"
    return "value" if set(roles) == {"objective"} else "penalised"


def rounds_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rounds of a cell; round 0 is the initial design. Its columns are `COLUMNS`.

    `best` and `incumbent` are to be maximised: with constraints they are minus distances to the constrained optimum.

    Args:
        rows: records of one method on one task, one query a round.
    """
    found = pd.DataFrame(columns_of_values(rows))
    found.index.names = ["seed", "round"]
    queries = rows[rows["iteration"] > 0].set_index(["seed", "iteration"])
    queries.index.names = ["seed", "round"]
    seconds = {name: rounded(queries[name]) for name in SECONDS_KEPT}
    for name, values in {**columns_of_forecasts(queries), **seconds}.items():
        found[name] = pd.Series(values, index=queries.index)
    return found.reset_index()[list(COLUMNS)].sort_values(["seed", "round"], ignore_index=True)


def columns_of_values(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Return optimum, best value, incumbent and recommendation at the end of each round, by seed and round.

    The optimum is a trial's own, NaN where unknown: seeds of a random function or a random pool have others.
    """
    measure = measure_of(list(rows["roles"].iloc[0]))
    best, incumbent = {
        "value": ("best_f", "incumbent_f"),
        "penalised": ("penalty_regret", "incumbent_regret"),
        "hypervolume": ("hypervolume", None),
    }[measure]
    sign = -1.0 if measure == "penalised" else 1.0
    of_best = at_ends(rows, metric(rows, best))
    of_optimum = at_ends(rows, rows["optimum"])
    return {
        "optimum": {"value": of_optimum, "penalised": 0.0 * of_best, "hypervolume": np.nan * of_best}[measure],
        "best": sign * of_best,
        "incumbent": of_best * np.nan if incumbent is None else sign * at_ends(rows, metric(rows, incumbent)),
        "recommended": at_ends(rows, pd.Series(lookup(rows["notes"], "recommended_f"), index=rows.index)),
    }


def at_ends(rows: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Return the last value of each round, by seed and round."""
    return values.groupby([rows["seed"], rows["iteration"]]).last()


def columns_of_forecasts(queries: pd.DataFrame) -> dict[str, Array]:
    """Return coverage, scores and width of the forecasts of queries, `n` each; NaN of a method without forecasts."""
    alphas, covered, width = (entries(queries[name]) for name in ("alpha", "covered", "width"))
    found = {name: at_level(alphas, covered, alpha) for name, alpha in LEVELS.items()}
    return {
        **found,
        "pit": rounded(queries["pit"]),
        "nll": rounded(queries["nll"]),
        "width_80": rounded(pd.Series(at_level(alphas, width, WIDTH_OF))),
    }


def at_level(alphas: Array, values: Array, alpha: float) -> Array:
    """Return the values (`n x k`) at one of the miscoverage levels (`n x k`): `n`, NaN where there is no such level."""
    if alphas.shape != values.shape:
        return np.full(len(values), np.nan)
    there = np.isclose(alphas, alpha)
    return np.where(there.any(axis=1), np.where(there, values, 0.0).sum(axis=1), np.nan)


def rounded(values: pd.Series) -> Array:
    """Return numbers to `DIGITS` significant digits: what is not known to more takes less space."""
    numbers = values.to_numpy(dtype=np.float64)
    known = np.isfinite(numbers) & (numbers != 0)
    size = np.floor(np.log10(np.abs(np.where(known, numbers, 1.0))))
    unit = 10.0 ** (size - (DIGITS - 1))
    return np.where(known, np.round(numbers / unit) * unit, numbers)

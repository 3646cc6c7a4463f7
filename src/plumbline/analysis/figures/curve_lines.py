"""The lines of curves: a metric along evaluations, costs or time, with the edges of its band."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.evidence.bands import LEVEL, BandKind, band
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.reference import NotInReferenceError
from plumbline.analysis.figures.curve_options import FIRST, CurvesOptions, Panel, Row
from plumbline.metrics.spending import by_cost
from plumbline.statistics.over_seeds import student_interval

Array = NDArray[np.float64]


class Line(NamedTuple):
    """A line of a panel, and the edges of its band, NaN where these are not known: `n` each."""

    x: Array
    low: Array
    middle: Array
    high: Array


def evaluations(trials: pd.DataFrame, rounds: pd.Index, queries: bool) -> Array:
    """Return the number of evaluations at the end of each round."""
    first = trials[trials["seed"] == trials["seed"].iloc[0]]
    counts = first.groupby("iteration")["evaluation"].max() + 1
    return (counts.reindex(rounds) - (counts.loc[0] if queries else 0)).to_numpy(dtype=float)


def in_time(table: pd.DataFrame, seconds: pd.DataFrame, moments: int = 200) -> tuple[Array, Array]:
    """Return minutes since the initial design, and the value of each trial at that time.

    Args:
        table: a metric at the end of each round, one row per seed.
        seconds: of the rounds, likewise.
        moments: how many, from when all trials have a value to when the first one ends.

    Returns:
        Minutes `m`, and values `seeds x m`.
    """
    # The initial design is nobody's round: it has no seconds.
    taken = seconds.reindex(index=table.index, columns=table.columns).fillna(0.0)
    ends = taken.cumsum(axis=1).to_numpy(dtype=float) / 60
    values = table.to_numpy(dtype=float)
    minutes = np.linspace(ends[:, 0].max(), max(ends[:, -1].min(), ends[:, 0].max()), moments)
    places = [np.searchsorted(one, minutes, side="right") - 1 for one in ends]
    return minutes, np.stack([one[place] for one, place in zip(values, places, strict=True)])


def values_by_column(found: Evidence, panel: Panel, method: str, metric: str) -> pd.DataFrame:
    """Return a metric of each seed at the end of each round, or at each cost where the panel has costs.

    Raises:
        NotInReferenceError: reference results do not say which outcomes were observed, and so not what was spent.
    """
    if panel.costs and found.reference is not None:
        raise NotInReferenceError(f"no costs of evaluations of {method} on {panel.task}")
    if panel.costs:
        return by_cost(found.trials(panel.task, method), metric, panel.costs)
    return found.by_round(panel.task, method, metric)


def positions(trials: pd.DataFrame, columns: pd.Index, panel: Panel, queries: bool) -> Array:
    """Return the positions of the columns of `values_by_column` on the axis."""
    return columns.to_numpy(dtype=float) if panel.costs else evaluations(trials, columns, queries)


def methods_of(found: Evidence, panel: Panel, row: Row) -> list[str]:
    """Return the methods of a panel that are drawn in a row."""
    return [method for method in found.named(row.methods or panel.methods, panel.task) if method in panel.methods]


def baseline_of(panel: Panel, row: Row) -> str | None:
    """Return the method that a row takes off the others in a panel, if it does."""
    return panel.methods[0] if row.minus == FIRST else row.minus


def line_of(found: Evidence, panel: Panel, method: str, row: Row, options: CurvesOptions) -> Line | None:
    """Return the line of a method in a panel; None where it has no value.

    Raises:
        PlumblineError: there are no trials, or not what it takes among the reference results.
    """
    kind, sign = row.band or options.band, -1 if row.minimise else 1
    if found.reference is not None and not found.reference.has_rounds(row.metric):
        return reference_line(found, panel, method, row, options)
    trials = found.trials(panel.task, method)
    table = values_by_column(found, panel, method, row.metric)
    if (theirs := baseline_of(panel, row)) is not None:
        ours, others = table.align(values_by_column(found, panel, theirs, row.metric), join="inner")
        table = ours - others
    if table.empty:
        return None  # a method without a model has no coverage
    if row.against == "minutes":
        x, values = in_time(table, found.by_round(panel.task, method, "round_seconds"))
    else:
        x, values = positions(trials, table.columns, panel, options.queries), table.to_numpy()
    return Line(x, *band(sign * values, kind, options.quantiles))


def reference_line(found: Evidence, panel: Panel, method: str, row: Row, options: CurvesOptions) -> Line | None:
    """Return the line of a method from the reference results' means by round.

    The band of a difference is known at the last round only, if the reference results have single runs.

    Raises:
        NotInReferenceError: it is none of means, or against something else than evaluations.
    """
    assert found.reference is not None
    kind, sign, reference = row.band or options.band, -1 if row.minimise else 1, found.reference
    if kind not in ("mean-error", "mean-interval") or panel.costs or row.against == "minutes":
        raise NotInReferenceError(f"no {row.metric} by round of single runs of {method} on {panel.task}")
    curve = reference.curve(panel.task, method, row.metric)
    if curve.empty:
        return None
    if (theirs := baseline_of(panel, row)) is None:
        low, middle, high = edges(curve["mean"], curve["standard_error"], curve["seeds"], kind)
    else:
        others = reference.curve(panel.task, theirs, row.metric)
        if not (curve["seeds"] == others["seeds"]).all():
            raise NotInReferenceError(f"no {row.metric} by round of the runs that {method} and {theirs} have in common")
        middle = (curve["mean"] - others["mean"]).to_numpy(copy=True)
        low, high = np.full((2, len(middle)), np.nan)
        try:
            apart = found.ends(panel.task, method, row.metric) - found.ends(panel.task, theirs, row.metric)
        except NotInReferenceError:
            pass
        else:
            low[-1], middle[-1], high[-1] = (float(one) for one in band(apart.to_numpy(), kind, options.quantiles))
    x = positions(found.trials(panel.task, method), curve.index, panel, options.queries)
    return Line(x, *((low, middle, high) if sign > 0 else (-high, -middle, -low)))


def edges(mean: pd.Series, error: pd.Series, seeds: pd.Series, kind: BandKind) -> tuple[Array, Array, Array]:
    """Return the band about means, of one standard error or their interval."""
    values = mean.to_numpy(), error.to_numpy(), seeds.to_numpy()
    if kind == "mean-interval":
        return student_interval(*values, LEVEL)
    return values[0] - values[1], values[0], values[0] + values[1]


def nominal_line(found: Evidence, panel: Panel, method: str, row: Row, options: CurvesOptions) -> Line:
    """Return the line of what a metric should be: a mean over seeds.

    Raises:
        PlumblineError: as `line_of`.
        NotInReferenceError: the method has no value of the nominal metric.
    """
    assert row.nominal is not None
    as_mean = row.model_copy(update={"metric": row.nominal, "band": "mean-error", "minus": None})
    line = line_of(found, panel, method, as_mean, options)
    if line is None:
        raise NotInReferenceError(f"no {row.nominal} by round of {method} on {panel.task}")
    return line


def optimum_of(found: Evidence, panel: Panel) -> float:
    """Return the optimum of a panel's task, NaN where it is not known."""
    if found.reference is not None:
        return found.reference.optimum(panel.task, panel.methods[0])
    return float(found.trials(panel.task, panel.methods[0])["optimum"].iloc[0])

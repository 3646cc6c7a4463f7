"""Metrics against cost, where outcomes have costs of their own and can be observed one by one."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.core.errors import PlumblineError
from plumbline.metrics.frames import entries
from plumbline.metrics.registry import by_round

STEPS = 400
"""Costs that a metric is told at, at most."""

Array = NDArray[np.float64]


def counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the number of observations of each outcome up to the end of each round.

    Args:
        rows: of one method on one task, with the column `y`.

    Returns:
        One row a seed and an iteration, one column an outcome.
    """
    seen = pd.DataFrame(np.isfinite(entries(rows["y"])).astype(float), index=rows.index)
    seeds = rows["seed"]
    return seen.groupby(seeds).cumsum().groupby([seeds, rows["iteration"]]).last()


def spent(rows: pd.DataFrame, costs: Sequence[float]) -> pd.DataFrame:
    """Return the cost up to the end of each round, the initial design included: seeds x iterations.

    Args:
        rows: as of `counts`.
        costs: of the outcomes.

    Raises:
        PlumblineError: as many costs as there are outcomes are not given.
    """
    found = counts(rows)
    if found.shape[1] != len(costs):
        raise PlumblineError(f"{len(costs)} costs of {found.shape[1]} outcomes: give one each")
    return pd.Series(found.to_numpy() @ np.array(costs), found.index).unstack()


def by_cost(rows: pd.DataFrame, name: str, costs: Sequence[float]) -> pd.DataFrame:
    """Return a metric when so much was spent: as the last round left it that cost no more.

    Args:
        rows: as of `counts`, with the columns of the metric.
        name: of the metric.
        costs: of the outcomes.

    Returns:
        One row a seed, one column a cost, from where all seeds have begun to where the first has ended.
    """
    table = by_round(rows, name)
    if table.empty:  # no run has a value
        return table
    cost = spent(rows, costs).reindex(index=table.index, columns=table.columns).to_numpy()
    low, high = np.nanmax(cost[:, 0]), np.nanmin(np.nanmax(cost, axis=1))
    there = np.unique(cost[(cost >= low) & (cost <= high)])
    at = there if len(there) <= STEPS else np.linspace(low, high, STEPS)
    values = [
        own[np.searchsorted(paid[~np.isnan(paid)], at, side="right") - 1]
        for own, paid in zip(table.to_numpy(), cost, strict=True)
    ]
    return pd.DataFrame(np.array(values), index=table.index, columns=at)

"""Gaussian forecasts with what was observed, as a table has them."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from plumbline.core.errors import PlumblineError

Array = NDArray[np.float64]

NEEDED = ("y", "mean", "sd")
ROUND = "round"
INPUT = re.compile(r"x[_.]?\d*", re.IGNORECASE)
"""Names of columns of inputs: x, x1, x_1."""

FEWEST, MOST = 10, 2_000
"""Of fewer forecasts little can be said; of more the bootstrap takes gigabytes."""


class Forecasts(NamedTuple):
    """Forecasts in the order of their rounds, `n` each.

    Attributes:
        y: observed.
        mean: forecast.
        sd: forecast standard deviation of the observation, noise included.
        round: when it was made; those of one round do not know of each other.
        inputs: columns of the inputs.
        ignored: names of other columns.
    """

    y: Array
    mean: Array
    sd: Array
    round: Array
    inputs: dict[str, Array]
    ignored: tuple[str, ...] = ()

    @property
    def z(self) -> Array:
        """Errors in units of their standard deviations."""
        return (self.y - self.mean) / self.sd

    @property
    def pit(self) -> Array:
        """Predictive distribution functions at the observations (probability integral transforms)."""
        return ndtr(self.z)


def read_forecasts(path: Path) -> Forecasts:
    """Return the forecasts in a CSV file.

    Raises:
        PlumblineError: no such file, no table, or what `forecasts_of` refuses.
    """
    try:
        table = pd.read_csv(path, skipinitialspace=True)
    except FileNotFoundError as error:
        raise PlumblineError(f"no file {path}") from error
    except ValueError as error:
        raise PlumblineError(f"{path} is no CSV: {' '.join(str(error).split())[:200]}") from error
    return forecasts_of(table, str(path), first_row=2)


def forecasts_of(table: pd.DataFrame, source: str = "the table", first_row: int = 0) -> Forecasts:
    """Return the forecasts in a table.

    Args:
        table: a row a forecast, with columns `y`, `mean`, `sd`; `round`, and inputs `x1`, ... where there are any.
        source: for messages.
        first_row: the number of its first row, as users count.

    Raises:
        PlumblineError: a column is missing or there twice, a cell is no finite number, a standard deviation is not
            above zero, or there are too few rows, or too many.
    """
    names = [str(name).strip() for name in table.columns]
    table = table.set_axis(names, axis="columns")
    if missing := [name for name in NEEDED if name not in names]:
        there = f"it has {', '.join(names)}"[:200]
        raise PlumblineError(f"{source} has no column {missing[0]!r}: y, mean and sd are needed ({there})")
    read = [name for name in names if name in (*NEEDED, ROUND) or INPUT.fullmatch(name)]
    if twice := [name for name in read if names.count(name) > 1]:
        raise PlumblineError(f"{source} has two columns {twice[0]!r}")
    if not FEWEST <= len(table) <= MOST:
        raise PlumblineError(f"{source} has {len(table)} forecasts: it takes {FEWEST} to {MOST:,}")
    columns = {name: _numbers(table[name], source, first_row) for name in read}
    if (flat := columns["sd"] <= 0).any():
        row = int(flat.argmax())
        raise PlumblineError(f"{source}, row {row + first_row}: sd is {columns['sd'][row]:g}: it must be above zero")
    rounds = columns.pop(ROUND, np.arange(len(table), dtype=np.float64))
    order = np.argsort(rounds, kind="stable")
    y, mean, sd = (columns.pop(name)[order] for name in NEEDED)
    inputs = {name: values[order] for name, values in columns.items()}
    return Forecasts(y, mean, sd, rounds[order], inputs, tuple(name for name in names if name not in read))


def _numbers(column: pd.Series, source: str, first_row: int) -> Array:
    """Return the finite numbers of a column; raise PlumblineError, with the row, where a cell is none."""
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        raise PlumblineError(
            f"{source}, row {row + first_row}: {column.name} is {column.iloc[row]!r:.40}, not a finite number"
        )
    return values

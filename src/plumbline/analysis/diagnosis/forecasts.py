"""Gaussian forecasts with what was observed, as a table has them."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from plumbline.core.errors import PlumblineError, shown
from plumbline.core.files import csv_cells, other_separator

Array = NDArray[np.float64]

NEEDED = ("y", "mean", "sd")
ROUND = "round"
INPUT = re.compile(r"x[_.]?\d*", re.IGNORECASE)
"""Names of columns of inputs: x, x1, x_1."""

FEWEST, MOST = 10, 2_000
"""Of fewer forecasts little can be said; of more the bootstrap takes gigabytes."""

MOST_DEVIATIONS = 1e100
"""Of an observation from its mean: the squares of more are no finite numbers."""


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
        PlumblineError: what `csv_cells` or `forecasts_of` refuses.
    """
    return forecasts_of(csv_cells(path), str(path), "line")


def forecasts_of(table: pd.DataFrame, source: str = "the table", unit: str = "row") -> Forecasts:
    """Return the forecasts in a table.

    Args:
        table: one row per forecast, with columns `y`, `mean`, `sd`; `round`, and inputs `x1`, ... where there are any.
        source: for messages.
        unit: what its index counts.

    Raises:
        PlumblineError: a column is missing or there twice, a cell is no finite number, a standard deviation is not
            above zero or far too small for the error, or there are too few rows, or too many.
    """
    names = [str(name).strip() for name in table.columns]
    table = table.set_axis(names, axis="columns")
    if missing := [name for name in NEEDED if name not in names]:
        raise PlumblineError(f"{source} {_lack(names, missing)}")
    read = [name for name in names if name in (*NEEDED, ROUND) or INPUT.fullmatch(name)]
    if twice := [name for name in read if names.count(name) > 1]:
        raise PlumblineError(f"{source} has two columns {twice[0]!r}")
    if not FEWEST <= len(table) <= MOST:
        raise PlumblineError(f"{source} has {len(table)} forecasts: it takes {FEWEST} to {MOST:,}")
    columns = {name: _numbers(table[name], source, unit) for name in read}
    if (flat := columns["sd"] <= 0).any():
        row = int(flat.argmax())
        where = f"{unit} {shown(table.index[row])}"
        raise PlumblineError(f"{source}, {where}: sd is {columns['sd'][row]:g}: it must be above zero")
    with np.errstate(over="ignore"):
        near = np.abs((columns["y"] - columns["mean"]) / columns["sd"]) <= MOST_DEVIATIONS
    if not near.all():
        row = int(near.argmin())
        where = f"{unit} {shown(table.index[row])}"
        raise PlumblineError(
            f"{source}, {where}: y lies more than {MOST_DEVIATIONS:g} sd from the mean: is sd in the units of y?"
        )
    rounds = columns.pop(ROUND, np.arange(len(table), dtype=np.float64))
    order = np.argsort(rounds, kind="stable")
    y, mean, sd = (columns.pop(name)[order] for name in NEEDED)
    inputs = {name: values[order] for name, values in columns.items()}
    return Forecasts(y, mean, sd, rounds[order], inputs, tuple(one for one in names if one and one not in read))


def _lack(names: Sequence[str], missing: Sequence[str]) -> str:
    """Say that a table with columns of these names lacks others, and what may be meant."""
    if word := other_separator(names, NEEDED):
        return f"seems to have {word} between its columns: commas are needed"
    free = {name.casefold(): name for name in names if name not in NEEDED}
    near = {name: free[found[0]] for name in missing if (found := get_close_matches(name, free, n=1))}
    if near:
        meant = ", ".join(f"{name!r} by {shown(other)}" for name, other in near.items())
        return f"has no column {next(iter(near))!r}: did you mean {meant}?"
    there = ", ".join(name if name.isprintable() else shown(name) for name in names)
    return f"has no column {missing[0]!r}: y, mean and sd are needed (it has {there[:200]})"


def _numbers(column: pd.Series, source: str, unit: str) -> Array:
    """Return the finite numbers of a column; raise PlumblineError, with the row, where a cell is none."""
    cells = column.tolist()
    values = np.array([_number(cell) for cell in cells], dtype=np.float64)
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        where = f"{unit} {shown(column.index[row])}"
        raise PlumblineError(f"{source}, {where}: {column.name} is {_written(cells[row])}, not a finite number")
    return values


def _number(cell: object) -> float:
    """Return a number or the number in a text; NaN for all else, and for `1_0`, which Python reads as ten."""
    if isinstance(cell, str) and "_" in cell:
        return np.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _written(cell: object) -> str:
    """Return a cell that is no finite number as an error has it: `nan` and `inf` as numbers, and words in quotes."""
    if not isinstance(cell, str):
        return shown(cell)
    if not cell.strip():
        return "empty"
    return cell.strip() if re.fullmatch(r"\s*[-+]?(nan|inf|infinity)\s*", cell, re.IGNORECASE) else shown(cell)

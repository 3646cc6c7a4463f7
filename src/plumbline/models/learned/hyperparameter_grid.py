"""Results of a learner at every point of a grid of its hyperparameters, as a file of arrays."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbline.core.errors import PlumblineError
from plumbline.models.learned.arrays import read_arrays, write_arrays

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HyperparameterGrid:
    """A fully evaluated grid.

    Attributes:
        hyperparameters: names of the d columns of `points`.
        points: `N x d`, in the learner's own units.
        measured: results by name, `N` values each, NaN where a point failed.
        reasons: `N` reasons of failures; empty where a point did not fail.
    """

    hyperparameters: tuple[str, ...]
    points: Array
    measured: dict[str, Array]
    reasons: tuple[str, ...]


def write_grid(path: Path, grid: HyperparameterGrid, origin: dict[str, Any]) -> None:
    """Write a grid atomically, with its provenance; equal grids give equal bytes."""
    arrays = {
        "hyperparameters": np.array(grid.hyperparameters),
        "points": grid.points,
        "names": np.array(list(grid.measured)),
        "measured": np.array(list(grid.measured.values())),
        "reasons": np.array(grid.reasons),
    }
    write_arrays(path, arrays, origin)


def read_grid(path: Path) -> HyperparameterGrid:
    """Read a grid.

    Raises:
        PlumblineError: the file is missing, corrupt, or another model; the message has the remedy.
    """
    with read_arrays(path) as held:
        if "hyperparameters" not in held:
            raise PlumblineError(f"{path} is no grid of hyperparameters: name another model")
        return HyperparameterGrid(
            hyperparameters=tuple(str(name) for name in held["hyperparameters"]),
            points=held["points"],
            measured={str(name): values for name, values in zip(held["names"], held["measured"], strict=True)},
            reasons=tuple(str(reason) for reason in held["reasons"]),
        )

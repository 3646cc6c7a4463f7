"""Trained maps from features to latent inputs, as files of arrays."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plumbline.models.learned.arrays import finite, read_arrays, write_arrays

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearLatent:
    """The projection of `(x - mean) / scale` on orthonormal axes: a linear encoder.

    Attributes:
        columns: names of the d features, in order.
        mean, scale: `d`.
        axes: `k x d`, orthonormal.
    """

    columns: tuple[str, ...]
    mean: Array
    scale: Array
    axes: Array

    def encode(self, X: Tensor) -> Tensor:
        """Return the latent inputs of features `X` (`n x d`): `n x k`."""
        mean, scale, axes = (torch.from_numpy(one) for one in (self.mean, self.scale, self.axes))
        return (X - mean) / scale @ axes.T


def write_latent(path: Path, latent: LinearLatent, origin: dict[str, Any]) -> None:
    """Write a map atomically, with its provenance; equal maps give equal bytes."""
    arrays = {"columns": np.array(latent.columns), "mean": latent.mean, "scale": latent.scale, "axes": latent.axes}
    write_arrays(path, arrays, origin)


def read_latent(path: Path) -> LinearLatent:
    """Read a map.

    Raises:
        PlumblineError: the file is missing or corrupt; the message has the remedy.
    """
    with read_arrays(path) as held:
        columns = tuple(str(name) for name in held["columns"])
        mean, scale, axes = (finite(held, name, path) for name in ("mean", "scale", "axes"))
        if mean.shape != (len(columns),) or scale.shape != mean.shape or axes.shape[1:] != mean.shape:
            raise ValueError(f"mean is {mean.shape}, scale {scale.shape}, axes {axes.shape} for {len(columns)} columns")
        return LinearLatent(columns, mean, scale, axes)

"""Trained maps from features to a few latent inputs, as files of arrays."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plumbline import files
from plumbline.errors import PlumblineError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearLatent:
    """`(x - mean) / scale` projected on some directions: a linear autoencoder's inner layer.

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
    """Write a map atomically, with what it was trained from; the same map is the same bytes."""
    with files.atomic(path) as part, part.open("wb") as stream:
        np.savez(
            stream,
            columns=np.array(latent.columns),
            mean=latent.mean,
            scale=latent.scale,
            axes=latent.axes,
            origin=np.array(json.dumps(origin, sort_keys=True)),
        )


def read_latent(path: Path) -> LinearLatent:
    """Read a map.

    Raises:
        PlumblineError: not there, or corrupt; with the remedy.
    """
    try:
        with np.load(path) as held:
            columns = tuple(str(name) for name in held["columns"])
            return LinearLatent(columns, held["mean"], held["scale"], held["axes"])
    except FileNotFoundError as error:
        raise PlumblineError(f"no model at {path}: `plumbline model {path.stem}` trains it") from error
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        reason = " ".join(str(error).split())[:200]
        raise PlumblineError(f"{path} is corrupt ({reason}): delete it and run again") from error

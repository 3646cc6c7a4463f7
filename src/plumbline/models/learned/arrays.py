"""Trained models as files of arrays: NumPy's npz, with what they were trained from."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from plumbline.core import files
from plumbline.core.errors import PlumblineError

Arrays = Mapping[str, NDArray[Any]]

Curves = list[dict[str, float]]
"""What was measured after each `epoch` of a training; files keep it as the array `curves`."""


def write_arrays(path: Path, arrays: Arrays, origin: Mapping[str, Any]) -> None:
    """Write a model atomically, with what it was trained from; the same model is the same bytes."""
    with files.atomic(path) as part, part.open("wb") as stream:
        np.savez(stream, **arrays, origin=as_json(origin))  # type: ignore[arg-type]


@contextmanager
def read_arrays(path: Path) -> Iterator[Arrays]:
    """Yield the arrays of a model.

    Raises:
        PlumblineError: not there, or corrupt (what the block raises for an array that is missing or odd included);
            with the remedy.
    """
    try:
        with np.load(path) as held:
            yield held
    except FileNotFoundError as error:
        raise PlumblineError(f"no model at {path}: `plumbline model {path.stem}` trains it") from error
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        reason = " ".join(str(error).split())[:200]
        raise PlumblineError(f"{path} is corrupt ({reason}): delete it and run again") from error


def as_json(data: Any) -> NDArray[np.str_]:
    """Return `data` as an array of one text; equal data, equal text."""
    return np.array(json.dumps(data, sort_keys=True))


def read_curves(path: Path) -> Curves:
    """Return the curves of a training, none where it has no epochs; raises as `read_arrays` does."""
    with read_arrays(path) as held:
        return json.loads(str(held["curves"])) if "curves" in held else []

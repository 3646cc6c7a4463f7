"""Trained models as npz files of arrays, with their provenance."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from plumbline.core import files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import raise_if_machine_failed

Arrays = Mapping[str, NDArray[Any]]

LARGEST = 1 << 32
"""Greatest size in bytes that a model's file may unpack to, 4 GiB: the images of CIFAR-10 have 184 MB."""

Curves = list[dict[str, float]]
"""Measurements after each `epoch` of a training; files store them as the array `curves`."""


def write_arrays(path: Path, arrays: Arrays, origin: Mapping[str, Any]) -> None:
    """Write a model atomically, with its provenance; equal models give equal bytes."""
    with files.atomic(path) as part, part.open("wb") as stream:
        np.savez(stream, **arrays, origin=as_json(origin))  # type: ignore[arg-type]


@contextmanager
def read_arrays(path: Path) -> Iterator[Arrays]:
    """Yield the arrays of a model.

    Raises:
        PlumblineError: the file is missing or corrupt, holds code, or unpacks to too much, or the block raises for a
            missing or invalid array; the message has the remedy.
    """
    try:
        with ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > LARGEST:
            raise PlumblineError(
                f"{path} unpacks to {size >> 20} MiB, more than {LARGEST >> 20}: it is no model of ours"
            )
        with np.load(path) as held:
            refuse_another_name(held, path)
            yield held
    except PlumblineError:
        raise
    except FileNotFoundError as error:
        raise PlumblineError(f"no model at {path}: `plumbline model {path.stem}` trains it") from error
    except (PermissionError, IsADirectoryError) as error:
        raise PlumblineError(f"{path} cannot be read: {error.strerror}") from error
    except Exception as error:  # the readers may raise any error on a damaged file
        raise_if_machine_failed(error, path)
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if "allow_pickle" in reason:
            raise PlumblineError(f"{path} holds code and was not read: delete it and run again") from error
        raise PlumblineError(f"{path} is corrupt ({reason}): delete it and run again") from error


def origin_of(path: Path) -> dict[str, Any]:
    """Return what the file of a model says of its training.

    Raises:
        PlumblineError: as of `read_arrays`.
    """
    with read_arrays(path) as held:
        origin: dict[str, Any] = json.loads(str(held["origin"]))
    return origin


def finite(held: Arrays, name: str, path: Path) -> NDArray[Any]:
    """Return an array of weights.

    Raises:
        PlumblineError: a number is NaN or infinite; the message names the array.
    """
    values = held[name]
    if not np.isfinite(values).all():
        raise PlumblineError(f"{path}: {name} has numbers that are NaN or infinite: delete the file and run again")
    return values


def refuse_another_name(held: Arrays, path: Path) -> None:
    """Raise PlumblineError where a model of a data folder lies under the name of another, as a stand-in might.

    Models of older versions do not say their names.
    """
    name = json.loads(str(held["origin"])).get("name", path.stem) if "origin" in held else path.stem
    if path.parent.name == "models" and name != path.stem:
        raise PlumblineError(
            f"{path} is the model {name!r}, not {path.stem!r}: delete it, then `plumbline model {path.stem}` trains "
            "the right one"
        )


def as_json(data: Any) -> NDArray[np.str_]:
    """Return `data` as an array of one string; equal data give equal strings."""
    return np.array(json.dumps(data, sort_keys=True))


def read_curves(path: Path) -> Curves:
    """Return the curves of a training, empty if it has no epochs; raises like `read_arrays`."""
    with read_arrays(path) as held:
        return json.loads(str(held["curves"])) if "curves" in held else []

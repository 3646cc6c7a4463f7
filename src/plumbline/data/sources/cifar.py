"""Readers of CIFAR-10 (Krizhevsky, 2009), from its archive of pickles or an archive of JPEG images."""

import io
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from plumbline.core.errors import PlumblineError
from plumbline.core.files import raise_if_machine_failed
from plumbline.data.sources.archives import members
from plumbline.data.sources.array_pickles import read_pickle
from plumbline.data.sources.images import Images, Part, Pixels

SHAPE = (3, 32, 32)
"""Channels, height, width."""

CLASSES = 10

TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
TEST, META = "test_batch", "batches.meta"

FOLDER = "cifar-10-batches-py"

JPEG = re.compile(r"cifar10/(?:train|test)/[a-z]+/[^/]+\.jpe?g")


def read_cifar(path: Path) -> Images:
    """Return the images of `cifar-10-python.tar.gz`: 50,000 for training and 10,000 for testing.

    Raises:
        PlumblineError: the archive is damaged, has other members, or has pickles of other objects than arrays.
    """
    wanted = (*TRAIN, TEST, META)
    ours = members(path, lambda name: name in {f"{FOLDER}/{leaf}" for leaf in wanted})
    held = {name.rpartition("/")[2]: _mapping(content, f"{path}: {name}") for name, content in ours}
    for leaf in wanted:
        if leaf not in held:
            raise PlumblineError(f"{path} has no {FOLDER}/{leaf}: it is not CIFAR-10's archive for Python")
    classes = _names(held[META], f"{path}: {FOLDER}/{META}")
    parts = [_part(held[leaf], f"{path}: {FOLDER}/{leaf}") for leaf in TRAIN]
    train = Part(
        np.concatenate([part.pixels for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )
    return Images(classes, train, _part(held[TEST], f"{path}: {FOLDER}/{TEST}"))


def _mapping(content: bytes, source: str) -> dict[bytes, Any]:
    try:
        mapping = read_pickle(content)
    except pickle.UnpicklingError as error:
        reason = " ".join(str(error).split())[:200]
        raise PlumblineError(f"{source} is refused ({reason}): delete the archive and fetch it again") from error
    if not isinstance(mapping, dict):
        raise PlumblineError(f"{source} holds no mapping: it is not of CIFAR-10")
    return mapping


def _names(meta: dict[bytes, Any], source: str) -> tuple[str, ...]:
    names = meta.get(b"label_names")
    if not (isinstance(names, list) and len(names) == CLASSES and all(isinstance(name, bytes) for name in names)):
        raise PlumblineError(f"{source} has no names of {CLASSES} classes: it is not of CIFAR-10")
    return tuple(name.decode("ascii", errors="replace") for name in names)


def _part(batch: dict[bytes, Any], source: str) -> Part:
    try:
        pixels, labels = np.asarray(batch[b"data"]), np.asarray(batch[b"labels"])
    except KeyError as error:
        raise PlumblineError(f"{source} has no {error}: it is not of CIFAR-10") from error
    except ValueError as error:  # a list of lists of different lengths
        raise PlumblineError(f"{source} holds no arrays of numbers: it is not of CIFAR-10") from error
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise PlumblineError(f"{source} has labels that are no list of whole numbers: it is not of CIFAR-10")
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), int(np.prod(SHAPE))):
        raise PlumblineError(f"{source} has data {pixels.dtype} {pixels.shape} for {len(labels)} labels")
    if not np.isin(labels, range(CLASSES)).all():
        raise PlumblineError(f"{source} has labels beyond 0 to {CLASSES - 1}")
    return Part(pixels.reshape(-1, *SHAPE), labels.astype(np.int64))


def read_cifar_jpegs(path: Path) -> Images:
    """Return the images of an archive of `cifar10/{train,test}/CLASS/*.jpg`, in the order of their names.

    Classes are numbered in alphabetical order, as in CIFAR-10. Pixels may differ by one level between versions of the
    JPEG decoder.

    Raises:
        PlumblineError: the archive is damaged or has no such images, or an image is damaged or of another size.
    """
    held = members(path, lambda name: JPEG.fullmatch(name) is not None)
    images = sorted((part, label, name, content) for name, content in held for _, part, label, _ in (name.split("/"),))
    classes = tuple(sorted({label for _, label, _, _ in images}))
    parts = {}
    for part in ("train", "test"):
        ours = [(label, name, content) for of, label, name, content in images if of == part]
        lacking = set(classes) - {label for label, _, _ in ours}
        if lacking or not ours:
            of_class = f" of {min(lacking)}" if lacking else ""
            raise PlumblineError(f"{path} has no cifar10/{part}/CLASS/*.jpg{of_class}: it is another archive")
        pixels = np.stack([_decoded(content, f"{path}: {name}") for _, name, content in ours])
        parts[part] = Part(pixels, np.array([classes.index(label) for label, _, _ in ours]))
    return Images(classes, parts["train"], parts["test"])


def _decoded(content: bytes, source: str) -> Pixels:
    """Return the pixels of a JPEG: `channels x height x width`."""
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
            if image.size != SHAPE[:0:-1]:
                raise ValueError(f"{image.width} x {image.height} pixels, not {SHAPE[2]} x {SHAPE[1]}")
            return np.asarray(image.convert("RGB"), dtype=np.uint8).transpose(2, 0, 1)
    except Exception as error:  # Pillow may raise any error on a damaged image
        raise_if_machine_failed(error, source)
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise PlumblineError(f"{source} cannot be read ({reason}): delete the archive and fetch it again") from error

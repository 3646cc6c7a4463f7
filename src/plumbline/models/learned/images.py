"""Images as a file of arrays, so that problems need not read the original archives."""

from pathlib import Path
from typing import Any

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.images import Images, Part
from plumbline.models.learned.arrays import read_arrays, write_arrays

PARTS = ("train", "test")


def write_images(path: Path, images: Images, origin: dict[str, Any]) -> None:
    """Write images atomically, with their provenance; equal images give equal bytes."""
    arrays = {"classes": np.array(images.classes)}
    for name in PARTS:
        part: Part = getattr(images, name)
        arrays |= {f"{name}_pixels": part.pixels, f"{name}_labels": part.labels}
    write_arrays(path, arrays, origin)


def read_images(path: Path) -> Images:
    """Read images.

    Raises:
        PlumblineError: the file is missing, corrupt, or another model; the message has the remedy.
    """
    with read_arrays(path) as held:
        if "train_pixels" not in held:
            raise PlumblineError(f"{path} has no images: name another model")
        parts = {name: Part(held[f"{name}_pixels"], held[f"{name}_labels"]) for name in PARTS}
        return Images(tuple(str(name) for name in held["classes"]), **parts)

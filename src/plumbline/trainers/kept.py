"""Trained models that are kept with the atlas, so that its tasks in their latent spaces are the same on every machine.

The same training ends with another model on another processor, which rounds differently.
"""

import shutil
from pathlib import Path

from plumbline.core.files import atomic
from plumbline.core.places import ATLAS, own_or_shipped
from plumbline.data.models import ModelEntry
from plumbline.models.learned.arrays import origin_of


def kept_model(name: str, entry: ModelEntry) -> Path | None:
    """Return the file of a model that is kept, if it was trained as its entry says; else None.

    Raises:
        PlumblineError: the file is corrupt.
    """
    path = own_or_shipped(ATLAS / "models" / f"{name}.npz")
    return path if path.is_file() and origin_of(path) == entry.origin(name) else None


def take_kept(path: Path, output: Path) -> None:
    """Copy the file of a kept model."""
    with atomic(output) as part:
        shutil.copyfile(path, part)

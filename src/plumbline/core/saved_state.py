"""States of PyTorch in sealed files: written whole, verified before they are read, and read without running code."""

import io
from pathlib import Path
from typing import Any

import torch

from plumbline.core import files


def save_state(path: Path, state: Any) -> None:
    """Write tensors, numbers, text, and lists and dictionaries of these, to `path` atomically, after their checksum."""
    stream = io.BytesIO()
    torch.save(state, stream)
    files.write_sealed(path, stream.getvalue())


def load_state(path: Path) -> Any:
    """Read what `save_state` wrote.

    Raises:
        PlumblineError: the bytes are not those that were written.
    """
    return torch.load(io.BytesIO(files.read_sealed(path)), weights_only=True)

"""Checkpoints of trainings, so that a resumed training ends like an uninterrupted one."""

import pickle
import warnings
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from plumbline.core import files

State = dict[str, Any]


class Checkpoint:
    """The state of an unfinished training, in a file beside its output.

    Args:
        path: path of the file.
        identity: everything the training depends on, its code included: a state with another identity is not resumed.
        seconds: least time between two saves.
    """

    def __init__(self, path: Path, identity: str, seconds: float = 60.0) -> None:
        self.path = path
        self.identity = identity
        self.seconds = seconds
        self._saved = monotonic()

    def restore(self) -> State | None:
        """Return the last saved state; None if there is none or, with a warning, if it cannot be used."""
        if not self.path.is_file():
            return None
        try:
            held = torch.load(self.path, weights_only=True)
            if held["asked"] != self.identity:
                raise ValueError("it belongs to another training")
            return held["state"]
        except (OSError, RuntimeError, ValueError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
            reason = " ".join(str(error).split())[:200]
            warnings.warn(f"{self.path} cannot be resumed ({reason}): the training starts over", stacklevel=2)
            return None

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return monotonic() - self._saved >= self.seconds

    def save(self, state: State) -> None:
        """Replace the saved state."""
        with files.atomic(self.path) as part:
            torch.save({"asked": self.identity, "state": state}, part)
        self._saved = monotonic()

    def remove(self) -> None:
        """Delete the file after the end of the training."""
        self.path.unlink(missing_ok=True)

"""What a training leaves on disk while it goes on, so that one that is killed ends as if it had not been."""

import pickle
import warnings
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from plumbline.core import files

State = dict[str, Any]


class Checkpoint:
    """The state of one unfinished training, in a file beside what it is to write.

    Args:
        path: of the file.
        asked: what the training rests on, its code included: a state of anything else is not gone on from.
        seconds: between two saves.
    """

    def __init__(self, path: Path, asked: str, seconds: float = 60.0) -> None:
        self.path = path
        self.asked = asked
        self.seconds = seconds
        self._saved = monotonic()

    def restore(self) -> State | None:
        """Return what was saved last; None, with a warning where there is a file, if that is of no use."""
        if not self.path.is_file():
            return None
        try:
            held = torch.load(self.path, weights_only=True)
            if held["asked"] != self.asked:
                raise ValueError("it is of another training")
            return held["state"]
        except (OSError, RuntimeError, ValueError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
            reason = " ".join(str(error).split())[:200]
            warnings.warn(f"{self.path} cannot be gone on from ({reason}): the training starts over", stacklevel=2)
            return None

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return monotonic() - self._saved >= self.seconds

    def save(self, state: State) -> None:
        """Replace what was saved."""
        with files.atomic(self.path) as part:
            torch.save({"asked": self.asked, "state": state}, part)
        self._saved = monotonic()

    def remove(self) -> None:
        """Forget it: the training is finished."""
        self.path.unlink(missing_ok=True)

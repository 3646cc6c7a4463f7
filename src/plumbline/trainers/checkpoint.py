"""Checkpoints of trainings, so that a resumed training ends like an uninterrupted one."""

from pathlib import Path
from time import monotonic
from typing import Any

from plumbline.core import files
from plumbline.core.saved_state import load_state, save_state

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
        """Return the last saved state; None if there is none.

        A state that is damaged, or of another training, is set aside with a warning of one line.

        Raises:
            MemoryError, OSError: the machine cannot read the file, which is not damaged.
        """
        if not self.path.is_file():
            return None
        with files.reading(self.path, "the training starts over"):
            held = load_state(self.path)
            if held["asked"] != self.identity:
                raise ValueError("it belongs to another training")
            return held["state"]
        return None

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return monotonic() - self._saved >= self.seconds

    def save(self, state: State) -> None:
        """Replace the saved state."""
        save_state(self.path, {"asked": self.identity, "state": state})
        self._saved = monotonic()

    def remove(self) -> None:
        """Delete the file after the end of the training."""
        self.path.unlink(missing_ok=True)

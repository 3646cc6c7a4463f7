"""The design cache: evaluated initial designs, shared by all methods that start from them.

Neither the points of an initial design nor the noise of its evaluations depend on the method (`core.seeding`).
"""

from pathlib import Path

from plumbline.core import files
from plumbline.core.saved_state import load_state, save_state
from plumbline.trials.log import Step

FOLDER = "designs"
"""Folder of the cache in the store, beside the folders of trials."""

LONG = 1.0
"""Least seconds of an evaluation that is cached."""


class DesignCache:
    """Cached batches of initial designs, each under the key of its design (`plumbline.store.keys.design_key`)."""

    def __init__(self, store: Path) -> None:
        self.folder = store / FOLDER

    def path(self, key: str, first: int) -> Path:
        """Return the file of a design's batch whose first evaluation has the index `first`."""
        return self.folder / f"{key}-{first}.pt"

    def find(self, key: str, first: int) -> tuple[Step, float] | None:
        """Return a batch and the seconds of its evaluation; None if it is not cached.

        A damaged batch, or one of another design, is set aside with a warning of one line, and counts as not cached.

        Raises:
            MemoryError: the batch is too large for this machine.
        """
        path = self.path(key, first)
        if not path.is_file():
            return None
        with files.reading(path, "its points are evaluated again"):
            cached = load_state(path)
            if cached["design"] != path.stem:
                raise ValueError(f"it is of design {cached['design']}, not of this one")
            step = Step(0, cached["X"], cached["Y"], cached["F"], seconds=cached["seconds"])
            return step, cached["round_seconds"]
        return None

    def keep(self, key: str, first: int, step: Step, round_seconds: float) -> None:
        """Cache a batch if it took long."""
        if round_seconds < LONG:
            return
        path = self.path(key, first)
        values = {"X": step.X, "Y": step.Y, "F": step.F}
        seconds = {"seconds": dict(step.seconds), "round_seconds": round_seconds}
        save_state(path, {"design": path.stem, **values, **seconds})

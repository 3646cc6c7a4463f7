"""What the tests of trials share: when to save, where to interrupt, what was written."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Proposal
from plumbline.store.folder import TrialFolder
from plumbline.store.spec import TrialSpec
from plumbline.trials import session
from plumbline.trials.checkpoint import Checkpoint, Ration
from plumbline.trials.log import Log, Step
from plumbline.trials.trial import Trial

Make = Callable[..., TrialSpec]
Register = Callable[..., None]
Rows = list[dict[str, Any]]

LATEST = 3
"""The last round of `cheap_trial`."""

POINTS = (
    "before the question",
    "before the answer",
    "after the answer",
    "before the save",
    "at its rename",
    "after the save",
)


def each() -> Ration:
    """Save after every round."""
    return Ration(math.inf)


class Pattern(Ration):
    """Save, or not, as a pattern says that repeats."""

    def __init__(self, pattern: Sequence[bool]) -> None:
        super().__init__()
        self.pattern = cycle(pattern)

    def due(self, seconds: float) -> bool:
        return next(self.pattern)


def rows_of(folder: TrialFolder) -> Rows:
    return parquet.read_table(folder.records_path).to_pylist()


def bytes_of(folder: TrialFolder) -> bytes:
    return folder.records_path.read_bytes()


def cheap_trial(make: Make, method: str) -> TrialSpec:
    """A noisy trial of `LATEST` rounds, pictures and holdout included."""
    problem = {"name": "forrester", "options": {"noise_std": 0.5}}
    snapshots = {"rounds": [1, 3], "points": 5}
    return make(problem, method, rounds=LATEST, size=3, holdout=4, snapshots=snapshots)


@contextmanager
def interrupted(iteration: int, point: str, error: BaseException) -> Iterator[list[str]]:
    """Raise `error` once, at `point` of round `iteration`; yields a list that is filled when it was raised."""
    raised: list[str] = []
    replacing = Path.replace

    def stop(here: str, now: int) -> None:
        if (here, now) == (point, iteration) and not raised:
            raised.append(here)
            raise error

    class Stopping(Trial):
        def begin(self) -> Step:
            stop("before the question", 0)
            stop("before the answer", 0)
            step = super().begin()
            stop("after the answer", 0)
            return step

        def request(self) -> AskRequest:
            stop("before the question", self.log.iteration + 1)
            return super().request()

        def answer(self, question: AskRequest, proposal: Proposal) -> Step:
            stop("before the answer", self.log.iteration + 1)
            step = super().answer(question, proposal)
            stop("after the answer", self.log.iteration + 1)
            return step

    class Saving(Checkpoint):
        def save(self, log: Log, method: dict[str, Any]) -> None:
            stop("before the save", log.iteration)

            def rename(self: Path, target: Path) -> Path:
                if target.name == "checkpoint.pt":
                    stop("at its rename", log.iteration)
                return replacing(self, target)

            with pytest.MonkeyPatch.context() as inner:
                inner.setattr(Path, "replace", rename)
                super().save(log, method)
            stop("after the save", log.iteration)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "Trial", Stopping)
        patch.setattr(session, "Checkpoint", Saving)
        yield raised

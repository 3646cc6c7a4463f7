"""Observers of running trials: a terminal, a log, a tracking server."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from plumbline.core.words import counted
from plumbline.store.records import Row
from plumbline.store.spec import TrialSpec


class Observer(Protocol):
    """Receives the start of a trial, each of its rounds, and its end; every trial has its own observer."""

    def start(self, key: str, spec: TrialSpec, done: int, best: float) -> None:
        """Receive the start of a trial after `done` earlier rounds, whose best observation is `best`; -inf of none."""

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Receive the rows of one round, or of a part of the initial design, and its seconds."""

    def end(self, error: str | None) -> None:
        """Receive the end of the trial, with its error if it failed."""


def title(spec: TrialSpec) -> str:
    """Return the title of a trial in logs: task, method and seed."""
    return f"{spec.task} {spec.method.label} seed {spec.seed}"


def failed(error: str, reasons: bool) -> str:
    """Return the words of a failure, with its reason where that is wanted."""
    return f"failed: {error}" if reasons else "failed"


class Best:
    """The best observation so far; none with several outcomes.

    Args:
        value: that of earlier rounds; -inf of none.
    """

    def __init__(self, value: float = -math.inf) -> None:
        self.value = value

    def add(self, rows: list[Row]) -> None:
        """Update the best by further rows."""
        for row in rows:
            if len(row["y"]) == 1 and row["y"][0] > self.value:
                self.value = row["y"][0]

    def __str__(self) -> str:
        return f"best {self.value:.5g}" if math.isfinite(self.value) else ""


class LastRound:
    """The last round of the trial that runs, for what is said of an interrupt.

    Of trials in lockstep, which differ by a round at most, it is that of the one observed last.
    """

    def __init__(self) -> None:
        self.title = ""

    def start(self, key: str, spec: TrialSpec, done: int, best: float) -> None:
        """Keep the title of the trial, and the round that it goes on from."""
        self.title, self.last = title(spec), done

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Keep the number of the round."""
        self.last = rows[-1]["iteration"]

    def end(self, error: str | None) -> None:
        """Receive the end of the trial."""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Add to an interrupt of the block, as a note, after which round of which trial it came."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if self.title:
                interrupt.add_note(f"{self.title}: interrupted after round {self.last}")
            raise


class LineLog:
    """Log lines: the first few rounds, the last, and at most one a second between.

    Args:
        stream: the output.
        clock: seconds.
        first: number of initial rounds that always have a line.
        reasons: whether the line of a failure says why.
    """

    def __init__(
        self,
        stream: TextIO = sys.stderr,
        clock: Callable[[], float] = time.monotonic,
        first: int = 10,
        reasons: bool = True,
    ) -> None:
        self.stream, self.clock, self.first, self.reasons = stream, clock, first, reasons

    def _write(self, text: str) -> None:
        print(time.strftime("%H:%M:%S"), " ".join(text.splitlines()), file=self.stream, flush=True)

    def start(self, key: str, spec: TrialSpec, done: int, best: float) -> None:
        """Write the title of the trial, and the round it resumes from."""
        self.title, self.rounds, self.best = title(spec), spec.budget.rounds, Best(best)
        self.count, self.next = 0, -math.inf
        resumed = f", going on after round {done}" if done else ""
        self._write(f"{self.title}: trial {key}, {counted(self.rounds, 'round')}{resumed}")

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Write the observations of the round."""
        self.best.add(rows)
        self.count += 1
        last, now = rows[-1], self.clock()
        if self.first < self.count and now < self.next and last["iteration"] < self.rounds:
            return
        self.next = now + 1.0
        y = ", ".join(f"{value:.5g}" for value in last["y"])
        best = f" {self.best}" if str(self.best) else ""
        events = f" [{', '.join(last['events'])}]" if last["events"] else ""
        self._write(
            f"{self.title}: round {last['iteration']}/{self.rounds} y={y}{best} "
            f"{seconds['round_seconds']:.2f} s{events}"
        )

    def end(self, error: str | None) -> None:
        """Write the outcome of the trial."""
        self._write(f"{self.title}: {failed(error, self.reasons) if error else 'done'}")


class ProgressBars:
    """A terminal with one bar per trial; `bar` makes the observer of one.

    Args:
        reasons: whether the line of a failure says why.
    """

    def __init__(self, reasons: bool = True) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}", markup=False),
            console=Console(stderr=True),  # standard output may be a file of evaluations
        )
        self.progress.start()
        self.reasons = reasons

    def bar(self) -> "ProgressBar":
        """Return the observer of one trial."""
        return ProgressBar(self)

    def close(self) -> None:
        """Restore the terminal."""
        self.progress.stop()


class ProgressBar:
    """A bar of one trial."""

    def __init__(self, bars: ProgressBars) -> None:
        self.progress, self.reasons = bars.progress, bars.reasons

    def start(self, key: str, spec: TrialSpec, done: int, best: float) -> None:
        """Add a bar."""
        self.title, self.best = title(spec), Best(best)
        self.task = self.progress.add_task(self.title, total=spec.budget.rounds, completed=done, best=str(self.best))

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Move the bar."""
        self.best.add(rows)
        self.progress.update(self.task, advance=bool(rows[-1]["iteration"]), best=str(self.best))

    def end(self, error: str | None) -> None:
        """Stop the bar, and say that the trial failed."""
        if error:
            from rich.text import Text

            words = Text.assemble(f"{self.title}: ", (failed(error, self.reasons), "red"))
            self.progress.console.print(words, soft_wrap=True)
        self.progress.refresh()

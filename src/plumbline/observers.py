"""What may watch a trial while it runs: a terminal, a log, a tracking server."""

import sys
import time
from typing import Protocol, TextIO

from plumbline.records import Row
from plumbline.specs import TrialSpec


class Observer(Protocol):
    """Is told when a trial starts, after each of its rounds, and when it ends."""

    def start(self, key: str, spec: TrialSpec, done: int) -> None:
        """Take note that a trial starts, with `done` rounds behind it already."""

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Take note of the rows of one round and of its seconds."""

    def end(self, error: str | None) -> None:
        """Take note that the trial is over, with an error or without."""


def title(spec: TrialSpec) -> str:
    """Return how a trial is called in logs: task, method and seed."""
    return f"{spec.task} {spec.method.label} seed {spec.seed}"


class LineLog:
    """One line a round, for files."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self.stream = stream

    def _write(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", file=self.stream, flush=True)

    def start(self, key: str, spec: TrialSpec, done: int) -> None:
        """Say which trial starts, and where it goes on from."""
        self.title, self.rounds = title(spec), spec.budget.rounds
        resumed = f", going on after round {done}" if done else ""
        self._write(f"{self.title}: trial {key}, {self.rounds} rounds{resumed}")

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Say what came of the round."""
        last = rows[-1]
        events = f" [{', '.join(last['events'])}]" if last["events"] else ""
        self._write(
            f"{self.title}: round {last['iteration']}/{self.rounds} y={last['y'][0]:.5g} "
            f"{seconds['round_seconds']:.2f} s{events}"
        )

    def end(self, error: str | None) -> None:
        """Say how it ended."""
        self._write(f"{self.title}: {'failed: ' + error if error else 'done'}")


class ProgressBar:
    """A bar a trial, for terminals."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}"),
        )
        self.progress.start()

    def start(self, key: str, spec: TrialSpec, done: int) -> None:
        """Add a bar."""
        self.task = self.progress.add_task(title(spec), total=spec.budget.rounds, completed=done, best="")

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Move the bar."""
        if rows[-1]["iteration"]:
            self.progress.update(self.task, advance=1, best=f"y {rows[-1]['y'][0]:.5g}")

    def end(self, error: str | None) -> None:
        """Leave the bar as it is and name the error."""
        if error:
            self.progress.console.print(f"[red]failed:[/red] {error}")
        self.progress.refresh()

    def close(self) -> None:
        """Give the terminal back."""
        self.progress.stop()

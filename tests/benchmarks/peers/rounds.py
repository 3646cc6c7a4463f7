"""Times of one round on the same data, measured in turn: a ratio exists within an interleaved run and nowhere else."""

import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import NamedTuple

import pandas as pd

from peers.ledger import Ledger
from peers.protocol import Contender, Instance, draw_instance
from plumbline.core.errors import PlumblineError

FEWEST = 5
"""Sweeps of an interleaved run, at least."""

WARM_UP = 12
"""Points of the round before the first sweep, which imports and compiles what a library needs."""

COLUMNS = {"run": str, "problem": str, "n": int, "sweep": int, "method": str, "cpu_s": float, "versions": str}


class Ratio(NamedTuple):
    """Median, least and greatest of the ratios of sweeps."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Timing:
    """CPU seconds of one contender in an interleaved run.

    Attributes:
        run: of the run; timings of one run were taken in turn.
        problem: whose values the data are.
        n: number of points told.
        method: name of the contender.
        versions: of what was timed.
        seconds: one number a sweep.
    """

    run: str
    problem: str
    n: int
    method: str
    versions: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median over sweeps."""
        return median(self.seconds)

    def over(self, reference: "Timing") -> Ratio:
        """Return the ratio to the time of another contender, sweep by sweep.

        Raises:
            PlumblineError: the two were not measured in turn in the same run.
        """
        if (self.run, self.problem, self.n) != (reference.run, reference.problem, reference.n):
            raise PlumblineError(
                f"{self.method} and {reference.method} were not measured in turn: "
                f"{self.problem} with {self.n} points in run {self.run}, "
                f"{reference.problem} with {reference.n} points in run {reference.run}"
            )
        ratios = [one / other for one, other in zip(self.seconds, reference.seconds, strict=True)]
        return Ratio(median(ratios), min(ratios), max(ratios))


def interleave(
    contenders: Sequence[Contender],
    instance: Instance,
    sweeps: int = FEWEST,
    clock: Callable[[], float] = process_time,
) -> list[Timing]:
    """Return the time of one round of each contender, A B A B ..., each time by a new peer told the same data.

    A contender that fails is named on standard error and left out.

    Args:
        contenders: in the order of a sweep.
        instance: whose initial design is told, without being timed.
        sweeps: how many, at least `FEWEST`.
        clock: by default the CPU time of this process, which leaves out what others take of a core.

    Raises:
        PlumblineError: too few sweeps.
    """
    if sweeps < FEWEST:
        raise PlumblineError(f"{sweeps} sweeps: a median of at least {FEWEST} is wanted")
    run = uuid.uuid4().hex[:8]
    seconds: dict[str, list[float]] = {}
    for contender in contenders:
        if _timed_ask(contender, instance.first(WARM_UP), clock) is not None:
            seconds[contender.name] = []
    for _ in range(sweeps):
        for contender in contenders:
            if contender.name in seconds:
                spent = _timed_ask(contender, instance, clock)
                if spent is None:
                    del seconds[contender.name]
                else:
                    seconds[contender.name].append(spent)
    size, versions = len(instance.y), {one.name: one.versions for one in contenders}
    return [
        Timing(run, instance.problem, size, name, versions[name], tuple(measured)) for name, measured in seconds.items()
    ]


def _timed_ask(contender: Contender, instance: Instance, clock: Callable[[], float]) -> float | None:
    """Return the time of a first round, None where it failed."""
    try:
        peer = contender.start(instance)
        started = clock()
        x = peer.ask()
        spent = clock() - started
        instance.inside(x)
    except Exception as error:  # a library may fail in its own way
        print(f"{contender.name} failed on {instance.problem}: {error!r}", file=sys.stderr)
        return None
    return spent


def keep_rounds(
    path: Path, contenders: Sequence[Contender], problem: str, n: int, sweeps: int = FEWEST
) -> list[Timing]:
    """Measure one setting, append a row a sweep and contender to the file at `path`, and return the timings."""
    timings = interleave(contenders, draw_instance(problem, 0, n), sweeps)
    ledger = Ledger(path, COLUMNS)
    for timing in timings:
        about = {key: value for key, value in asdict(timing).items() if key != "seconds"}
        for sweep, spent in enumerate(timing.seconds):
            ledger.append({**about, "sweep": sweep, "cpu_s": round(spent, 6)})
    return timings


def last_timings(path: Path) -> list[Timing]:
    """Return the timings of the last run on file of each setting; none where there is no file."""
    rows = Ledger(path, COLUMNS).rows()
    if rows.empty:
        return []
    last = rows.groupby(["problem", "n"], sort=False)["run"].last()
    kept = rows[rows["run"].isin(last)]
    return [
        Timing(*key, tuple(group.sort_values("sweep")["cpu_s"]))
        for key, group in kept.groupby(["run", "problem", "n", "method", "versions"], sort=False)
    ]


def rounds_table(timings: Sequence[Timing], ours: Sequence[str], decimals: int = 3) -> pd.DataFrame:
    """Return a row a setting and contender: CPU seconds a round, and the share that each of `ours` takes of them."""
    rows = []
    for reference in timings:
        row = {"problem": reference.problem, "n": reference.n, "method": reference.method}
        row["CPU s a round"] = f"{reference.median:.{decimals}f}"
        for name in ours:
            mine = [one for one in timings if one.method == name and one.run == reference.run]
            row[f"{name} / it"] = "–" if not mine else _words(mine[0].over(reference))
        rows.append(row)
    return pd.DataFrame(rows)


def _words(ratio: Ratio) -> str:
    return f"{ratio.median:.2g} ({ratio.low:.2g} to {ratio.high:.2g})"

"""The command `python -m peers`: measure, keep, and print."""

import argparse
import os
import platform
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from peers.ledger import Ledger
from peers.libraries import INSTALL, LIBRARIES, installed
from peers.ours import our_method
from peers.protocol import Contender
from peers.regret import COLUMNS, EVALUATIONS, PROBLEMS, compared, current, keep_regrets, regret_table
from peers.rounds import FEWEST, keep_rounds, last_timings, rounds_table
from plumbline.analysis.publish.markdown import table
from plumbline.api.running import one_thread
from plumbline.core.errors import PlumblineError

METHODS = ("ei", "logei", "ucb", "cucb")
ROUNDS = ("levy-5", "levy-20")
CALLS = {
    "call": str,
    "event": str,
    "when": str,
    "processor": str,
    "cores": int,
    "python": str,
    "load": str,
    "asked": str,
}
EVERY_PEER = 60
"""The number of points at which all peers are timed; at others BoTorch alone is."""


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser("python -m peers", description=__doc__)
    parser.add_argument("--methods", nargs="*", default=METHODS, help="of plumbline: ei logei:model.kernel=rbf")
    parser.add_argument("--peers", nargs="*", default=tuple(LIBRARIES), help="libraries: botorch optuna")
    parser.add_argument(
        "--sizes", nargs="*", type=int, default=(EVERY_PEER,), help="points of a timed round; none: no round"
    )
    parser.add_argument("--rounds", nargs="*", default=ROUNDS, help="problems of timed rounds")
    parser.add_argument("--sweeps", type=int, default=FEWEST, help="repeats of a timed round")
    parser.add_argument("--seeds", type=int, default=0, help="of runs to their last evaluation; 0: those on file")
    parser.add_argument("--problems", nargs="*", default=PROBLEMS, help="of these runs")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS, help="with the initial design")
    parser.add_argument(
        "--folder", type=Path, default=Path("results/peers"), help="of rounds.csv, regret.csv, table.md"
    )
    return parser.parse_args(arguments)


def load() -> str:
    """Return the load averages of 1, 5 and 15 minutes."""
    return " ".join(f"{one:.2f}" for one in os.getloadavg())


def now() -> str:
    """Return date and time, in UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M}"


def processor() -> str:
    """Return the model of the processor, or what the platform has of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


@contextmanager
def on_record(path: Path, asked: str) -> Iterator[None]:
    """Append where and under which load a call begins and ends to the file at `path`; one that is killed has no end."""
    ledger, call = Ledger(path, CALLS), uuid.uuid4().hex[:8]
    place = {"call": call, "processor": processor(), "cores": os.cpu_count() or 1, "asked": asked}
    place["python"] = platform.python_version()
    ledger.append({**place, "event": "start", "when": now(), "load": load()})
    yield
    ledger.append({**place, "event": "end", "when": now(), "load": load()})


def calls_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row a call: when, where, and the load averages at its start and its end."""
    start, end = (rows[rows["event"] == event].set_index("call") for event in ("start", "end"))
    ends = end[["when", "load"]].add_suffix(" at the end").reindex(start.index).fillna("–")
    starts = start[["processor", "cores", "python", "asked", "when", "load"]]
    return starts.rename(columns={"when": "when at the start", "load": "load at the start"}).join(ends)


def report(folder: Path, evaluations: int, notes: Sequence[str] = ()) -> str:
    """Return the tables of what is on file, in Markdown, below `notes` on this call."""
    timings, rows = last_timings(folder / "rounds.csv"), Ledger(folder / "regret.csv", COLUMNS).rows()
    used = {one.method: one.versions for one in timings}
    used |= dict(current(rows)[["method", "versions"]].itertuples(index=False, name=None))
    methods, peers = [one for one in used if one not in LIBRARIES], [one for one in used if one in LIBRARIES]
    parts = ["# plumbline beside its peers", *notes]
    if timings:
        about = f"CPU seconds and our share of them: medians (and range) of at least {FEWEST} sweeps in turn."
        parts += ["## One round on the same data", about, table(rounds_table(timings, methods))]
    rows = rows[rows["evaluations"] == evaluations]
    if len(rows):
        found = pd.DataFrame(compared(rows, methods, peers, evaluations))
        parts += [f"## Regret after {evaluations} evaluations", table(regret_table(rows, evaluations))]
        if len(found):
            parts += ["## Differences of log10 regret, seed by seed: below 0 the method is better", table(found)]
    calls = calls_table(Ledger(folder / "calls.csv", CALLS).rows())
    if len(calls):
        parts += ["## Calls, each on one thread", table(calls)]
    parts += ["## Versions", "\n".join(f"* {name}: {versions}" for name, versions in used.items())]
    return "\n\n".join(parts) + "\n"


def measure(asked: argparse.Namespace, ours: Sequence[Contender], peers: Sequence[Contender]) -> None:
    """Time rounds and run to the last evaluation as the command line asks, keeping every row."""
    for problem in asked.rounds:
        for n in asked.sizes:
            rivals = [one for one in peers if n == EVERY_PEER or one.name == "botorch"]
            keep_rounds(asked.folder / "rounds.csv", [*ours, *rivals], problem, n, asked.sweeps)
    keep_regrets(asked.folder / "regret.csv", [*ours, *peers], asked.problems, range(asked.seeds), asked.evaluations)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    asked = options(arguments)
    try:
        ours = [our_method(name) for name in asked.methods]
        peers, missing = installed(LIBRARIES, list(asked.peers))
        given = " ".join(sys.argv[1:] if arguments is None else arguments)
        with threadpool_limits(1), one_thread(), on_record(asked.folder / "calls.csv", given or "defaults"):
            measure(asked, ours, peers)
        absent = [f"Not installed: {', '.join(missing)}. `{INSTALL}` installs them."] if missing else []
        text = report(asked.folder, asked.evaluations, absent)
    except PlumblineError as error:
        raise SystemExit(f"error: {error}") from None
    (asked.folder / "table.md").write_text(text, encoding="utf-8")
    print(text)

"""Simple regret after a number of evaluations: a row a problem, contender and seed, and paired comparisons of these."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import pandas as pd

from peers.ledger import Ledger
from peers.protocol import Array, Contender, Instance, draw_instance
from plumbline.statistics.exact import Median
from plumbline.statistics.over_seeds import median_interval

PROBLEMS = (
    "branin",
    "hartmann-6",
    "levy-5",
    "ackley-10",
    "six-hump-camel",
    "ackley-2",
    "hartmann-3",
    "rosenbrock-3",
    "alpine-4",
    "styblinski-tang-6",
    "rosenbrock-6",
    "levy-10",
)
"""Noise-free, of 2 to 10 dimensions."""

INITIAL, EVALUATIONS = 10, 60

FLOOR = 1e-10
"""Regrets below it count as it: they are rounding of the optimum."""

COLUMNS = {
    "problem": str,
    "method": str,
    "seed": int,
    "evaluations": int,
    "regret": float,
    "cpu_s": float,
    "versions": str,
}
KEY = ["problem", "method", "seed", "evaluations", "versions"]
"""What a row is known by: another version of a method is another row."""


class Result(NamedTuple):
    """Simple regret at the end, and the CPU seconds of all asks and tells after the initial design."""

    regret: float
    cpu_s: float


def optimise(
    contender: Contender, instance: Instance, evaluations: int, clock: Callable[[], float] = process_time
) -> Result:
    """Run a contender from the initial design on until `evaluations` are spent.

    Raises:
        PlumblineError: a query outside of the box; anything else that a library raises comes through.
    """
    peer, best, spent = contender.start(instance), float(instance.y.max()), 0.0
    for _ in range(evaluations - len(instance.y)):
        started = clock()
        x = peer.ask()
        spent += clock() - started
        x = instance.inside(x)
        y = instance.value(x)
        started = clock()
        peer.tell(x, y)
        spent += clock() - started
        best = max(best, y)
    return Result(instance.optimum - best, spent)


def keep_regrets(
    path: Path,
    contenders: Sequence[Contender],
    problems: Sequence[str],
    seeds: Iterable[int],
    evaluations: int = EVALUATIONS,
    initial: int = INITIAL,
    draw: Callable[[str, int, int], Instance] = draw_instance,
) -> None:
    """Append the rows that the file at `path` does not have yet: seed by seed, so that a stopped run is balanced.

    A run that fails is named on standard error, leaves no row, and is tried again next time.
    """
    ledger = Ledger(path, COLUMNS)
    done = set(ledger.rows()[KEY].itertuples(index=False, name=None))
    warm: set[str] = set()
    for seed in seeds:
        for problem in problems:
            instance = None
            for contender in contenders:
                if (problem, contender.name, seed, evaluations, contender.versions) in done:
                    continue
                instance = instance or draw(problem, seed, initial)
                try:
                    if contender.name not in warm:  # imports and compilations are of no run
                        contender.start(instance).ask()
                        warm.add(contender.name)
                    result = optimise(contender, instance, evaluations)
                except Exception as error:  # a library may fail in its own way
                    print(f"{contender.name} failed on {problem}, seed {seed}: {error!r}", file=sys.stderr)
                    continue
                about = {"problem": problem, "method": contender.name, "seed": seed, "evaluations": evaluations}
                ledger.append({**about, **result._asdict(), "versions": contender.versions})


def current(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the versions of each method that were run last."""
    last = rows.groupby("method")["versions"].transform("last")
    return rows[rows["versions"] == last]


class Comparison(NamedTuple):
    """The difference of log10 regrets, method minus peer, seed by seed: below zero where the method is better.

    Attributes:
        problem, method, peer: of it.
        seeds: that both have.
        median: over seeds.
        low, high: 95% bootstrap interval of the median, over seeds.
        p: two-sided probability of the sign test, for this comparison alone.
    """

    problem: str
    method: str
    peer: str
    seeds: int
    median: float
    low: float
    high: float
    p: float


def log_regrets(rows: pd.DataFrame, problem: str, method: str) -> pd.Series:
    """Return log10 of a method's regrets on a problem, by seed."""
    of = rows[(rows["problem"] == problem) & (rows["method"] == method)].set_index("seed")["regret"]
    return np.log10(of.clip(lower=FLOOR).astype(np.float64))


def compared(rows: pd.DataFrame, methods: Sequence[str], peers: Sequence[str], evaluations: int) -> list[Comparison]:
    """Return the comparison of each method with each peer on each problem where they share a seed."""
    rows = current(rows[rows["evaluations"] == evaluations])
    return [
        _comparison(problem, method, peer, apart.to_numpy(dtype=np.float64))
        for problem in rows["problem"].unique()
        for method in methods
        for peer in peers
        if len(apart := (log_regrets(rows, problem, method) - log_regrets(rows, problem, peer)).dropna())
    ]


def _comparison(problem: str, method: str, peer: str, differences: Array) -> Comparison:
    low, middle, high = (float(end[0]) for end in median_interval(differences[:, np.newaxis]))
    inferred = Median(differences)
    p = min(1.0, 2 * min(inferred.p_above(0.0), inferred.p_below(0.0)))
    return Comparison(problem, method, peer, len(differences), middle, low, high, p)


def regret_table(rows: pd.DataFrame, evaluations: int) -> pd.DataFrame:
    """Return a row a problem and method: seeds, median regret, and median CPU seconds a round."""
    rows = current(rows[rows["evaluations"] == evaluations])
    rows = rows.assign(round_s=rows["cpu_s"] / (rows["evaluations"] - INITIAL))
    table = rows.groupby(["problem", "method"], sort=False).agg(
        seeds=("seed", "nunique"), regret=("regret", "median"), round_s=("round_s", "median")
    )
    return table.reset_index().rename(columns={"regret": "median regret", "round_s": "CPU s a round"})

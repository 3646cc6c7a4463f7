"""Ranks of the methods of the atlas, by track and by the cost of an evaluation.

docs/results/atlas-protocol.md describes them under "Descriptive": none of them is a test.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from plumbline.analysis.atlas.scores import TRIAL, trials

COSTS: Mapping[str, float] = {"1 second": 1.0, "1 minute": 60.0, "1 hour": 3600.0, "1 day": 86400.0}
"""Costs of an evaluation, in seconds."""

SOLVED = 0.1
"""Normalised regret within which a trial counts as solved."""

WITHIN = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Normalised regrets of performance profiles."""

NOT_ALONE = 2
"""Least number of methods on a task for a comparison."""


def beaten(scores: pd.DataFrame) -> pd.DataFrame:
    """Return, for each method and task, the share of the other methods on the task that have a higher mean over seeds.

    Of two methods with the same mean, each counts as half beaten by the other.

    Args:
        scores: a row a trial: `task`, `method`, and `score`, of which less is better; trials without one are left out.

    Returns:
        A row a method and task: `task`, `method`, `score`, its mean over seeds, and `beaten`.
    """
    means = scores.dropna(subset="score").groupby(["task", "method"], observed=True)["score"].mean().reset_index()
    of_task = means.groupby("task", observed=True)["score"]
    others = of_task.transform("size") - 1
    means["beaten"] = (others + 1 - of_task.rank(method="average")) / others
    return means[others >= NOT_ALONE - 1]


def standings(scores: pd.DataFrame, tracks: Mapping[str, Iterable[str]]) -> pd.DataFrame:
    """Return the methods on each track, ordered by the mean share of the other methods that they beat.

    Args:
        scores: as of `beaten`.
        tracks: tasks, by the name of their track.

    Returns:
        A row a track and method: `track`, `method`, `tasks`, the number that it has results on, and the means over them
        of `score` and `beaten`, with the standard error of the latter, `error`.
    """
    of_task = beaten(scores)
    found = []
    for track, tasks in tracks.items():
        here = of_task[of_task["task"].isin(list(tasks))].groupby("method", observed=True)
        table = pd.DataFrame(
            {
                "tasks": here.size(),
                "score": here["score"].mean(),
                "beaten": here["beaten"].mean(),
                "error": here["beaten"].sem(),
            }
        )
        table = table[table["tasks"] > 0].sort_values("beaten", ascending=False, kind="stable")
        found.append(table.reset_index().assign(track=track))
    columns = ["track", "method", "tasks", "score", "beaten", "error"]
    return pd.concat(found, ignore_index=True)[columns] if found else pd.DataFrame(columns=columns)


def at_cost(rounds: pd.DataFrame, cost: float) -> pd.DataFrame:
    """Return the regret after the time that all evaluations alone would take.

    A method that computes for as long as an evaluation takes has half of them by then. An evaluation that is at least
    half done counts, so that a method that takes next to no time has all of them.

    Args:
        rounds: as `scores.with_regret` returns them.
        cost: of an evaluation, in seconds.

    Returns:
        A row a trial: `task`, `method`, `seed`, and the last `normalised_regret` of that time, as `score`.
    """
    ordered = rounds.sort_values([*TRIAL, "round"], kind="stable")
    own = ordered["fit_seconds"].fillna(0) + ordered["acquire_seconds"].fillna(0)
    spent = (own + cost * (ordered["round"] > 0)).groupby([ordered[name] for name in TRIAL], observed=True).cumsum()
    whole = cost * ordered.groupby(TRIAL, observed=True)["round"].transform("max")
    in_time = (spent <= whole + cost / 2) | (ordered["round"] == 0)
    return ordered[in_time].groupby(TRIAL, observed=True)["normalised_regret"].last().rename("score").reset_index()


def performance_profile(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return the share of trials that end within a normalised regret; each task counts once.

    Args:
        rounds: as `scores.with_regret` returns them.

    Returns:
        A row a method and level: `method`, `within`, `share`.
    """
    ends = rounds.groupby(TRIAL, observed=True)["normalised_regret"].last().dropna()
    shares = {level: _share(ends <= level) for level in WITHIN}
    return pd.concat(shares, names=["within"]).rename("share").reset_index()[["method", "within", "share"]]


def data_profile(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return the share of trials that are solved, to within a tenth of the initial regret, after each share of rounds.

    Args:
        rounds: as `scores.with_regret` returns them.

    Returns:
        A row a method and tenth of the rounds: `method`, `spent` (0 to 1), `share`; each task counts once.
    """
    known = rounds.dropna(subset="normalised_regret")
    spent = known["round"] / known.groupby(TRIAL, observed=True)["round"].transform("max")
    solved = spent.where(known["normalised_regret"] <= SOLVED)
    first = solved.groupby([known[name] for name in TRIAL], observed=True).min()
    shares = {part: _share(first <= part) for part in np.linspace(0, 1, 21).round(2)}
    return pd.concat(shares, names=["spent"]).rename("share").reset_index()[["method", "spent", "share"]]


def _share(of_trials: pd.Series) -> pd.Series:
    """Return the mean over tasks of the share of seeds, by method."""
    return of_trials.groupby(level=["method", "task"], observed=True).mean().groupby(level="method").mean()


def ranks(rounds: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return `standings` on all tasks and each track by score, and on all tasks by what an evaluation costs.

    Args:
        rounds: as `scores.with_regret` returns them.
        tasks: as `edition.read_tasks` returns them.

    Returns:
        The columns of `standings`, and `cost`, a key of `COSTS`, empty where evaluations are counted.
    """
    there = tasks[tasks["measure"].notna()]
    every = {"all": there["task"]}
    tracks = {str(track): of["task"] for track, of in there.groupby("track", sort=False)}
    by_cost = {words: standings(at_cost(rounds, cost), every) for words, cost in COSTS.items()}
    found = {"": standings(trials(rounds), every | tracks), **by_cost}
    return pd.concat(found, names=["cost"]).reset_index(level="cost").reset_index(drop=True)


def profiles(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return performance and data profiles in one table: `profile`, `method`, `at` and `share`."""
    ends = performance_profile(rounds).rename(columns={"within": "at"}).assign(profile="performance")
    solved = data_profile(rounds).rename(columns={"spent": "at"}).assign(profile="data")
    return pd.concat([ends, solved], ignore_index=True)[["profile", "method", "at", "share"]]

"""Ranks of the methods of the atlas, by track and by the cost of an evaluation.

docs/results/atlas-protocol.md describes them under "Descriptive": none of them is a test.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from plumbline.analysis.atlas.over_tasks import mean_over_tasks
from plumbline.analysis.atlas.scores import TRIAL, trials

COSTS: Mapping[str, float] = {"1 second": 1.0, "1 minute": 60.0, "1 hour": 3600.0, "1 day": 86400.0}
"""Costs of an evaluation, in seconds."""

SOLVED = 0.1
"""Normalised regret within which a trial counts as solved."""

WITHIN = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Normalised regrets of performance profiles."""

ALL = "all"
"""In the place of a track: all tasks."""

NOT_ALONE = 2
"""Least number of methods on a task for a comparison."""


def beaten(scores: pd.DataFrame) -> pd.DataFrame:
    """Return, for each method and task, the share of the other methods on the task that have a higher mean over seeds.

    Of two methods with the same mean, each counts as half beaten by the other.

    Args:
        scores: one row per trial: `task`, `method`, and `score`, of which less is better; others do not count.

    Returns:
        One row per method and task: `task`, `method`, `score`, its mean over seeds, and `beaten`.
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
        One row per track and method: `track`, `method`, `tasks`, the number that it has results on, and the means over
        them of `score` and `beaten`, the latter with its 95% interval over tasks, `low` to `high`.
    """
    of_task = beaten(scores)
    found = []
    for track, tasks in tracks.items():
        here = of_task[of_task["task"].isin(list(tasks))]
        if not here.empty:
            shares = here.pivot(index="method", columns="task", values="beaten")
            table = mean_over_tasks(shares).rename(columns={"mean": "beaten"})
            table["score"] = here.groupby("method", observed=True)["score"].mean()
            found.append(table.sort_values("beaten", ascending=False, kind="stable").reset_index().assign(track=track))
    columns = ["track", "method", "tasks", "score", "beaten", "low", "high"]
    return pd.concat(found, ignore_index=True)[columns] if found else pd.DataFrame(columns=columns)


def at_cost(rounds: pd.DataFrame, cost: float) -> pd.DataFrame:
    """Return the regret after the time that all evaluations alone would take.

    A method that computes for as long as an evaluation takes has half of them by then. An evaluation that is at least
    half done counts, so that a method that takes next to no time has all of them.

    Args:
        rounds: as `scores.with_regret` returns them.
        cost: of an evaluation, in seconds.

    Returns:
        One row per trial: `task`, `method`, `seed`, and the last `normalised_regret` of that time, as `score`.
    """
    ordered = rounds.sort_values([*TRIAL, "round"], kind="stable")
    own = ordered["fit_seconds"].fillna(0) + ordered["acquire_seconds"].fillna(0)
    spent = (own + cost * (ordered["round"] > 0)).groupby([ordered[name] for name in TRIAL], observed=True).cumsum()
    whole = cost * ordered.groupby(TRIAL, observed=True)["round"].transform("max")
    in_time = (spent <= whole + cost / 2) | (ordered["round"] == 0)
    return ordered[in_time].groupby(TRIAL, observed=True)["normalised_regret"].last().rename("score").reset_index()


def performance_profile(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the seeds of a method that end within a normalised regret on a task.

    Args:
        rounds: as `scores.with_regret` returns them.

    Returns:
        One row per method and level of `WITHIN`, `method` and `at` in the index, and one column per task.
    """
    ends = rounds.groupby(TRIAL, observed=True)["normalised_regret"].last().dropna()
    return _by_task({level: ends <= level for level in WITHIN})


def data_profile(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the seeds that are solved, to within `SOLVED`, after each twentieth of the rounds.

    Args:
        rounds: as `scores.with_regret` returns them.

    Returns:
        As `performance_profile`, with the share of the rounds, 0 to 1, as `at`.
    """
    known = rounds.dropna(subset="normalised_regret")
    spent = known["round"] / known.groupby(TRIAL, observed=True)["round"].transform("max")
    solved = spent.where(known["normalised_regret"] <= SOLVED)
    first = solved.groupby([known[name] for name in TRIAL], observed=True).min()
    return _by_task({part: first <= part for part in np.linspace(0, 1, 21).round(2)})


def _by_task(of_trials: Mapping[float, pd.Series]) -> pd.DataFrame:
    """Return the share of the seeds of each method for which something is true: one row per method and key."""
    shares = pd.concat(
        {at: one.groupby(level=["method", "task"], observed=True).mean() for at, one in of_trials.items()}, names=["at"]
    )
    return shares.unstack("task").reorder_levels(["method", "at"]).sort_index()


def ranks(rounds: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return `standings` on all tasks and each track by score, and on all tasks by what an evaluation costs.

    Args:
        rounds: as `scores.with_regret` returns them.
        tasks: as `edition.read_tasks` returns them.

    Returns:
        The columns of `standings`, and `cost`, a key of `COSTS`, empty where evaluations are counted.
    """
    tracks = tracks_of(tasks)
    every = {ALL: tracks[ALL]}
    by_cost = {words: standings(at_cost(rounds, cost), every) for words, cost in COSTS.items()}
    found = {"": standings(trials(rounds), tracks), **by_cost}
    return pd.concat(found, names=["cost"]).reset_index(level="cost").reset_index(drop=True)


def tracks_of(tasks: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the tasks with results, all of them first, then those of each track.

    Args:
        tasks: as `edition.read_tasks` returns them.
    """
    there = tasks[tasks["measure"].notna()]
    return {ALL: there["task"], **{str(track): of["task"] for track, of in there.groupby("track", sort=False)}}


def profiles(rounds: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return performance and data profiles, on all tasks and on each track; each task counts once.

    Args:
        rounds: as `scores.with_regret` returns them.
        tasks: as `edition.read_tasks` returns them.

    Returns:
        One row per profile (`performance` or `data`), `track`, `method` and place `at` on its axis: the number of
        `tasks` and the mean `share` over them, with its 95% interval, `low` to `high`.
    """
    found = {}
    for profile, of_task in {"performance": performance_profile(rounds), "data": data_profile(rounds)}.items():
        for track, of in tracks_of(tasks).items():
            here = of_task.loc[:, of_task.columns.isin(of)].dropna(how="all")
            if not here.empty:
                found[profile, track] = mean_over_tasks(here).rename(columns={"mean": "share"})
    columns = ["profile", "track", "method", "at", "tasks", "share", "low", "high"]
    return pd.concat(found, names=["profile", "track"]).reset_index()[columns]

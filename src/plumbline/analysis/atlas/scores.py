"""One row a trial: how much of the initial regret is left, how well its forecasts were calibrated, and what it took.

docs/results/atlas-protocol.md, "Metrics".
"""

import numpy as np
import pandas as pd

from plumbline.analysis.atlas.rounds import LEVELS

TRIAL = ["task", "method", "seed"]

EARLY = 10
"""Number of rounds of the score of the first rounds."""


def with_regret(rounds: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return rounds with the columns `regret` and `share`, the regret in units of that of the initial design.

    Where a task's optimum is unknown, the best value of any trial stands for it. `share` is NaN where the initial
    design has the optimum.

    Args:
        rounds: as `edition.read_rounds` returns them, with all methods of a task.
        tasks: as `edition.read_tasks` returns them.
    """
    found = rounds.groupby("task", observed=True)["best"].max()
    known = tasks.set_index("task")["optimum"].reindex(found.index.astype(str)).to_numpy()
    greatest = np.fmax(known, found.to_numpy())  # a value may be a rounding error beyond the optimum
    regret = greatest[found.index.get_indexer(pd.Index(rounds["task"]))] - rounds["best"]
    first = regret.where(rounds["round"] == 0)
    begun = first.groupby([rounds[name] for name in TRIAL], observed=True).transform("first")
    return rounds.assign(regret=regret, share=(regret / begun).where(begun > 0))


def trials(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return a row a trial.

    The columns are `task`, `method`, `seed`; `score`, the share of the initial regret that is left, its mean over the
    rounds, `early` that of the first ten, and `final` the share after the last; `calibration_error`, `first_half` that
    of the first half, and the mean `nll`; and `seconds` of fit and search, the median over rounds.

    Args:
        rounds: with the columns of `with_regret`.
    """
    queries = rounds[rounds["round"] > 0]
    of = queries.groupby(TRIAL, observed=True)
    last = of["round"].transform("max")
    found = pd.DataFrame(
        {
            "score": of["share"].mean(),
            "early": queries[queries["round"] <= EARLY].groupby(TRIAL, observed=True)["share"].mean(),
            "final": of["share"].last(),
            "calibration_error": calibration_error(queries),
            "first_half": calibration_error(queries[queries["round"] <= last / 2]),
            "nll": of["nll"].mean(),
            "seconds": (queries["fit_seconds"].fillna(0) + queries["acquire_seconds"].fillna(0))
            .groupby([queries[name] for name in TRIAL], observed=True)
            .median(),
        }
    )
    return found.reset_index()


def calibration_error(queries: pd.DataFrame) -> pd.Series:
    """Return the mean over levels of the distance between level and coverage of each trial; NaN without forecasts.

    Args:
        queries: rounds after the initial design.
    """
    of = queries[[*TRIAL, *LEVELS]].astype(dict.fromkeys(LEVELS, float)).groupby(TRIAL, observed=True)
    coverage = of[list(LEVELS)].mean()
    levels = pd.Series({name: 1 - alpha for name, alpha in LEVELS.items()})
    return (coverage - levels).abs().mean(axis=1, skipna=False)

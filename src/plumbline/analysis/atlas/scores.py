"""One row a trial: how much of the initial regret is left, how well its forecasts were calibrated, and what it took.

docs/results/atlas-protocol.md, "Metrics".
"""

import pandas as pd

from plumbline.analysis.atlas.rounds import LEVELS

TRIAL = ["task", "method", "seed"]

EARLY = 10
"""Number of rounds of the score of the first rounds."""


NORMALISED = {"best": "normalised_regret", "incumbent": "observed_regret", "recommended": "recommended_regret"}
"""Values of rounds, with the names of the regrets that they leave, in units of the initial design's."""


def with_regret(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return rounds with their `regret`, and the columns `NORMALISED`, in units of that of the initial design.

    Where a trial's optimum is unknown, the best value of any trial on the task stands for it. Normalised regrets are
    NaN where the initial design has the optimum, and at most 1: a noisy observation, or a recommended point, can be
    worse than the best of the initial design by thousands of its regrets.

    Args:
        rounds: as `edition.read_rounds` returns them, with all methods of a task.
    """
    optimum = rounds["optimum"].fillna(rounds.groupby("task", observed=True)["best"].transform("max"))
    # A value may be a rounding error beyond the optimum.
    regrets = {name: (optimum - rounds[of]).clip(lower=0) for of, name in NORMALISED.items()}
    first = regrets["normalised_regret"].where(rounds["round"] == 0)
    begun = first.groupby([rounds[name] for name in TRIAL], observed=True).transform("first")
    normalised = {name: (regret / begun).where(begun > 0).clip(upper=1) for name, regret in regrets.items()}
    return rounds.assign(regret=regrets["normalised_regret"], **normalised)


def trials(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return one row per trial.

    The columns are `task`, `method`, `seed`; `score`, the mean normalised regret over the rounds, `early` that of
    the first ten, and `final` that after the last; after the last round, `observed` that of the best observation, and
    `recommended` that of the point that the method recommends; `calibration_error`, `first_half` that
    of the first half, and the mean `nll`; and `seconds` of fit and search, the median over rounds.

    Args:
        rounds: with the columns of `with_regret`.
    """
    queries = rounds[rounds["round"] > 0]
    of = queries.groupby(TRIAL, observed=True)
    last = of["round"].transform("max")
    found = pd.DataFrame(
        {
            "score": of["normalised_regret"].mean(),
            "early": queries[queries["round"] <= EARLY].groupby(TRIAL, observed=True)["normalised_regret"].mean(),
            "final": of["normalised_regret"].last(),
            "observed": of["observed_regret"].last(),
            "recommended": of["recommended_regret"].last(),
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

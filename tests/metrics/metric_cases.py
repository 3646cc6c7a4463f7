"""Rows of trials, for metrics."""

from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd

from plumbline.metrics.frames import frame_of

Row = dict[str, Any]


CONSTRAINED = {"violation", "feasible", "penalty_regret", "log_penalty_regret"}


def frame(*trials: list[Row]) -> pd.DataFrame:
    """Return the rows of trials as the analysis has them in memory."""
    return frame_of(made.table(row for rows in trials for row in rows))


def several(F: np.ndarray, roles: list[str], seed: int = 0, ref_point: list[float] | None = None) -> list[Row]:
    """Return a trial with these noise-free outcomes, observed without noise."""
    trial = made.trial(seed=seed, rounds=len(F) - made.INITIAL, optimum=1.0, model=False)
    for row, f in zip(trial, F, strict=True):
        row |= {"y": list(f), "f": list(f), "roles": roles, "ref_point": ref_point}
    return trial

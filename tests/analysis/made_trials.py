"""Scores of a few trials, made by hand."""

import numpy as np
import pandas as pd


def trials_of(**scores: dict[str, list[float]]) -> pd.DataFrame:
    """Return trials with these scores, by method and task; seeds are 0, 1, ..."""
    rows = [
        (task, method, seed, score, score / 2, 0.1, 1.0)
        for method, of_task in scores.items()
        for task, numbers in of_task.items()
        for seed, score in enumerate(numbers)
    ]
    return pd.DataFrame(rows, columns=["task", "method", "seed", "score", "final", "calibration_error", "seconds"])


TRIALS = trials_of(
    mine={"a": [0.1, 0.3], "b": [0.5, 0.7, 0.6], "c": [np.nan]},
    good={"a": [0.2, 0.1], "b": [0.1, 0.2], "c": [0.0]},
    tied={"a": [0.2, 0.2], "b": [0.6]},
    part={"a": [0.0, 0.0]},
)

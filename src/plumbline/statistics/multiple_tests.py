"""Corrections of p-values for the number of tests."""

from collections.abc import Sequence

import numpy as np


def holm(probabilities: Sequence[float]) -> list[float]:
    """Return the p-values after Holm's correction, which bounds the family-wise error rate; Holm (1979)."""
    order = np.argsort(probabilities)
    steps = np.asarray(probabilities)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(p) for p in corrected]

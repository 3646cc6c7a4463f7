"""Coverage and widths of sets."""

import math

import made_evidence as made
import numpy as np
from metric_cases import frame

from plumbline.metrics.registry import by_round


def test_sets_that_are_the_whole_line_are_vacuous() -> None:
    trial = made.trial(rounds=3)
    for row, width in zip(trial[made.INITIAL :], (math.inf, 2.0, math.inf), strict=True):
        row["width"] = [width, 1.0]
    np.testing.assert_allclose(by_round(frame(trial), "vacuous_sets").to_numpy(), [[1.0, 0.5, 2 / 3]])

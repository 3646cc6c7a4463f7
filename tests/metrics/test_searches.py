"""How well methods search."""

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from metric_cases import frame

from plumbline.metrics.registry import by_round, metric


def audited(pairs: list[tuple[float, float] | None]) -> pd.DataFrame:
    """Return a trial with these utilities of the search and the audit; None where none were noted."""
    trial = made.trial(rounds=len(pairs))
    for row, pair in zip(trial[made.INITIAL :], pairs, strict=True):
        row["notes"] = [] if pair is None else [("utility_of_search", pair[0]), ("utility_of_audit", pair[1])]
    return frame(trial)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(1.0, 1.0), (0.4, 1.0), (0.6, 1.0), (2.0, 1.0)], [0, 1 / 2, 1 / 3, 1 / 4]),
        ([(0.0, 0.0), (0.0, 1e-300), None, (1.0, 0.0)], [0, 1 / 2, 1 / 2, 1 / 3]),
    ],
)
def test_a_search_fails_that_finds_less_than_half(
    pairs: list[tuple[float, float] | None], expected: list[float]
) -> None:
    np.testing.assert_allclose(by_round(audited(pairs), "failed_searches").to_numpy(), [expected])


def test_half_of_a_negative_utility_is_not_defined() -> None:
    assert metric(audited([(-3.0, -1.0), (-1.0, 2.0)]), "failed_searches").isna().all()

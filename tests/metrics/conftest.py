"""The usual rows."""

import made_evidence as made
import pandas as pd
import pytest
from metric_cases import frame


@pytest.fixture(params=[1, 3], ids=["q1", "q3"])
def rows(request: pytest.FixtureRequest) -> pd.DataFrame:
    """Three seeds of one method on one task, not in order of seeds."""
    return frame(*(made.trial(seed=seed, rounds=4, q=request.param) for seed in (2, 0, 1)))

"""Evaluations that failed: methods learn that they were tried."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from method_cases import CASES, WITHOUT_MODEL, Case, outcomes_for
from situations import ask, box
from torch import Tensor

from plumbline.core.history import History
from plumbline.core.outcomes import Outcome, Role
from plumbline.methods.base import build_method
from plumbline.methods.composed import failures_as_worst

ROLES: dict[Role, Any] = {"objective": min, "at_least_zero": min, "zero": lambda values: max(values, key=abs)}

VALUES = st.floats(-10, 10) | st.just(math.nan)


@given(
    rows=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8), roles=st.tuples(*2 * [st.sampled_from([*ROLES])])
)
def test_a_failure_has_the_worst_observation_of_each_outcome(
    rows: list[tuple[float, float]], roles: tuple[Role, Role]
) -> None:
    outcomes = [Outcome(f"y{i}", role) for i, role in enumerate(roles)]
    history = History(torch.zeros(len(rows), 1).double(), torch.tensor(rows).double(), 1)
    found = failures_as_worst(history, outcomes).Y.tolist()
    observed = [[row[i] for row in rows if not math.isnan(row[i])] for i in range(2)]
    for row, kept in zip(rows, found, strict=True):
        failed = all(map(math.isnan, row)) and all(observed)
        expected = [ROLES[role](values) for role, values in zip(roles, observed, strict=True)] if failed else row
        assert kept == pytest.approx(list(expected), nan_ok=True)


FOREIGN = {"botorch-loop", "offline"}
"""BoTorch's own loop, which leaves failures out, and what never proposes."""

WITH_MODEL = [case for case in CASES if case[0] not in WITHOUT_MODEL | FOREIGN]


@pytest.mark.slow
@pytest.mark.parametrize("case", WITH_MODEL, ids=str)
def test_a_point_that_failed_is_not_proposed_again(case: Case) -> None:
    """Each round fails where it is asked, so that a method that learns nothing of it would stay there."""
    name, options = case
    place = box(**outcomes_for(name))
    method, history = build_method(name, options, place.domain), place.history
    asked: list[Tensor] = []
    for _ in range(4):
        X = ask(method, history, 1).X
        asked.append(X)
        failed = torch.full((1, history.Y.shape[-1]), torch.nan, dtype=torch.float64)
        history = History(torch.cat([history.X, X]), torch.cat([history.Y, failed]), history.initial)
    widths = place.domain.bounds[1] - place.domain.bounds[0]
    points = torch.cat(asked) / widths
    assert torch.pdist(points).min() > 1e-6

"""The package bayesian-optimization."""

import pytest
from peers_cases import installed, on_a_hill
from situations import ask, box


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 4])
def test_a_batch_of_bayesian_optimization_has_no_point_twice(q: int) -> None:
    X = ask(installed("bayesian-optimization", {}, box()), on_a_hill(6), q).X
    assert len(X.unique(dim=0)) == q

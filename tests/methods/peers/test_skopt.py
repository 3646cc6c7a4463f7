"""The optimiser of scikit-optimize."""

import math

import numpy as np
import pytest
from peers_cases import hill, installed, on_a_hill
from situations import ask, box

from plumbline.core.history import History


@pytest.mark.slow
def test_the_portfolio_of_skopt_goes_on_with_its_gains() -> None:
    """Two rounds of a method have the gains of an optimiser that is kept, whose members' candidates are its own."""
    method, history = installed("skopt", {}, box()), on_a_hill(8)
    X = ask(method, history, 1).X
    state = method.state_dict()
    assert state["gains"] == [0.0, 0.0, 0.0]
    assert np.array(state["candidates"]).shape == (3, 2)
    more = history.join(X, hill(X))
    ask(method, more, 1, seed=6)
    gains = np.array(method.state_dict()["gains"])
    # The model is of costs: what a candidate gains is minus its predicted cost.
    optimiser = method.optimiser(0, 1)  # type: ignore[attr-defined]
    for x, y in zip(more.X.numpy(), more.Y[:, 0].tolist(), strict=True):
        optimiser.tell(x, y)
    optimiser.ask(1)
    predicted = optimiser.optimizer.models[-1].predict(np.array(state["candidates"]))
    np.testing.assert_allclose(gains, -predicted, rtol=0.05, atol=0.05)


def test_one_acquisition_function_of_skopt_has_no_memory() -> None:
    method = installed("skopt", {"acquisition": "EI"}, box())
    ask(method, on_a_hill(8), 1)
    assert method.state_dict() == {}


def test_a_history_without_a_row_that_failed_is_the_same_to_skopt() -> None:
    method, history = installed("skopt", {"acquisition": "EI"}, box()), on_a_hill(8)
    Y = history.Y.clone()
    Y[3] = math.nan
    rest = [i for i in range(8) if i != 3]
    one = ask(method, History(history.X, Y, 8), 1).X
    assert one.equal(ask(method, History(history.X[rest], Y[rest], 7), 1).X)

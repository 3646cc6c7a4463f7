"""Optimisers of libraries that are kept from round to round, as the benchmarks keep them."""

import gc
import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peers_cases import CASES, hill, installed, on_a_hill
from situations import ask, box

from plumbline.core.history import History
from plumbline.methods.peers.adapter import OptimiserMethod, quiet

KEPT = [(name, options) for name, options in CASES if name not in ("botorch-loop", "cma-es", "ask-tell")]
LABELS = ["-".join([name, *map(str, options.values())]) for name, options in KEPT]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), KEPT, ids=LABELS)
def test_values_are_those_of_the_points_asked_for_in_their_order(name: str, options: dict[str, Any]) -> None:
    method, history = installed(name, options, box()), on_a_hill(11)
    assert isinstance(method, OptimiserMethod)
    with quiet():
        optimiser = method.optimiser(0, 1)
        for x, y in zip(history.X.numpy(), history.Y[:, 0].tolist(), strict=True):
            optimiser.tell(x, y)
        first = optimiser.ask(1)
        optimiser.tell(first[0], -1.0)
        second = optimiser.ask(1)
        optimiser.tell(second[0], math.nan)
        third = optimiser.ask(1)
    X = np.concatenate([first, second, third])
    assert X.shape == (3, 2)
    assert not np.array_equal(first, second)


@pytest.fixture
def study() -> Callable[[str], Any]:
    """Return the method `optuna` with a sampler."""
    return lambda sampler: installed("optuna", {"sampler": sampler}, box())


def test_trials_of_optuna_have_their_values_and_states(study: Callable[[str], Any]) -> None:
    from plumbline.methods.peers.optuna import OptunaStudy

    method, history = study("tpe"), on_a_hill(3)
    with quiet():
        made = OptunaStudy(method.sides, 0)
        values = [*history.Y[:2, 0].tolist(), math.nan]
        for x, y in zip(history.X.numpy(), values, strict=True):
            made.tell(x, y)
        x = made.ask(1)
        made.tell(x[0], math.nan)
    assert [trial.state.name for trial in made.study.trials] == ["COMPLETE", "COMPLETE", "FAIL", "FAIL"]
    assert made.study.best_value == max(values[:2])
    assert list(made.study.trials[0].params.values()) == history.X[0].tolist()


def test_a_batch_of_optuna_takes_note_of_running_trials(study: Callable[[str], Any]) -> None:
    X = ask(study("gp"), on_a_hill(12), 3).X
    assert len(X.unique(dim=0)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 4])
def test_a_batch_of_bayesian_optimization_has_no_point_twice(q: int) -> None:
    X = ask(installed("bayesian-optimization", {}, box()), on_a_hill(6), q).X
    assert len(X.unique(dim=0)) == q


@pytest.mark.slow
def test_smac_leaves_no_files_and_warns_of_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        ask(installed("smac", {}, box()), on_a_hill(6), 1)
        gc.collect()
    assert list(tmp_path.iterdir()) == []


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

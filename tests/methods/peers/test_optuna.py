"""Optuna's studies."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from peers_cases import installed, on_a_hill
from situations import ask, box

from plumbline.methods.peers.adapter import quiet


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

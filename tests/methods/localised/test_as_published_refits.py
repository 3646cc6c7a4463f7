"""Hyperparameters that are fitted in some rounds alone."""

import math

import pytest
import torch
from situations import BOX, objective, rows

from plumbline.core.history import History
from plumbline.methods.localised.as_published import RefitSchedule
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.process import GP

OPTIONS = ModelOptions(priors="botorch-0.9")
INITIAL = 4


def history(asked: int) -> History:
    """Return a history before round `asked + 1`."""
    X = rows(INITIAL + asked, 3)
    return History(X, objective(X), INITIAL)


def process(asked: int, refits: RefitSchedule | None = None) -> GP:
    return (refits or RefitSchedule(3, OPTIONS, BOX)).process(history(asked))


def fitted(asked: int) -> GP:
    data = history(asked)
    return fit_process(data.X, data.Y, BOX, OPTIONS)


@pytest.mark.parametrize("asked", [0, 1])
def test_before_the_first_fit_they_are_initial(asked: int) -> None:
    at = process(asked).at
    assert at.lengthscale.tolist() == pytest.approx([math.log(2)] * 2)
    assert (at.outputscale, at.constant) == (pytest.approx(math.log(2)), 0.0)
    assert at.noise.tolist() == pytest.approx([2.0])


@pytest.mark.parametrize("asked", [2, 5])
def test_they_are_fitted_where_it_is_time(asked: int) -> None:
    assert torch.equal(process(asked).at.lengthscale, fitted(asked).at.lengthscale)


@pytest.mark.parametrize(("asked", "last"), [(3, 2), (4, 2), (6, 5)])
def test_in_between_data_are_added_to_what_was_fitted(asked: int, last: int) -> None:
    found, data = process(asked), history(asked)
    assert torch.equal(found.at.lengthscale, fitted(last).at.lengthscale)
    assert len(found.y) == len(data)
    assert found.y.mean().abs() < 1e-12
    assert found.y.std().item() == pytest.approx(1.0)


def test_one_that_is_resumed_is_where_it_was() -> None:
    whole = RefitSchedule(3, OPTIONS, BOX)
    for asked in range(8):
        found = process(asked, whole)
        assert torch.equal(found.a, process(asked).a)


def test_what_was_fitted_is_not_taken_for_that_of_other_data() -> None:
    refits = RefitSchedule(3, OPTIONS, BOX)
    process(4, refits)
    data = history(4)
    other = History(data.X, -data.Y.flip(0), INITIAL)
    assert torch.equal(
        refits.process(other).at.lengthscale, RefitSchedule(3, OPTIONS, BOX).process(other).at.lengthscale
    )


def test_every_round_is_a_fit_by_default() -> None:
    data = history(1)
    found = RefitSchedule(1, OPTIONS, BOX).process(data)
    assert torch.equal(found.at.lengthscale, fitted(1).at.lengthscale)


def test_raw_inputs_stay_raw_in_between() -> None:
    raw = ModelOptions(priors="botorch-0.9", inputs="raw")
    data = history(1)
    assert torch.equal(RefitSchedule(3, raw, BOX).process(data).U, data.X)
    assert torch.equal(RefitSchedule(1, raw, BOX).process(data).U, data.X)

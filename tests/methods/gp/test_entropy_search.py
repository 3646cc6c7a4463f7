"""Entropy searches where there is nothing to learn, or their arithmetic ends: an event, and a proposal all the same."""

import warnings

import pytest
import torch
from linear_operator.utils.errors import NanError, NotPSDError
from situations import BOX, Situation, ask, box, table

from plumbline.acquisition.information.entropy_search import EntropySearch
from plumbline.acquisition.information.paths import Peaks
from plumbline.core.history import History
from plumbline.methods.base import Proposal, build_method
from plumbline.methods.gp import entropy_search as information
from plumbline.methods.gp.entropy_search import InformationFailedWarning, NothingToLearnWarning

NAMES = ["mes", "pes", "jes"]
FEW = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}, "mc_samples": 8, "optima": 4}


def proposed(name: str, place: Situation, q: int = 1) -> tuple[Proposal, list[type[Warning]]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ask(build_method(name, FEW, place.domain), place.history, q)
    return found, [warning.category for warning in caught]


def improvement(place: Situation) -> torch.Tensor:
    quick = {name: FEW[name] for name in ("search", "mc_samples")}
    nei = ask(build_method("nei", quick, place.domain), place.history, 1)
    return nei.acquisition(place.history.X)


def in_box(X: torch.Tensor) -> bool:
    return bool(torch.isfinite(X).all() and (BOX[0] <= X).all() and (BOX[1] >= X).all())


@pytest.mark.parametrize("name", NAMES)
def test_usually_there_is_something_to_learn(name: str) -> None:
    proposal, events = proposed(name, box())
    assert in_box(proposal.X)
    assert not {NothingToLearnWarning, InformationFailedWarning} & set(events)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_where_all_optima_are_the_same_noisy_improvement_is_asked(
    name: str, q: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = Peaks(BOX[:1].expand(4, 2), torch.full((4,), 200.0, dtype=torch.float64))
    monkeypatch.setattr(information, "peaks", lambda *_: same)
    proposal, events = proposed(name, box(), q)
    assert NothingToLearnWarning in events
    assert proposal.X.shape == (q, 2)
    assert in_box(proposal.X)
    if q == 1:
        torch.testing.assert_close(proposal.acquisition(box().history.X), improvement(box()))


@pytest.mark.parametrize("name", NAMES)
def test_draws_that_are_no_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Peaks(torch.full((4, 2), torch.nan).double(), torch.full((4,), torch.nan).double())
    monkeypatch.setattr(information, "peaks", lambda *_: lost)
    proposal, events = proposed(name, box())
    assert NothingToLearnWarning in events
    assert in_box(proposal.X)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 6])
def test_a_constant_objective(name: str, n: int) -> None:
    place = box(n)
    constant = History(place.history.X, torch.full_like(place.history.Y, 7.0), n)
    proposal, _ = proposed(name, Situation(place.domain, constant))
    assert in_box(proposal.X)
    assert torch.isfinite(proposal.acquisition(place.history.X)).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_point_over_and_over(name: str) -> None:
    place = box(4)
    again = History(place.history.X[:1].repeat(4, 1), place.history.Y[:1].repeat(4, 1), 4)
    proposal, _ = proposed(name, Situation(place.domain, again))
    assert in_box(proposal.X)


@pytest.mark.parametrize(
    "error", [NanError("no number"), NotPSDError("no factor"), torch.linalg.LinAlgError("no factor")]
)
@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_that_ends_in_the_search(name: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> torch.Tensor:
        raise error

    monkeypatch.setattr(EntropySearch, "forward", fails)
    proposal, events = proposed(name, box())
    assert InformationFailedWarning in events
    assert in_box(proposal.X)


@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_that_ends_before_the_search(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise NotPSDError("no factor")

    monkeypatch.setattr(EntropySearch, "__init__", fails)
    proposal, events = proposed(name, box())
    assert InformationFailedWarning in events
    assert in_box(proposal.X)


@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_no_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EntropySearch, "forward", lambda self, X: (0 * X + torch.nan).sum((-2, -1)))
    place = table()
    proposal, events = proposed(name, place)
    assert InformationFailedWarning in events
    assert in_box(proposal.X)

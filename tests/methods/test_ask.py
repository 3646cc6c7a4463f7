"""Requests to methods, and the isolation in which they are answered."""

import warnings

import pytest
import torch

from plumbline.methods.ask import AskRequest, event_names
from plumbline.methods.base import Domain, History, Method, Proposal

HISTORY = History(torch.zeros(1, 2).double(), torch.zeros(1, 1).double())
DOMAIN = Domain(torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double())


class Careless(Method):
    """Draws from the global stream and warns."""

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        if self.options == "fails":
            raise RuntimeError("no luck")
        if self.options == "large":
            raise torch.cuda.OutOfMemoryError("too many")
        warnings.warn("jitter", RuntimeWarning, stacklevel=1)
        return Proposal(torch.rand(q, 2, dtype=torch.float64))


def question(options: str = "", seed: int = 7) -> AskRequest:
    return AskRequest(Careless(DOMAIN, options), HISTORY, 2, torch.Generator().manual_seed(seed))


def test_the_global_stream_is_the_rounds_own() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = question().ask()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    second = question().ask()
    other = question(seed=8).ask()
    assert isinstance(first, Proposal)
    assert isinstance(second, Proposal)
    assert isinstance(other, Proposal)
    assert torch.equal(first.X, second.X)
    assert not torch.equal(first.X, other.X)
    torch.manual_seed(7)
    assert torch.equal(first.X, torch.rand(2, 2, dtype=torch.float64)), "as torch itself seeds it"


def test_warnings_are_events_of_their_own_question() -> None:
    asked, silent = question(), question()
    asked.ask()
    assert (asked.events, silent.events) == (["RuntimeWarning"], [])
    with asked.isolated():
        warnings.warn("other", UserWarning, stacklevel=1)
    assert asked.events == ["RuntimeWarning", "UserWarning"]


def test_many_are_answered_one_after_another() -> None:
    answers = Careless.ask_many([question(), question("fails"), question()])
    assert [type(answer) for answer in answers] == [Proposal, RuntimeError, Proposal]
    first, _, last = answers
    assert torch.equal(first.X, last.X), "what a question is answered does not depend on the others"  # type: ignore[union-attr]


def test_a_lack_of_memory_is_no_answer() -> None:
    with pytest.raises(torch.cuda.OutOfMemoryError):
        Careless.ask_many([question(), question("large")])


def test_advice_is_no_event() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        warnings.warn("jitter", RuntimeWarning, stacklevel=1)
    assert event_names(caught) == ["RuntimeWarning"]

"""What a trial's numbers depend on in the process is put back, and is what it usually is but for one's own modules."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

from plumbline.core.ambient import USUAL, State, kept_state, present, put

CHANGED = State(torch.float64, False, dict.fromkeys(USUAL.errors, "raise"))


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    before = present()
    yield
    put(before)


def test_a_process_starts_in_the_usual_state() -> None:
    assert present() == USUAL


@pytest.mark.parametrize("own", [[], ["a_module"]])
def test_the_state_is_put_back_after_an_error(own: list[str]) -> None:
    def fail() -> None:
        put(CHANGED)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), kept_state(own):
        fail()
    assert present() == USUAL


def test_what_a_script_has_set_is_for_its_own_modules_alone() -> None:
    put(CHANGED)
    with kept_state():
        assert present() == USUAL
    assert present() == CHANGED
    with kept_state(["a_module"]):
        assert present() == CHANGED


def test_what_a_module_sets_as_it_is_loaded_is_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with kept_state(["loaded_once", "not_loaded"]):
        put(CHANGED)
        monkeypatch.setitem(sys.modules, "loaded_once", ModuleType("loaded_once"))
    assert present() == USUAL
    with kept_state(["loaded_once"]):
        assert present() == CHANGED
    for others in ([], ["not_loaded"]):
        with kept_state(others):
            assert present() == USUAL
    assert present() == USUAL


def test_what_a_later_call_sets_is_not() -> None:
    with kept_state(["sys"]):
        put(CHANGED)
    with kept_state(["sys"]):
        assert present() == USUAL

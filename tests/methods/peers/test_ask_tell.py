"""Optimisers with `ask` and `tell` that are named by their path."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ask_tell_cases
import numpy as np
import pytest
import torch
from situations import ask, box

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import build_method, checked
from plumbline.methods.peers.ask_tell import AskTell, asked_points
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial

Make = Callable[..., TrialSpec]


def method(name: str, **options: Any) -> AskTell:
    built = build_method("ask-tell", {"optimiser": f"ask_tell_cases:{name}", **options}, box().domain)
    assert isinstance(built, AskTell)
    return built


def asked(name: str, q: int = 1, **options: Any) -> torch.Tensor:
    return ask(method(name, **options), box().history, q).X


@pytest.mark.parametrize("name", ["Steps", "Batch", "Counted"])
@pytest.mark.parametrize("q", [1, 3])
def test_points_are_those_of_the_optimiser(name: str, q: int) -> None:
    X = asked(name, q)
    assert X.shape == (q, 2)
    assert torch.equal(X, asked("Steps", q))


def test_arguments_come_first() -> None:
    assert not torch.equal(asked("Steps"), asked("Steps", arguments={"length": 0.1}))
    near = asked("Steps", arguments={"length": 0.0})
    history = box().history
    assert torch.equal(near[0], history.X[history.Y[:, 0].argmax()])


def test_it_may_minimise() -> None:
    history = box().history
    assert torch.equal(asked("Least", minimise=True)[0], history.X[history.Y[:, 0].argmax()])
    assert torch.equal(asked("Least")[0], history.X[history.Y[:, 0].argmin()])


def test_failed_evaluations_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[list[float], float]] = []
    monkeypatch.setattr(ask_tell_cases.Steps, "tell", lambda self, x, y: told.append((x.tolist(), y)))
    monkeypatch.setattr(ask_tell_cases.Steps, "ask", lambda self: [0.0, 5.0])
    place = box()
    Y = place.history.Y.clone()
    Y[1] = torch.nan
    ask(method("Steps"), History(place.history.X, Y, place.history.initial), 1)
    kept = [i for i in range(len(Y)) if i != 1]
    assert told == [(place.history.X[i].tolist(), Y[i].item()) for i in kept]


def test_what_it_remembers_is_kept() -> None:
    first = method("Steps")
    ask(first, box().history, 1)
    assert first.state_dict() == {"length": 0.2}
    second = method("Steps")
    second.load_state_dict(first.state_dict())
    assert torch.equal(ask(first, box().history, 1).X, ask(second, box().history, 1).X)
    assert second.state_dict() == {"length": 0.9 * 0.2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimiser": "ask_tell_cases:Steps", "arguments": {"lenght": 1}}, "unknown argument 'lenght': did you mean"),
        ({"optimiser": "ask_tell_cases:Odd"}, "needs an argument 'answer', which the method does not know"),
        (
            {"optimiser": "ask_tell_cases:Mute"},
            "has no method 'tell': `ask()`, which returns a point, and `tell(x, y)`",
        ),
        ({"optimiser": "ask_tell_cases:Forgetful"}, "has one of `memory()` and `remember(memory)`: both or none"),
        ({"optimiser": "ask_tell_cases:Missing"}, "module 'ask_tell_cases' has no 'Missing'"),
        ({"optimiser": "ask_tell_cases:function"}, "is a builtin_function_or_method: a class is wanted"),
        ({"optimiser": "__main__:Steps"}, "is a class of this script or notebook: save it in a file"),
        ({"optimiser": "no_such.module:Steps"}, "there is no module 'no_such' on Python's path"),
        ({"optimiser": "steps.py"}, "'steps.py' is a file: write its module and the class in it, 'steps:MyClass'"),
        ({"optimiser": "Steps"}, "'Steps' is no class: write `package.module.Class` or `package.module:Class`"),
        ({}, "optimiser: Field required"),
    ],
)
def test_odd_options_are_told_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        build_method("ask-tell", options, box().domain)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "q", "message"),
    [
        ("no numbers", 1, "its `ask` returned a str that is no array of numbers"),
        ([[1.0], [1.0, 2.0]], 1, "its `ask` returned a list that is no array of numbers"),
        (None, 1, "its `ask` returned None: 2 or k x 2 is wanted"),
        (0.5, 1, "its `ask` returned a float: 2 or k x 2 is wanted"),
        ({"x": 0.5}, 1, "its `ask` returned a dict that is no array of numbers: 2 or k x 2 is wanted"),
        ([None, 0.5], 1, "its `ask` returned a list that is no array of numbers"),
        ([1.0, 2.0, 3.0], 1, "its `ask` returned an array of shape 3: 2 or k x 2 is wanted"),
        ([True, False], 1, "its `ask` returned a list that is no array of numbers"),
        ([10**400, 1], 1, "its `ask` returned a list that is no array of numbers"),
        ([], 1, "its `ask` returned an array of shape 0: 2 or k x 2 is wanted"),
        ([[0.0, 5.0]] * 4, 3, "its `ask` returned 4 points where q = 3 are evaluated a round"),
    ],
)
def test_odd_answers_are_told_in_one_line(answer: Any, q: int, message: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        asked("Odd", q, arguments={"answer": answer})
    assert str(caught.value).startswith(f"optimiser 'ask_tell_cases:Odd': {message}")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.array(0.5), "an array of shape ()"),
        (np.array(["2000-01-01", "2001-01-01"], dtype="datetime64[D]"), "a ndarray that is no array of numbers"),
        (1j, "a complex that is no array of numbers"),
        (7, "an int"),
        (iter([0.5, 0.5]), "a list_iterator that is no array of numbers"),
    ],
)
def test_what_is_no_array_is_called_what_it_is(answer: Any, message: str) -> None:
    optimiser = SimpleNamespace(ask=lambda: answer)
    with pytest.raises(PlumblineError, match=re.escape(f"it: its `ask` returned {message}: 2 or k x 2 is wanted")):
        asked_points("it", optimiser, 1, 2)


@pytest.mark.parametrize(
    ("answer", "message"),
    [(["nan", 5.0], "input 1 must be finite"), ([0.0, 50.0], r"input 2 must lie in its bounds, \[0, 15\]")],
)
def test_points_outside_of_the_box_are_refused(answer: list[Any], message: str) -> None:
    place = box()
    asking = method("Odd", arguments={"answer": answer})
    proposal = ask(asking, place.history, 1)
    with pytest.raises(PlumblineError, match=rf"method 'ask-tell' returned x = .*{message}"):
        checked("ask-tell", proposal, AskRequest(asking, place.history, 1, torch.Generator()), place.domain)


def test_points_are_collected_until_there_are_enough() -> None:
    class Pairs:
        def ask(self) -> list[list[float]]:
            return [[1.0], [2.0]]

    assert np.array_equal(asked_points("it", Pairs(), 4, 1), [[1.0], [2.0], [1.0], [2.0]])


def test_what_it_raises_in_a_late_round_is_the_trials_failure(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("branin", "ask-tell", options={"optimiser": "ask_tell_cases:Broken"}, rounds=20)
    folder = run_trial(spec, tmp_path / "store", tmp_path)
    assert folder.failed
    assert "RuntimeError: ten are enough (method 'ask-tell', " in folder.reason()
    assert f"{ask_tell_cases.__file__}, line " in folder.reason()
    assert len(folder.table(spec)) == 11, "ten evaluations and the failure"


def test_a_memory_that_cannot_be_kept_is_told(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("branin", "ask-tell", options={"optimiser": "ask_tell_cases:Leaking"}, rounds=3)
    folder = run_trial(spec, tmp_path / "store", tmp_path)
    assert "entry 'generator' of its `state_dict`, a Generator, cannot be saved and read back" in folder.reason()

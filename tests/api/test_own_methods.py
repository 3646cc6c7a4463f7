"""What a reader's own method is named by: an entry, a registered class, or a class by its path."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.api.editions import AtlasGrid
from plumbline.api.own_methods import own_method
from plumbline.api.repository import find_repository
from plumbline.core.errors import PlumblineError
from plumbline.study.methods_and_tasks import MethodsAndTasks


@pytest.fixture(scope="module")
def entries() -> MethodsAndTasks:
    return AtlasGrid(find_repository()).entries


@pytest.mark.parametrize(
    ("code", "message"),
    [("1 / 0", "line 1: ZeroDivisionError"), ("def f(:", "line 1: invalid syntax")],
)
def test_code_that_cannot_be_imported(
    entries: MethodsAndTasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    (tmp_path / "unsound_case.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PlumblineError, match=message):
        own_method("unsound_case:Class", {}, entries)


def test_a_target_is_an_entry_a_registered_class_or_a_path(entries: MethodsAndTasks) -> None:
    shared = entries.methods["atlas-logei"].ref.options["model"]
    entry = own_method("atlas-ucb", {"sqrt_beta": 3.0}, entries)
    assert (entry.ref.name, entry.ref.options["sqrt_beta"], entry.ref.options["model"]) == ("ucb", 3.0, shared)
    assert own_method("hedge", {}, entries).ref.name == "hedge"
    path = "botorch.acquisition.logei:qLogExpectedImprovement"
    acquisition = own_method(path, {"model": {"kernel": "rbf"}}, entries)
    assert acquisition.name == "qLogExpectedImprovement"
    assert acquisition.ref.name == "botorch-acquisition"
    assert acquisition.ref.options == {"acquisition": path, "model": {**shared, "kernel": "rbf"}}
    optimiser = own_method("ask_tell_cases:Steps", {}, entries)
    assert (optimiser.ref.name, optimiser.ref.options) == ("ask-tell", {"optimiser": "ask_tell_cases:Steps"})
    assert [one.ref.label for one in (entry, acquisition, optimiser)] == [
        one.name for one in (entry, acquisition, optimiser)
    ], "the store has the names of the tables"


def test_an_acquisition_function_takes_the_model_of_an_entry() -> None:
    """A workspace may have methods of its own alone."""
    none: Any = SimpleNamespace(methods={})
    with pytest.raises(PlumblineError, match="config/methods has no entry 'atlas-logei', whose model it takes"):
        own_method("botorch.acquisition.logei:qLogExpectedImprovement", {}, none)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("straddle.py", "straddle:MyClass"),
        ("a/straddle.py", "a.straddle:MyClass"),
        ("/b/straddle.py", "straddle:MyClass"),
    ],
)
def test_a_file_is_no_class(entries: MethodsAndTasks, target: str, path: str) -> None:
    with pytest.raises(PlumblineError, match=f"^'{target}' is a file: write its module and the class in it, '{path}'"):
        own_method(target, {}, entries)

"""Arguments of the wrong kind are refused by name, in one line, before anything is done; others reach the function."""

import errno
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline import api
from plumbline.api.arguments import checked
from plumbline.api.editions import add_to_atlas
from plumbline.core.errors import PlumblineError
from plumbline.core.history import History

PUBLIC = [api.atlas, api.bench, api.classes, api.compare, api.diagnose, api.run, api.runs, api.seeds, api.show]

odd = st.one_of(
    st.builds(object),
    st.binary(),
    st.complex_numbers(),
    st.just(np.array([1.0, 2.0])),
    st.just(pd.DataFrame({"a": [1]})),
    st.lists(st.integers() | st.text(), min_size=1).map(lambda items: [items]),
)


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__name__)
@given(value=odd)
def test_each_argument_of_the_interface_is_refused_by_name(function: Callable[..., Any], value: object) -> None:
    signature = inspect.signature(function)
    needed = {one.name: "x" for one in signature.parameters.values() if one.default is one.empty}
    for one in signature.parameters.values():
        if "Iterable" not in str(one.annotation) and "DataFrame" not in str(one.annotation):
            with pytest.raises(PlumblineError, match=rf"^{one.name}: .* wanted \(got ") as caught:
                function(**needed | {one.name: value})
            assert "\n" not in str(caught.value)


@checked
def example(
    text: str = "",
    whole: int | None = None,
    number: float = 1.0,
    yes: bool = False,
    place: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    word: Literal["a", "b"] = "a",
    several: str | Iterable[str] = (),
    looked_up: "pd.DataFrame | None" = None,
) -> dict[str, Any]:
    """Return the arguments."""
    return dict(locals())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "x"),
        ("whole", 3),
        ("whole", np.int64(3)),
        ("whole", None),
        ("number", 3),
        ("number", np.float32(3)),
        ("yes", True),
        ("place", Path("x")),
        ("place", "x"),
        ("options", {}),
        ("word", "c"),
        ("several", 3),
        ("looked_up", 3),
    ],
)
def test_what_is_of_the_kind_reaches_the_function_as_it_is(name: str, value: object) -> None:
    assert example(**{name: value})[name] is value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("text", 3, "text: text is wanted (got 3)"),
        ("whole", 3.0, "whole: a whole number or None is wanted (got 3.0)"),
        ("whole", True, "whole: a whole number or None is wanted (got True)"),
        ("number", "3", "number: a number is wanted (got '3')"),
        ("yes", "no", "yes: True or False is wanted (got 'no')"),
        ("yes", 1, "yes: True or False is wanted (got 1)"),
        ("place", 3, "place: text or a path or None is wanted (got 3)"),
        ("options", [], "options: a mapping or None is wanted (got [])"),
        ("word", None, "word: text is wanted (got None)"),
    ],
)
def test_the_error_says_what_is_wanted(name: str, value: object, message: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        example(**{name: value})  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_class_or_a_function_is_given_by_a_name() -> None:
    class Own:
        pass

    Own.__module__ = "__main__"
    with pytest.raises(
        PlumblineError, match=r"^target: text is wanted \(got .*\): name the class by its path, 'plumbline.core"
    ):
        api.bench(History)  # type: ignore[arg-type]
    with pytest.raises(PlumblineError, match=r"\): save the class in a file, and name it by its path, 'module:Own'$"):
        api.bench(Own)  # type: ignore[arg-type]
    for name in ("method", "method_class", "problem"):
        for value in (Own, checked):
            with pytest.raises(
                PlumblineError, match=rf"^{name}: text is wanted .*\): give the name that it is registered by"
            ):
                api.run(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [*PUBLIC, add_to_atlas, example], ids=lambda function: function.__name__)
@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_path_is_refused(
    function: Callable[..., Any], empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    signature = inspect.signature(function)
    needed = {one.name: "x" for one in signature.parameters.values() if one.default is one.empty}
    for name, one in signature.parameters.items():
        if "Path" in str(one.annotation) and "DataFrame" not in str(one.annotation):
            with pytest.raises(PlumblineError, match=f"^{name}: it is empty: name a file or a folder$"):
                function(**needed | {name: empty})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENOSPC, errno.EROFS])
def test_what_the_machine_refuses_is_one_line(number: int) -> None:
    @checked
    def write(folder: str) -> None:
        raise OSError(number, os.strerror(number), folder)

    with pytest.raises(PlumblineError, match="out/here") as caught:
        write("out/here")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [BrokenPipeError(errno.EPIPE, "gone"), TimeoutError("no answer")])
def test_a_reader_that_has_left_and_a_call_that_ran_out_of_time_are_none_of_these(kind: OSError) -> None:
    @checked
    def write(folder: str) -> None:
        raise kind

    with pytest.raises(type(kind)):
        write("out")


def test_an_unknown_argument_is_a_mistake_of_the_code() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'txt'"):
        example(txt="x")  # type: ignore[call-arg]

"""Whose error it is, where in the user's code it was raised, and what is put back after that code."""

import os
from pathlib import Path

import pytest
import torch

from plumbline.core.culprits import culprit_of, place_in_stack, place_of, plugin_code


def caught(error: BaseException, *culprits: str) -> BaseException:
    """Return an error that leaves the code of some, the innermost last."""
    try:
        if not culprits:
            raise error
        with plugin_code(culprits[0]):
            raise caught(error, *culprits[1:])
    except BaseException as raised:
        return raised


def test_the_innermost_is_charged() -> None:
    assert culprit_of(caught(ValueError(), "problem 'a'", "method 'b'")) == "method 'b'"
    assert culprit_of(caught(ValueError())) == ""


def test_the_place_is_the_users() -> None:
    assert place_of(caught(ValueError())).startswith(f"{Path(__file__)}, line ")
    assert place_of(ValueError()) == ""
    with pytest.raises(TypeError) as raised:
        torch.nn.functional.softmax(torch.ones(2), dim="x")  # type: ignore[arg-type]
    assert place_of(raised.value).startswith(f"{Path(__file__)}, line ")


def test_the_place_of_a_crash_is_in_the_users_code() -> None:
    stack = """Fatal Python error: Segmentation fault

Thread 0x1 (most recent call first):
  File "/home/ada/other.py", line 3 in wait

Current thread 0x2 (most recent call first):
  File "/usr/lib/python3/site-packages/library.py", line 5 in call
  File "/home/ada/mine.py", line 16 in ask
  File "/home/ada/outer.py", line 2 in run

Extension modules: numpy (total: 1)
"""
    assert place_in_stack(stack) == "/home/ada/mine.py, line 16"
    assert place_in_stack("") == ""


def test_the_working_directory_is_put_back(tmp_path: Path) -> None:
    before = Path.cwd()
    with plugin_code("method 'x'"):
        os.chdir(tmp_path)
    assert Path.cwd() == before

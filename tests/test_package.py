"""`import plumbline as pb`: quick, complete, and known to editors."""

import ast
import inspect
import subprocess
import sys

import pytest

import plumbline
import plumbline as pb
from plumbline import api


def test_the_names_are_those_of_the_api() -> None:
    assert pb.__all__ == api.__all__
    assert set(pb.__all__) <= set(dir(pb))
    for name in set(pb.__all__) - {"methods"}:
        assert getattr(pb, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        pb.rum  # noqa: B018


def test_methods_are_a_table_and_a_folder() -> None:
    import plumbline.methods.base as base

    assert plumbline.methods.base is base
    assert pb.methods().equals(api.methods())


def test_editors_see_every_name() -> None:
    (block,) = (node for node in ast.parse(inspect.getsource(pb)).body if isinstance(node, ast.If))
    (imported,) = block.body
    assert isinstance(imported, ast.ImportFrom)
    assert [alias.name for alias in imported.names] == pb.__all__


def test_the_import_takes_less_than_50_ms(one_core: dict[str, str]) -> None:
    """Of processor time, the least of three: a busy machine is no fault of the package's."""
    code = """
import time
start = time.process_time()
import plumbline
print(time.process_time() - start)
import sys
assert not {"torch", "pandas", "numpy", "pydantic", "yaml", "typer"} & set(sys.modules)
"""
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, env=one_core, capture_output=True, text=True, check=True) for _ in range(3)]
    assert min(float(run.stdout) for run in runs) < 0.05


def test_every_function_says_what_it_returns_and_how_it_is_used() -> None:
    for name in set(pb.__all__) - {"PlumblineError"}:
        text = inspect.getdoc(getattr(api, name))
        assert text is not None
        assert "Returns:" in text or name == "show", name

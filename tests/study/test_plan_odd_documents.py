"""The committed files with something odd in them: they are still a plan, or the error is one line."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.strict_yaml import StrictLoader
from plumbline.data.datasets import load_datasets
from plumbline.data.models import load_models
from plumbline.study.experiments import load_study
from plumbline.study.methods_and_tasks import load_methods_and_tasks
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config

ODD = [
    "on", "null", "-1", "0", "1.0", "1e3", ".nan", "-.inf", "''", "[]", "{}", "[a]", "{a: b}", "2024-01-01", "1:30",
    "017", "99999999999999999999999", "'é'", '"\\n"', "..", "a/b", "'true'", '"\\u0000"', "!!set {a}", "*x",
    "&x a", "x: y", "!!python/name:os.system ''", "{1: 2}", "[1, 1.0]", "'{x}'", "'{'", "1e999", f"'{'x' * 300}'",
    "-0.0", "like", "[null]", "&y [*y]", "[[[[[[]]]]]]",
]  # fmt: skip
"""What may stand in the place of a scalar, as it is written."""


@cache
def scalars_of(text: str) -> list[yaml.Node]:
    return list(scalars(yaml.compose(text, Loader=StrictLoader)))


def scalars(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.ScalarNode):
        yield node
        return
    for child in node.value:
        for one in child if isinstance(child, tuple) else (child,):
            yield from scalars(one)


@st.composite
def odd(draw: st.DrawFn, text: str) -> bytes:
    """The text of a document with another scalar, a line twice, another byte, or without some."""
    kind = draw(st.sampled_from(["scalar", "scalar", "name", "line", "byte", "gap"]))
    content = text.encode()
    if kind in ("scalar", "name"):
        found = scalars_of(text)
        node = draw(st.sampled_from(found))
        other = draw(st.sampled_from(ODD if kind == "scalar" else [one.value for one in found]))
        return f"{text[: node.start_mark.index]}{other}{text[node.end_mark.index :]}".encode()
    if kind == "line":
        lines = text.splitlines(keepends=True)
        twice = draw(st.integers(0, len(lines) - 1))
        return "".join([*lines[:twice], lines[twice], *lines[twice:]]).encode()
    place = draw(st.integers(0, len(content) - 1))
    if kind == "byte":
        return content[:place] + bytes([draw(st.integers(0, 255))]) + content[place + 1 :]
    return content[:place] + content[place + draw(st.integers(1, 30)) :]


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the configuration, in which one file at a time is odd."""
    folder = tmp_path_factory.mktemp("odd")
    shutil.copytree(root / "config", folder / "config")
    return folder


def load(path: Path, whole: bool) -> Any:
    """Load what a file is part of: the whole plan, or the least that there is of it."""
    config = next(parent for parent in path.parents if parent.name == "config")
    if whole or config / "config.yaml" == path:
        return load_plan(read_config(config / "config.yaml", *([path] if path.parent == config else [])), config.parent)
    if path.parent == config:
        load_one = {"datasets.yaml": load_datasets, "models.yaml": load_models}.get(path.name, read_config)
        return load_one(path)
    return load_study(path) if path.parent.name == "studies" else load_methods_and_tasks(config)


def check(data: st.DataObject, root: Path, copy: Path, whole: bool) -> None:
    names = sorted(str(path.relative_to(root)) for path in (root / "config").rglob("*.yaml"))
    if whole:
        names = [name for name in names if not name.endswith(("datasets.yaml", "models.yaml"))]
    name = data.draw(st.sampled_from(names))
    text = (root / name).read_text()
    message = "a plan"
    try:
        (copy / name).write_bytes(data.draw(odd(text)))
        load(copy / name, whole)
    except PlumblineError as error:
        message = str(error)
    finally:
        (copy / name).write_text(text)
    assert len(message.splitlines()) == 1
    assert len(message) < 4_000


same = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.mark.slow
@settings(same, max_examples=60)
@given(data=st.data())
def test_an_odd_file_is_read_or_refused_in_one_line(data: st.DataObject, root: Path, copy: Path) -> None:
    check(data, root, copy, whole=False)


@pytest.mark.slow
@settings(same, max_examples=12)
@given(data=st.data())
def test_an_odd_configuration_is_a_plan_or_refused_in_one_line(data: st.DataObject, root: Path, copy: Path) -> None:
    check(data, root, copy, whole=True)

"""Entries as they are written, and what is wrong in their files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbline.api.listings import listed_methods, listed_tasks
from plumbline.api.repository import find_study, study_names
from plumbline.api.showing import resolve
from plumbline.api.written import entry_files, read_written
from plumbline.core.errors import PlumblineError

METHODS = "mine: {name: ucb}\n"
FILES = {
    "methods/own": METHODS,
    "tasks/own": "bowl: {problem: ackley-2, initial: {design: uniform, size: 3}, rounds: 2}\n",
    "studies/one": "{study: one, title: T, citation: C, experiments: {ONE: {title: T}}}\n",
    "studies/two": "{study: two, title: T, citation: C, experiments: {TWO: {title: T}}}\n",
}

BROKEN: dict[bytes, str] = {
    b"broken: [1, 2\n": "is not YAML: did not find expected ',' or ']'",
    b"broken: *other\n": "is not YAML: found undefined alias",
    b"broken: caf\xe9\n": "byte 12 is not UTF-8",
    b"a: 1\na: 2\n": ":2: 'a' is there twice",
    b"a: {since: 2024-13-45}\n": ":1: '2024-13-45' is read as a date",
    b"a: !!int x\n": ":1: 'x' cannot be read as a number",
    b"a: !odd x\n": ":1: could not determine a constructor",
}
"""Files that are no YAML of ours, with what is said of them."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file, text in FILES.items():
        path = tmp_path / f"config/{file}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        ("methods", listed_methods),
        ("methods", lambda: resolve("method", "mine")),
        ("tasks", listed_tasks),
        ("tasks", lambda: resolve("task", "bowl")),
        ("studies", lambda: resolve("claim", "K1")),
    ],
)
def test_a_broken_file_is_named(content: bytes, kind: str, ask: Callable[[], Any], repository: Path) -> None:
    path = repository / "config" / kind / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(PlumblineError) as caught:
        ask()
    assert str(caught.value).startswith(f"{path}")
    assert BROKEN[content] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_name(repository: Path) -> None:
    (repository / "config/methods/own.yaml").write_text(METHODS, encoding="utf-8-sig")
    assert list(read_written(entry_files(repository, "methods"))) == ["mine"]
    assert [row[0] for row in listed_methods().rows] == ["mine"]


@pytest.mark.parametrize("content", BROKEN)
def test_a_study_that_is_being_written_hinders_nobody(content: bytes, repository: Path) -> None:
    path = repository / "config/studies/one.yaml"
    path.write_bytes(content)
    found, study = find_study(repository, "TWO")
    assert found.name == "two.yaml"
    assert list(study.experiments) == ["TWO"]
    with pytest.raises(PlumblineError, match=r"one\.yaml"):
        find_study(repository, "ONE")


@pytest.mark.parametrize("name", [".#own.yaml", "._own.yaml", ".own.yaml.swp", "own.yaml~", "#own.yaml#", ".own.yml"])
@pytest.mark.parametrize("kind", ["methods", "tasks", "studies"])
def test_what_editors_leave_behind_is_no_file_of_ours(kind: str, name: str, repository: Path) -> None:
    (repository / "config" / kind / name).symlink_to("ada@host.1234:5678")
    assert [row[0] for row in listed_methods().rows] == ["mine"]
    assert [row[0] for row in listed_tasks().rows] == ["bowl"]
    assert study_names(repository) == ["one", "two"]


@pytest.mark.parametrize(
    ("kind", "ask"),
    [("methods", listed_methods), ("tasks", listed_tasks), ("studies", lambda: study_names(Path.cwd()))],
)
def test_another_ending_is_not_overlooked(kind: str, ask: Callable[[], Any], repository: Path) -> None:
    (repository / "config" / kind / "more.yml").write_text("")
    with pytest.raises(PlumblineError, match=rf"config/{kind}/more\.yml is not read: rename it to more\.yaml$"):
        ask()

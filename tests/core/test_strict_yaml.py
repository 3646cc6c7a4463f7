"""YAML that is refused, and how it is said."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.strict_yaml import DEEPEST, LARGEST, compose_yaml, line_of, parse_yaml, read_yaml, yaml_files


def test_files_that_are_not_yaml(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no file .*absent.yaml"):
        read_yaml(tmp_path / "absent.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1\nb: 2\n")
    with pytest.raises(PlumblineError, match=r"bad.yaml is not YAML: .*line 2") as caught:
        read_yaml(tmp_path / "bad.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3: 'a' is there twice: it is in line 1 already"),
        ('a: 1\n"a": 3\n', "x.yaml:2: 'a' is there twice: it is in line 1 already"),
        ("b:\n  - {a: 1, c: {d: 1, d: 2}}\n", "x.yaml:2: 'd' is there twice: it is in line 2 already"),
        ("a: 1\non: 2\n", "x.yaml:2: the name on is read as true or false, and names are text: put it in quotes"),
        ("No: 2\n", "x.yaml:1: the name No is read as true or false, and names are text"),
        ("a: {1: 2}\n", "x.yaml:1: the name 1 is read as a number, and names are text: put it in quotes"),
        ("1e-4: 2\n", "x.yaml:1: the name 1e-4 is read as a number"),
        ("1.5: 2\n", "x.yaml:1: the name 1.5 is read as a number"),
        ("null: 2\n", "x.yaml:1: the name null is read as nothing"),
        ("~: 2\n", "x.yaml:1: the name ~ is read as nothing"),
        ("2024-01-01: 2\n", "x.yaml:1: the name 2024-01-01 is read as a date"),
        ("? [a]\n: 2\n", "x.yaml:1: a name is read as a list or a mapping, and names are text"),
        ('"a\\nb": 2\n', "x.yaml:1: the name 'a\\nb' has characters that cannot be printed"),
        ('a: "x\\0y"\n', "x.yaml:1: the text has a character that cannot be printed, '\\x00'"),
        ('a: [b, "\\e[31m"]\n', "x.yaml:1: the text has a character that cannot be printed, '\\x1b'"),
        ("a: 2024-01-01\n", "x.yaml:1: '2024-01-01' is read as a date: put it in quotes if it is text"),
        ("a: !!binary aGk=\n", "x.yaml:1: 'aGk=' is read as bytes"),
        ("a: !!set {b, c}\n", "is read as a set"),
        ("a: &x {b: 1}\nc: {<<: *x}\n", "x.yaml:2: merge keys (<<) are not used here"),
        ("a: !!python/object:os.system x\n", "x.yaml:1: could not determine a constructor"),
        ("a: !!int x\n", "x.yaml:1: 'x' cannot be read as a number"),
        ("a: !!float x\n", "x.yaml:1: 'x' cannot be read as a number"),
        ("a: !!bool x\n", "x.yaml:1: 'x' cannot be read as true or false"),
        (f"a: {'9' * 5000}\n", "cannot be read as a number"),
        ("a: 017\n", "x.yaml:1: YAML reads 017 as 15: write that number, or put the text in quotes"),
        ("a: 1:30\n", "x.yaml:1: YAML reads 1:30 as 90: write that number, or put the text in quotes"),
        ("a: 1:30.5\n", "x.yaml:1: YAML reads 1:30.5 as 90.5"),
        ("a: &x [*x]\n", "x.yaml:1: an alias (*) inside of what it stands for"),
        ("odd: &x {name: ucb, options: *x}\n", "x.yaml:1: an alias (*) inside of what it stands for"),
        ("a: *b\n", "x.yaml is not YAML: found undefined alias (line 1)"),
        (
            "a: {b: c\nd: e: f",
            "x.yaml is not YAML: did not find expected ',' or '}' while parsing a flow mapping (line 2)",
        ),
        ("a: 1\n---\nb: 2\n", "x.yaml is not YAML: "),
        ("a: \x00\n", "x.yaml is not YAML: "),
        ("[" * 10_000, "x.yaml:1: nested more than"),
        ("- " * 10_000, "x.yaml:1: nested more than"),
        ("a: " + "[" * 1_000_000, "x.yaml:1: nested more than"),
        ("{a: " * 10_000, "x.yaml:1: nested more than"),
        ("\n".join([f"a0: &a0 {[1] * 9}", *(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]" for i in range(1, 12))]), "aliases"),
        ("\n".join(["a0: &a0 [1]", *(f"a{i}: &a{i} [[[[[[*a{i - 1}]]]]]]" for i in range(1, 300))]), "aliases"),
    ],
)
def test_yaml_that_says_something_else_than_it_seems_to(text: str, message: str) -> None:
    started = time.process_time()
    with pytest.raises(PlumblineError) as caught:
        parse_yaml(text, "x.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert time.process_time() - started < 5


def test_yaml_that_is_meant_as_it_is() -> None:
    text = 'a: &x [1, 1.0, 1.0e-3, 0x1F, yes, null, "on", 2024]\n"1": *x\n"on": {a: *x}\nb: 0\nc: "2024-01-01"\n'
    assert parse_yaml(text, "x") == yaml.safe_load(text)
    assert parse_yaml("", "x") is None
    assert parse_yaml("[1e-3, 2E5, -1e+2, 1.5e3, 1e, e3, '1e3', a1e3]", "x") == [
        0.001, 2e5, -100.0, 1500.0, "1e", "e3", "1e3", "a1e3",
    ]  # fmt: skip
    assert parse_yaml("[" * (DEEPEST - 1) + "]" * (DEEPEST - 1), "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: caf\xe9\n".encode("latin-1"), "x.yaml: byte 7 is not UTF-8: save the file in that encoding"),
        ("a: 1\n".encode("utf-16"), "x.yaml: byte 1 is not UTF-8"),
        ("a: 1\n".encode("utf-16-be"), "x.yaml is not YAML"),
        (b"a: 1\n" * (LARGEST // 5 + 1), "x.yaml is larger than 4 MB"),
    ],
)
def test_files_that_are_no_text(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    for read in (read_yaml, compose_yaml, lambda path: line_of(path, "a")):
        with pytest.raises(PlumblineError) as caught:
            read(path)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_folder_is_no_file_and_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="is a folder"):
        read_yaml(tmp_path)
    (tmp_path / "x.yaml").write_text("a: 1\n", encoding="utf-8-sig")
    assert read_yaml(tmp_path / "x.yaml") == {"a": 1}
    assert line_of(tmp_path / "x.yaml", "a") == 1


texts = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff") | st.just("\n"))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
names = st.text(st.characters(exclude_categories=["C", "Z"]))
documents = st.recursive(scalars, lambda one: st.lists(one) | st.dictionaries(names, one), max_leaves=20)


@pytest.mark.slow
@given(documents)
def test_what_is_written_is_read(document: Any) -> None:
    assert parse_yaml(yaml.safe_dump(document, allow_unicode=True), "x") == document


odd_texts = st.text(st.sampled_from("ab1:-*&!?{}[],#|>'\"%@` \n\t.0~<=x\ud800\x85\u2028e+_"))


@given(odd_texts)
@example("\ud800")
@example("=: 1")
@example("!!null x: 1")
@example("!!str [a]")
@example("!!map [a]")
@example("a: !!float [a]")
def test_any_text_is_a_document_or_one_line(text: str) -> None:
    lines = "x"
    try:
        parse_yaml(text, "x")
    except PlumblineError as error:
        lines = str(error)
    assert lines.startswith("x")
    assert "\n" not in lines


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=odd_texts.filter(lambda text: text.isascii()))
@example(text="a: !!int x")
@example(text="a: 2024-13-45")
@example(text="a: !odd x")
def test_a_composed_file_is_one_that_can_be_read(text: str, tmp_path: Path) -> None:
    """Their lines are asked for before their values: errors are the same."""
    path = tmp_path / "x.yaml"
    path.write_text(text, newline="")
    said = []
    for read in (read_yaml, compose_yaml):
        try:
            said.append(str(read(path) is None))
        except PlumblineError as error:
            said.append(str(error))
    assert said[0] == said[1] or said == ["True", "False"], "a null is nothing, and a node"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(st.from_regex(r"[.#_a-c]{0,2}[a-c](\.yaml)?[~#]?", fullmatch=True)))
def test_files_that_are_hidden_or_no_yaml_are_left_out(names: set[str], tmp_path: Path) -> None:
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to("user@machine.1:2")
    assert yaml_files(folder) == sorted(folder / one for one in names if one.endswith(".yaml") and one[0] != ".")


@pytest.mark.parametrize("ending", ["yml", "YML", "Yaml", "YAML"])
def test_a_file_is_not_overlooked_for_its_ending(ending: str, tmp_path: Path) -> None:
    for name in (f".a.{ending}", "b.yaml", "c.yaml.orig"):
        (tmp_path / name).touch()
    assert yaml_files(tmp_path) == [tmp_path / "b.yaml"]
    assert yaml_files(tmp_path / "absent") == []
    (tmp_path / f"a.{ending}").touch()
    with pytest.raises(PlumblineError, match=rf"a\.{ending} is not read: rename it to a\.yaml$"):
        yaml_files(tmp_path)

"""`like`: what an entry has from another, one level deep, and mistakes told in one line."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.nested import merge
from plumbline.core.strict_yaml import read_yaml
from plumbline.study.inheritance import inherit

trees = st.recursive(st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3))


@given(st.dictionaries(st.sampled_from("abc"), trees), st.dictionaries(st.sampled_from("abc"), trees))
def test_what_is_above_wins(below: dict[str, Any], above: dict[str, Any]) -> None:
    merged = merge(below, above)
    assert merge(merged, above) == merged
    assert merged.keys() == below.keys() | above.keys()
    assert all(merged[key] == above[key] for key in above if not isinstance(above[key], dict))
    assert merge(below, {}) == below
    assert merge({}, above) == above


def test_an_entry_has_the_fields_of_the_one_it_is_like_but_for_its_own() -> None:
    entries = {
        "b": {"like": "a", "x": {"m": None}, "y": [2]},
        "a": {"x": {"k": 1, "m": 2}, "y": [1, 1], "vary": {"k": [1]}},
    }
    assert inherit(entries, "method", str, own=("vary",))["b"] == {"like": "a", "x": {"k": 1, "m": None}, "y": [2]}
    assert inherit(entries, "method", str)["a"] == entries["a"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            {"a": {"like": "b"}, "b": {"like": "c"}, "c": {}},
            "in a: like: 'b' is itself like 'c', and `like` reaches one",
        ),
        ({"a": {"like": "b"}, "b": {"like": "a"}}, "in a: like: 'b' is itself like 'a'"),
        ({"a": {"like": "a"}}, "in a: like: 'a' is the entry itself"),
        ({"abc": {"like": "acb"}}, "in abc: like: unknown thing 'acb': did you mean 'abc'?"),
        ({"a": {"like": ["b"]}}, "in a: like: unknown thing"),
        ({"a": "ei"}, "in a: an entry is a mapping of fields to values, not 'ei'"),
        ({"a": {"like": "b"}, "b": "ei"}, "in b: an entry is a mapping of fields to values, not 'ei'"),
    ],
)
def test_mistakes(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        inherit(entries, "thing", lambda name: f"in {name}")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a {x: 1}\nb:\n  <<: *a\n", ":3: merge keys (<<) are not used here: write `like: NAME`"),
        ("a: &a {x: 1}\nb: [{<<: *a, y: 2}]\n", ":2: merge keys"),
        ("a: {x: 1}\nb: {}\na: {}\n", ":3: 'a' is there twice"),
        ("a:\n  x: 1\n  x: 2\n", ":3: 'x' is there twice"),
    ],
)
def test_merge_keys_and_doubles_are_refused_with_file_and_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(PlumblineError) as caught:
        read_yaml(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_aliases_of_values_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: &a {x: 1}\nb: *a\n")
    assert read_yaml(tmp_path / "a.yaml") == {"a": {"x": 1}, "b": {"x": 1}}

"""Entries as they are written in the YAML files: each value with the file and the line that it comes from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import yaml
from yaml.constructor import SafeConstructor

from plumbline.core.errors import PlumblineError
from plumbline.core.nested import merge
from plumbline.core.strict_yaml import compose_yaml, yaml_files


@dataclass(frozen=True)
class Leaf:
    """A value, and where it comes from in a few words: `practice.yaml:12`, or `default`."""

    value: Any
    origin: str


Tree = dict[str, Union["Tree", Leaf]]
"""Nested options down to their values."""


@dataclass(frozen=True)
class Written:
    """An entry: its file, its first line, and what it says itself."""

    path: Path
    line: int
    tree: Tree

    @property
    def like(self) -> str:
        """The entry whose fields it has besides its own; empty where there is none."""
        like = self.tree.get("like")
        return str(like.value) if isinstance(like, Leaf) else ""


def entry_files(repository: Path, kind: str) -> list[Path]:
    """Return the files that hold the entries of a kind, `methods` or `tasks`; raise PlumblineError as `yaml_files`."""
    return yaml_files(repository / "config" / kind)


def read_written(paths: list[Path], below: str = "") -> dict[str, Written]:
    """Return the entries of YAML files by name: their top-level fields, or those of the field `below`.

    Raises:
        PlumblineError: what `compose_yaml` refuses.
    """
    found: dict[str, Written] = {}
    for path in paths:
        node = compose_yaml(path)
        if below:
            node = next((value for name, _, value in _fields(node) if name == below), None)
        for name, line, value in _fields(node):
            found[name] = Written(path, line, tree_of_node(value, path.name))
    return found


def _fields(node: yaml.Node | None) -> Iterator[tuple[str, int, yaml.Node]]:
    """Yield the name of each field of a mapping, the line of the name, and the value."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        yield str(_constructed(key)), key.start_mark.line + 1, value


def _constructed(node: yaml.Node) -> Any:
    return SafeConstructor().construct_document(node)


def tree_of_node(node: yaml.Node, file: str) -> Tree:
    """Return the tree of a mapping of a YAML file; empty of anything else."""
    return {
        name: tree_of_node(value, file)
        if isinstance(value, yaml.MappingNode) and value.value
        else Leaf(_constructed(value), f"{file}:{value.start_mark.line + 1}")
        for name, _, value in _fields(node)
    }


def tree_of(value: Any, origin: str) -> Tree | Leaf:
    """Return nested values as a tree of one origin."""
    if isinstance(value, dict) and value:
        return {str(name): tree_of(one, origin) for name, one in value.items()}
    return Leaf(value, origin)


def values_of(tree: Tree | Leaf) -> Any:
    """Return the values of a tree."""
    return tree.value if isinstance(tree, Leaf) else {name: values_of(one) for name, one in tree.items()}


def inherited(entries: dict[str, Written], name: str) -> Tree:
    """Return the fields of an entry, and of the entry that it is `like`, whose `vary` is not inherited."""
    chain = [entries[one].tree for one in (entries[name].like, name) if one in entries]
    below, *above = ({key: one for key, one in tree.items() if key not in ("like", "vary")} for tree in chain)
    return merge(below, above[0]) if above else below


def find_written(entries: dict[str, Written], kind: str, name: str) -> Written:
    """Return the entry of a name.

    Raises:
        PlumblineError: there is none in the files of the configuration.
    """
    if name not in entries:
        raise PlumblineError(f"no {kind} {name!r} in the files of the configuration")
    return entries[name]

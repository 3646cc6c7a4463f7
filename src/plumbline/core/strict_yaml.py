"""YAML as it is meant: bounded, without merge keys, dates and repeated names; errors name the file and the line."""

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from plumbline.core.errors import PlumblineError

_FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader where PyYAML was built with it: it is ten times as fast."""

LARGEST, DEEPEST, MOST_VALUES = 4_000_000, 64, 200_000
"""Bounds on a YAML document: bytes of its file, levels of nesting, and values with aliases followed.

The largest file of the studies has 52 kB, a dozen levels and some thousand values: what is beyond is an accident.
"""

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
"""What only an escape in double quotes can write, and no figure, page or path can hold."""

_YAML = "tag:yaml.org,2002:"
_TEXT = f"{_YAML}str"
_AS_READ = {
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "null": "nothing",
    "timestamp": "a date",
    "binary": "bytes",
    "set": "a set",
    "omap": "an ordered mapping",
    "pairs": "pairs",
}
"""Kinds of YAML values in words, for errors about values that would not be what they seem to be."""


def _refused(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)


class _Resolver(yaml.resolver.Resolver):
    """PyYAML's rules for what a scalar is, but that 1e-3 is a number, as it is in YAML 1.2 and everywhere else."""


_Resolver.add_implicit_resolver(
    f"{_YAML}float", re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class StrictLoader(_FAST):  # type: ignore[misc, valid-type]
    """YAML of bounded size, with mappings of names that are text, and there once; without merge keys and dates."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def descend_resolver(self, current_node: yaml.Node, current_index: Any) -> None:
        """Refuse deep nesting while the document is composed: later, it could exhaust the stack.

        Raises:
            yaml.constructor.ConstructorError: more than `DEEPEST` levels of nesting.
        """
        self._depth += 1
        if self._depth > DEEPEST:
            raise _refused(f"nested more than {DEEPEST} levels deep", current_node)

    def ascend_resolver(self) -> None:
        """Count the level as left."""
        self._depth -= 1

    resolve = staticmethod(lru_cache(maxsize=20_000)(_Resolver().resolve))
    """The tag of a node: most scalars of a file are there many times."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Leave a mapping as it is: it has no merge keys."""

    def get_single_node(self) -> yaml.Node | None:
        """Compose the document, and refuse what PyYAML would resolve silently or without an end.

        Raises:
            yaml.YAMLError: the document is not YAML, or has what `StrictLoader` refuses.
        """
        node = super().get_single_node()
        if isinstance(node, yaml.CollectionNode):
            _extent(node, {})
        return node


def _extent(node: yaml.CollectionNode, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Check the mappings of a node, and find its number of values and of levels, aliases followed.

    Args:
        node: a mapping or a list of a composed document.
        known: by identity, the extents of the collections so far; those that are being looked at have no values.
    """
    extent = known.get(id(node))
    if extent is not None:
        if not extent[0]:
            raise _refused("an alias (*) inside of what it stands for", node)
        return extent
    known[id(node)] = 0, 0
    if isinstance(node, yaml.MappingNode):
        _check_names(node)
        children = [value for _, value in node.value]
    else:
        children = node.value
    size, depth = 1, 0
    for child in children:
        if isinstance(child, yaml.ScalarNode):
            more, levels = 1, 1
            if child.style == '"' and (found := _UNPRINTABLE.search(child.value)):
                raise _refused(f"the text has a character that cannot be printed, {found[0]!r}", child)
        else:
            more, levels = _extent(child, known)
        size, depth = size + more, max(depth, levels)
    if size > MOST_VALUES or depth >= DEEPEST:
        raise _refused(
            f"more than {MOST_VALUES:,} values, or {DEEPEST} levels of nesting, with aliases (*) followed", node
        )
    known[id(node)] = size, depth + 1
    return size, depth + 1


def _check_names(node: yaml.MappingNode) -> None:
    """Refuse merge keys, names that are not text on one line, and names that are there twice."""
    texts = {key.value for key, _ in node.value if key.tag == _TEXT and isinstance(key, yaml.ScalarNode)}
    if len(texts) == len(node.value) and "".join(texts).isprintable():
        return  # nearly all mappings: what follows looks for the mistake
    first: dict[str, yaml.Node] = {}
    for key, _ in node.value:
        name = key.value
        if key.tag == f"{_YAML}merge":
            raise _refused("merge keys (<<) are not used here: write `like: NAME`, or the fields themselves", key)
        if key.tag != _TEXT or not isinstance(name, str):
            kind = _AS_READ.get(key.tag.removeprefix(_YAML), "a list or a mapping")
            what = f"the name {name}" if isinstance(name, str) else "a name"
            raise _refused(f"{what} is read as {kind}, and names are text: put it in quotes", key)
        if name in first:
            line = first[name].start_mark.line + 1
            raise _refused(f"{name!r} is there twice: it is in line {line} already", key)
        if not name.isprintable():
            raise _refused(f"the name {name!r} has characters that cannot be printed", key)
        first[name] = key


def _constructed(construct: Callable[[Any, yaml.ScalarNode], Any]) -> Callable[[Any, yaml.ScalarNode], Any]:
    """Give errors of a constructor of scalars their line, and refuse spellings that YAML reads as another number."""

    def constructed(loader: Any, node: yaml.ScalarNode) -> Any:
        kind = _AS_READ[node.tag.removeprefix(_YAML)]
        try:
            value = construct(loader, node)
        except (ValueError, LookupError) as error:
            raise _refused(f"{node.value[:40]!r} cannot be read as {kind}", node) from error
        octal = isinstance(value, int) and re.match(r"[-+]?0[0-9_]", node.value)
        if kind == "a number" and (octal or ":" in node.value):
            raise _refused(f"YAML reads {node.value} as {value}: write that number, or put the text in quotes", node)
        return value

    return constructed


def _no_construction(loader: Any, node: yaml.Node) -> Any:
    kind = _AS_READ[node.tag.removeprefix(_YAML)]
    shown = repr(node.value[:40]) if isinstance(node, yaml.ScalarNode) else "what is there"
    raise _refused(f"{shown} is read as {kind}: put it in quotes if it is text", node)


for _tag in ("bool", "int", "float"):
    StrictLoader.add_constructor(_YAML + _tag, _constructed(_FAST.yaml_constructors[_YAML + _tag]))
for _tag in ("timestamp", "binary", "set", "omap", "pairs"):
    StrictLoader.add_constructor(_YAML + _tag, _no_construction)


def parse_yaml(text: str, source: str | Path) -> Any:
    """Construct the value of a YAML document.

    Raises:
        PlumblineError: the text is not YAML, or is refused by `StrictLoader`; the message has `source` and the line.
    """
    return _document(text, source)[1]


def _document(text: str, source: str | Path) -> tuple[yaml.Node | None, Any]:
    """Return the node of a YAML document, None where it is empty, and its value."""
    try:
        loader = StrictLoader(text)
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    except yaml.constructor.ConstructorError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise PlumblineError(f"{source}{line}: {error.problem}") from error
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        parts = " ".join(filter(None, (error.problem, error.context)))
        raise PlumblineError(f"{source} is not YAML: {parts}{line}") from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise PlumblineError(f"{source} is not YAML: {' '.join(str(error).split())}") from error


def line_of(path: Path, *names: str) -> int:
    """Find the line of a YAML file, once read, in which the last of `names` is written: each in the one before it.

    Raises:
        PlumblineError: the file cannot be read any more (see `read_yaml`).
    """
    node: Any = compose_yaml(path)
    line = 1
    for name in names:
        line, node = next((key.start_mark.line + 1, value) for key, value in node.value if key.value == name)
    return line


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        PlumblineError: the file does not exist, is a folder, too large, not UTF-8 or not YAML, or is refused by
            `StrictLoader`; the message names the file, and the line where there is one.
    """
    return parse_yaml(_text_of(path), path)


def compose_yaml(path: Path) -> yaml.Node | None:
    """Read the node of a YAML file, whose parts know their lines; None where it is empty.

    Raises:
        PlumblineError: what `read_yaml` refuses, values that cannot be constructed included.
    """
    return _document(_text_of(path), path)[0]


def yaml_files(folder: Path) -> list[Path]:
    """Return the YAML files of a folder by name, without hidden ones: those are what editors and systems leave.

    Raises:
        PlumblineError: a file with another spelling of the ending, `.yml`, which would be overlooked.
    """
    paths = sorted(folder.glob("[!.]*"))
    for path in paths:
        if path.suffix != ".yaml" and path.suffix.lower() in (".yaml", ".yml"):
            raise PlumblineError(f"{path} is not read: rename it to {path.stem}.yaml")
    return [path for path in paths if path.suffix == ".yaml"]


def _text_of(path: Path) -> str:
    """Return the text of a YAML file; raise PlumblineError where it is none, or too large."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise PlumblineError(f"no file {path}") from error
    except IsADirectoryError as error:
        raise PlumblineError(f"{path} is a folder: a YAML file is wanted") from error
    if len(content) > LARGEST:
        raise PlumblineError(f"{path} is larger than {LARGEST // 1_000_000} MB: is it a YAML file?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{path}: byte {error.start + 1} is not UTF-8: save the file in that encoding") from error

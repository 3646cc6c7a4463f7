"""What docstrings and comments name in backticks, by module and name, is there."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FIELDS = {"diagnostics", "model", "options", "training"}
"""Modules that are called like fields of the configuration, whose names have dots too."""

SUFFIXES = {"css", "csv", "html", "js", "json", "png", "pt", "py", "svg", "yaml"}


def dotted(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def names_in(path: Path) -> set[str]:
    """What a module defines or imports."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                found.add(node.name)
            case ast.Assign():
                found.update(one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name))
            case ast.AnnAssign(target=ast.Name() as target):
                found.add(target.id)
            case ast.ImportFrom():
                found.update(one.asname or one.name for one in node.names)
    return found


MODULES = {dotted(path): names_in(path) for path in sorted(SOURCE.rglob("*.py"))}
LAST = {name.split(".")[-1] for name in MODULES} - FIELDS


def is_there(reference: str) -> bool:
    """Whether a module, or a name in one, has this name or ends with it; attributes of a class are not looked at."""
    parts = reference.split(".")
    for module, names in MODULES.items():
        for i in range(1, len(parts) + 1):
            if f".{module}".endswith("." + ".".join(parts[:i])) and (i == len(parts) or parts[i] in names):
                return True
    return False


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=dotted)
def test_every_name_is_there(path: Path) -> None:
    for reference in re.findall(r"`([a-z_]+(?:\.[A-Za-z_]\w*)+)`", path.read_text(encoding="utf-8")):
        first, last = reference.split(".")[0], reference.split(".")[-1]
        if (first == "plumbline" or first in LAST) and last not in SUFFIXES:
            assert is_there(reference), reference

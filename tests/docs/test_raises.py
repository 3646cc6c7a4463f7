"""A public function that raises an error says so in its docstring."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "plumbline"
PATHS = [path for path in sorted(SOURCE.rglob("*.py")) if "cli" not in path.relative_to(SOURCE).parts]
"""All but the commands, whose docstrings are the texts of `--help`."""

VALIDATOR = re.compile(r"\b(field_validator|model_validator|validator)\b")
"""Decorators of functions whose errors are pydantic's, which calls them."""

REFUSAL = re.compile(r"(refuse|check|require)(_\w+)?")
"""Functions that only refuse: the first line of their docstring says what."""

SECTION = re.compile(r"^Raises:\n {4}\S", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_scope(node: ast.AST) -> bool:
    """Whether what is inside of a node is not the code of what is around it."""
    return isinstance(node, Function | ast.Lambda | ast.ClassDef)


def nodes_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node, without those in functions and classes inside of it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not is_scope(child):
            yield from nodes_in(child)


def public_functions(parent: ast.AST) -> Iterator[Function]:
    """Yield the functions of a module, and the methods of its classes, that have no leading underscore in a name."""
    for node in nodes_in(parent):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node)
        elif isinstance(node, Function) and not node.name.startswith("_"):
            yield node


def errors_of(function: Function) -> set[str]:
    """Return the errors that a function raises itself; a bare `raise` passes on another's."""
    found = (node.exc for node in nodes_in(function) if isinstance(node, ast.Raise))
    return {ast.unparse(error).partition("(")[0] for error in found if error is not None}


def is_exempt(function: Function, errors: set[str]) -> bool:
    """Whether no section is wanted."""
    return (
        REFUSAL.fullmatch(function.name) is not None
        or any(VALIDATOR.search(ast.unparse(one)) for one in function.decorator_list)
        # BoTorch's property, of problems whose optimisers are not known: its docstring says that there are none.
        or (function.name == "optimizers" and errors == {"NotImplementedError"})
        # A portfolio catches the error that it raises for a member, and goes on without this member.
        or (function.name == "proposed" and errors == {"NanError"})
    )


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_errors_are_in_the_docstring(path: Path) -> None:
    for function in public_functions(ast.parse(path.read_text(encoding="utf-8"))):
        errors = errors_of(function)
        if errors and not is_exempt(function, errors):
            assert SECTION.search(ast.get_docstring(function) or ""), f"{function.name} raises {errors}"

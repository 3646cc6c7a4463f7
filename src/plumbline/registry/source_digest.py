"""Which source files a module rests on, and a digest of what they do.

The trial store is keyed by this digest: editing one method never invalidates another's results. The imports are read
from the syntax tree, nothing is imported; comments, docstrings and layout do not count. What was digested once is kept
in the user's cache folder, since a job that runs short trials would be longer at this than at them.
"""

import ast
import hashlib
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import platformdirs

from plumbline.core import files

PACKAGE = "plumbline"
ROOT = Path(__file__).parents[1]

NEUTRAL = frozenset(
    f"{PACKAGE}{name and f'.{name}'}"
    for name in (
        "",  # the package itself: names of the Python interface
        "core.errors",
        "core.files",
        "core.history",
        "core.inputs",
        "core.options",
        "core.outcomes",
        "designs.base",
        "methods.base",
        "methods.proposal",
        "problems.base",
        "registry.catalogue",
        "registry.references",
        "registry.registry",
        "registry.source_digest",
        "spaces.base",
        "store.folder",
        "store.keys",
        "store.observers",
        "store.provenance",
        "store.records",
        "store.spec",
        "trials.checkpoint",
        "trials.design_cache",
        "trials.log",
        "trials.results",
        "trials.runner",
    )
)
"""Modules that carry, name, check and keep results, and change none, and those that only say what a method, a problem,
a space or a design is: a digest does not follow imports into them.

Of a trial, that is the log, its checkpoint and its results, the initial designs that are kept, and the runner, which
says when rounds are run but not what comes of them.
"""


def _path(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imports(module: str) -> frozenset[str]:
    """Return the modules of this package that `module` imports itself, at any depth of its code."""
    path = _path(module)
    assert path is not None
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    own = {name for name in found if name.split(".")[0] == PACKAGE and _path(name)}
    # `import a.b.c` runs a/__init__ and a/b/__init__ too.
    parents = {".".join(name.split(".")[:depth]) for name in own for depth in range(1, name.count(".") + 1)}
    return frozenset(own | parents)


def closure(*modules: str) -> list[str]:
    """Return `modules` and what they import of this package, directly or not, sorted; neutral modules are left out."""
    seen: set[str] = set()
    todo = list(modules)
    while todo:
        module = todo.pop()
        if module not in seen and module not in NEUTRAL:
            seen.add(module)
            todo.extend(_imports(module))
    return sorted(seen)


def _without_docstrings(tree: ast.Module) -> str:
    tree = ast.parse(ast.unparse(tree))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        node.body = [  # type: ignore[attr-defined]
            statement
            for statement in body
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        ] or [ast.Pass()]
    return ast.unparse(tree)


@cache
def _digest(module: str) -> str:
    path = _path(module)
    assert path is not None
    return hashlib.sha256(_without_docstrings(_tree(path)).encode()).hexdigest()


@cache
def source_digest(*modules: str) -> str:
    """Return a hex digest of the code that `modules` rest on."""
    # Another Python may write the same syntax tree otherwise.
    asked = "\n".join([sys.implementation.cache_tag, *sorted(modules)])
    path = cache_folder() / "digests" / hashlib.sha256(asked.encode()).hexdigest()[:16]
    with suppress(OSError, ValueError):
        digest = path.read_text(encoding="utf-8")
        if len(bytes.fromhex(digest)) == 8:
            return digest
    lines = (f"{module} {_digest(module)}" for module in closure(*modules))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    with suppress(OSError):  # a read-only home costs a moment at the next start, nothing else
        files.write_text(path, digest)
    return digest


@cache
def package_digest() -> str:
    """Return a hex digest of the text of every source file of the package."""
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return the folder of what is known of this very source; it may not be there yet."""
    return platformdirs.user_cache_path("plumbline") / package_digest()

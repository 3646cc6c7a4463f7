"""The source files that a module depends on, and a digest of their code.

The trial store is keyed by this digest: editing one method never invalidates another's results. Imports are read from
the syntax tree without importing; comments, docstrings and layout do not count. Digests are cached in the user's cache
folder, since computing one takes longer than a short trial.
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
"""Modules that transport, name, check and store results without changing them, and interfaces of methods, problems,
spaces and designs: a digest does not follow imports into them.

The neutral parts of a trial are its log, checkpoint, results and cached designs, and the runner, which schedules rounds
without affecting their results.
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
    """Return the modules of this package that `module` imports directly, at any depth of its code."""
    path = _path(module)
    assert path is not None
    imported: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    own = {name for name in imported if name.split(".")[0] == PACKAGE and _path(name)}
    # `import a.b.c` runs a/__init__ and a/b/__init__ too.
    parents = {".".join(name.split(".")[:depth]) for name in own for depth in range(1, name.count(".") + 1)}
    return frozenset(own | parents)


def closure(*modules: str) -> list[str]:
    """Return `modules` and their imports from this package, direct or indirect, sorted, without neutral modules."""
    visited: set[str] = set()
    todo = list(modules)
    while todo:
        module = todo.pop()
        if module not in visited and module not in NEUTRAL:
            visited.add(module)
            todo.extend(_imports(module))
    return sorted(visited)


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
    """Return a hex digest of the code that `modules` depend on."""
    # Another version of Python may unparse the same syntax tree differently.
    name = "\n".join([sys.implementation.cache_tag, *sorted(modules)])
    path = cache_folder() / "digests" / hashlib.sha256(name.encode()).hexdigest()[:16]
    with suppress(OSError, ValueError):
        digest = path.read_text(encoding="utf-8")
        if len(bytes.fromhex(digest)) == 8:
            return digest
    lines = (f"{module} {_digest(module)}" for module in closure(*modules))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    with suppress(OSError):  # a read-only home only costs a moment at the next start
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
    """Return the cache folder of this source tree; it may not exist yet."""
    return platformdirs.user_cache_path("plumbline") / package_digest()

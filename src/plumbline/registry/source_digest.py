"""The source files that a module depends on, and a digest of their code.

The trial store is keyed by this digest: editing one method never invalidates another's results. Imports are read from
the syntax tree without importing; comments, docstrings and layout do not count. Digests are cached in the user's cache
folder, since computing one takes longer than a short trial.

A method may import modules outside of this package. Those that are installed are named by their versions, in the
provenance; a user's own (on PYTHONPATH, in the working directory, in an editable installation, or in an installed
package that declares methods or problems) count as this package's modules do.
"""

import ast
import hashlib
import json
import sys
import sysconfig
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib import invalidate_caches
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import platformdirs

from plumbline.core import files
from plumbline.core.errors import PlumblineError
from plumbline.registry.packages import top_modules

PACKAGE = "plumbline"
ROOT = Path(__file__).parents[1]

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Names of the folders that installers write to."""

NEUTRAL = frozenset(
    f"{PACKAGE}{name and f'.{name}'}"
    for name in (
        "",  # the package itself: names of the Python interface
        "core.call_timeout",
        "core.culprits",
        "core.errors",
        "core.files",
        "core.history",
        "core.inputs",
        "core.machine",
        "core.named_numbers",
        "core.options",
        "core.outcomes",
        "core.saved_state",
        "core.strict_yaml",
        "designs.base",
        "methods.base",
        "methods.proposal",
        "problems.base",
        "registry.catalogue",
        "registry.packages",
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
        "trainers.checkpoint",
        "trials.checkpoint",
        "trials.design_cache",
        "trials.log",
        "trials.results",
        "trials.rounds",
        "trials.runner",
        "trials.session",
    )
)
"""Modules that transport, name, check and store results without changing them, and interfaces of methods, problems,
spaces and designs: a digest does not follow imports into them.

The neutral parts of a trial are its log, checkpoint, results and cached designs, and its session, rounds and
runner, which schedule the steps without affecting their results.
"""


def _path(module: str) -> Path | None:
    """The source file of a module of this package or of one's own; None where there is none."""
    top, *inner = module.split(".")
    if top != PACKAGE:
        return _own_path(module)
    base = ROOT.joinpath(*inner)
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _spec(module: str) -> ModuleSpec | None:
    """What Python would import as `module`; None where there is no such module. Nothing is imported."""
    parent, _, leaf = module.rpartition(".")
    with suppress(ImportError, ValueError, AttributeError, OSError):  # a finder of another package may raise anything
        if not parent:
            return find_spec(module)
        if (package := _spec(parent)) is None or package.submodule_search_locations is None:
            return None
        folders = list(package.submodule_search_locations)
        try:
            return PathFinder.find_spec(module, folders)
        except KeyError:  # a folder without `__init__.py` inside of another: Python asks for that, which is not loaded
            spec = ModuleSpec(module, None, is_package=True)
            spec.submodule_search_locations = [str(Path(folder) / leaf) for folder in folders]
            return spec
    return None


@cache
def _of_python(top: str) -> bool:
    """Whether a top-level module is Python's own; a user's file may have the name of one, and come first."""
    if top not in sys.stdlib_module_names:
        return False
    spec = _spec(top)
    if spec is None or not spec.has_location or spec.origin is None:
        return True
    return any(Path(spec.origin).is_relative_to(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib"))


@cache
def _installed(top: str) -> bool:
    """Whether a top-level module is Python's own or an installed package: a version, not its files, says what it is.

    Of an installed package that declares methods or problems, which its author is working on, the files do.
    """
    if _of_python(top):
        return True
    if top in top_modules():
        return False
    spec = _spec(top)
    if spec is None:
        return True
    places = [spec.origin] if spec.has_location and spec.origin else list(spec.submodule_search_locations or ())
    return not any(INSTALLED.isdisjoint(Path(place).parts) for place in places)


def _own_path(module: str) -> Path | None:
    """The file of a module that is on Python's path, and not installed: a user's own code."""
    if _installed(module.partition(".")[0]):
        return None
    spec = _spec(module)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _is_package(path: Path) -> bool:
    return path.name == "__init__.py"


@cache
def _tree(path: Path) -> ast.Module:
    """The syntax tree of a source file.

    Raises:
        PlumblineError: it is not Python; the message names file and line. Or it has gone since its module was imported.
    """
    try:
        return ast.parse(path.read_bytes())
    except FileNotFoundError as error:
        raise PlumblineError(f"{path} is not there any more: import its module from where it is now") from error
    except SyntaxError as error:
        raise PlumblineError(f"{path}, line {error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise PlumblineError(f"{path} is no Python source: {' '.join(str(error).split())}") from error


def _is_source(path: Path) -> bool:
    return path.suffix in (".py", ".pyw")


def _names(module: str) -> frozenset[str]:
    """Return the names that `module` may import, at any depth of its code: modules, and what is in them."""
    path = _path(module)
    assert path is not None
    if not _is_source(path):  # compiled: it does not say what it imports
        return frozenset()
    package = module if _is_package(path) else module.rpartition(".")[0]
    imported: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            imported |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and node.args and _imports_by_name(node.func):
            named = node.args[0]
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                imported.add(named.value)
    return frozenset(name for name in imported if not name.startswith(".") and name)


def _imports_by_name(function: ast.expr) -> bool:
    """Whether a called function is `importlib.import_module` or `__import__`."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def _with_parents(names: Iterable[str]) -> set[str]:
    """Return names of modules with their packages: `import a.b.c` runs a/__init__ and a/b/__init__ too."""
    return {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 2)}


@cache
def _imports(module: str) -> frozenset[str]:
    """Return the modules of this package that `module` imports directly, at any depth of its code."""
    return frozenset(_with_parents(name for name in _names(module) if name.split(".")[0] == PACKAGE and _path(name)))


@cache
def _imports_outside(module: str) -> frozenset[str]:
    """Return the names outside of this package, and of Python, that `module` imports directly."""
    tops = {name: name.split(".")[0] for name in _names(module)}
    return frozenset(name for name, top in tops.items() if top != PACKAGE and not _of_python(top))


def closure(*modules: str) -> list[str]:
    """Return `modules` and their imports from this package, direct or indirect, sorted, without neutral modules."""
    return _reached(modules, _imports)


def _reached(modules: Iterable[str], follow: Callable[[str], Iterable[str]]) -> list[str]:
    visited: set[str] = set()
    todo = list(modules)
    while todo:
        module = todo.pop()
        if module not in visited and module not in NEUTRAL:
            visited.add(module)
            todo.extend(follow(module))
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
    code = _without_docstrings(_tree(path)).encode() if _is_source(path) else path.read_bytes()
    return hashlib.sha256(code).hexdigest()


@cache
def _kept(modules: tuple[str, ...]) -> dict[str, Any]:
    """Return the digest of the code of this package that `modules` depend on, and the names outside that it imports.

    Kept for the next process: this package's files are those of its cache folder. Files outside may change under it.

    Raises:
        PlumblineError: this package's files have changed since the process began, and are others than it runs.
    """
    # Another version of Python may unparse the same syntax tree differently.
    name = "\n".join([sys.implementation.cache_tag, *modules])
    path = cache_folder() / "digests" / hashlib.sha256(name.encode()).hexdigest()[:16]
    if package_digest.__wrapped__() != package_digest():
        raise PlumblineError("the source of plumbline has changed while this process ran: start it again")
    with suppress(OSError, PlumblineError, ValueError, TypeError):
        kept = files.read_json(path, ["digest", "outside"])
        if len(bytes.fromhex(kept["digest"])) == 8 and all(isinstance(name, str) for name in kept["outside"]):
            return kept
    inner = closure(*modules)
    lines = (f"{module} {_digest(module)}" for module in inner)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    kept = {"digest": digest, "outside": sorted({name for module in inner for name in _imports_outside(module)})}
    with suppress(OSError):  # a read-only home only costs a moment at the next start
        files.write_text(path, json.dumps(kept))
    return kept


@cache
def _reaches(*modules: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the modules of this package to begin with, and all others of one's own that are reached from `modules`.

    One's own modules may import those of this package, which may import others.
    """

    def follow(module: str) -> set[str]:
        return {name for name in _with_parents(_imports_outside(module)) if _path(name)}

    inner, outer = {module for module in modules if module.split(".")[0] == PACKAGE}, set[str]()
    begun = _with_parents(set(modules) - inner)
    while True:
        begun |= _with_parents(_kept(tuple(sorted(inner)))["outside"])
        outer = {*_reached((name for name in begun if _path(name)), follow)}
        more = inner.union(*map(_imports, outer)) - NEUTRAL
        if more == inner:
            return tuple(sorted(inner)), tuple(sorted(outer))
        inner = more


def outside(*modules: str) -> dict[str, str]:
    """Return the digests of one's own modules outside of this package that `modules` depend on, by name.

    Raises:
        PlumblineError: Python has loaded one of them, and its file has changed since; or it has loaded one anew, and
            not those that import it, which hold what they took from the earlier one.
    """
    found = {module: _digest(module)[:16] for module in _reaches(*modules)[1]}
    specs = {module: getattr(sys.modules.get(module), "__spec__", None) for module in found}  # a new one after a reload
    # By identity: the specs of a module before and after it is loaded again are equal.
    anew = {
        module
        for module, (known, before) in _LOADED.items()
        if module in found and known is not None and known is not specs[module] and before != found[module]
    }
    for module, spec in specs.items():
        known, _ = _LOADED.get(module, (None, ""))
        behind = anew & _imports_outside(module) if spec is not None and (known is None or known is spec) else None
        if behind:
            _LOADED[module] = spec, found[module]  # with another spec, it was loaded after this
            raise PlumblineError(
                f"module {module!r} imports {min(behind)!r}, which was loaded again: reload it too (importlib.reload), "
                "or restart"
            )
    for module, digest in found.items():
        spec = specs[module]
        known, before = _LOADED.get(module, (None, digest))
        if spec is not None and before != digest and (known is None or known is spec):
            _LOADED[module] = spec, before
            raise PlumblineError(
                f"module {module!r} has changed since Python loaded it: reload it (importlib.reload), or restart"
            )
        _LOADED[module] = spec, digest
    return found


_LOADED: dict[str, tuple[ModuleSpec | None, str]] = {}
"""What one's own modules were loaded from when their digest was last taken, None before they were, and the digest."""


def look_again() -> None:
    """Forget what was read of one's own modules: in a notebook they change while Python runs."""
    invalidate_caches()
    for cached in (_spec, _of_python, _installed, _tree, _imports, _imports_outside, _digest, _reaches, source_digest):
        cached.cache_clear()


def installed(*modules: str) -> list[str]:
    """Return the top-level names of the installed packages that `modules` depend on.

    Raises:
        PlumblineError: this package's files have changed since the process began.
    """
    inner, outer = _reaches(*modules)
    begun = {module for module in modules if module.split(".")[0] != PACKAGE}
    names = {*_kept(inner)["outside"], *begun}.union(*map(_imports_outside, outer))
    return sorted(top for top in {name.partition(".")[0] for name in names} if _installed(top) and _spec(top))


@cache
def source_digest(*modules: str) -> str:
    """Return a hex digest of the code that `modules` depend on: of this package, and of one's own outside of it.

    Raises:
        PlumblineError: this package's files have changed since the process began; or as `outside`.
    """
    digest = _kept(_reaches(*modules)[0])["digest"]
    if lines := [f"{module} {code}" for module, code in outside(*modules).items()]:
        return hashlib.sha256("\n".join([digest, *lines]).encode()).hexdigest()[:16]
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

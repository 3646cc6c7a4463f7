"""Registries of problems and methods: a decorator registers a class or a function, a look-up returns it.

A look-up imports only the module that the catalogue lists for the name: other modules may import libraries that take
seconds, and most trials need none of them. A name that is none of ours may be one that another package declares.
"""

import importlib
import json
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from plumbline.core.errors import PlumblineError, absent_module, unknown
from plumbline.core.options import Options
from plumbline.registry import packages
from plumbline.registry.source_digest import cache_folder

T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry:
    """A registered name with its class or function, options and module."""

    name: str
    summary: str
    build: Callable[..., Any]
    options: type[Options]
    module: str


def import_module(module: str) -> None:
    """Import a module of somebody's own.

    Raises:
        PlumblineError: there is no such module, or it raises an error, whose file and line the message has.
    """
    try:
        importlib.import_module(module)
    except SyntaxError as error:
        raise PlumblineError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    except PlumblineError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise PlumblineError(absent_module(str(error.name))) from error
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
        place = packages.place_in_packages(error) or f"{frames[-1].filename}, line {frames[-1].lineno}"
        raise PlumblineError(f"{module} cannot be imported: {place}: {type(error).__name__}: {error}") from error


def catalogue_path() -> Path:
    """Return the path of the catalogue of this source tree; the file may not exist yet."""
    return cache_folder() / "catalogue.json"


def listed_modules(kind: str) -> dict[str, str]:
    """Return the module of each name of a kind in the catalogue's file; empty where there is no such file."""
    try:
        listings = json.loads(catalogue_path().read_text(encoding="utf-8"))[kind]
        return {name: listing["module"] for name, listing in listings.items()}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


class Registry:
    """The named members of one package, and those that other packages declare.

    A module is imported at the first look-up of a name in it.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._entries: dict[str, Entry] = {}
        self._listed: dict[str, str] = {}

    def register(self, name: str, options: type[Options], summary: str | None = None) -> Callable[[T], T]:
        """Enter the decorated class or function under `name`; its docstring's first line is the summary."""

        def enter(build: T) -> T:
            outside = build.__module__.partition(".")[0] != self.package.partition(".")[0]
            listed = self._listed_module(name) if outside else None
            known = self._entries[name].module if name in self._entries else listed
            if known not in (None, build.__module__):
                raise ValueError(f"{self.kind} {name!r} is registered twice: {known} and {build.__module__}")
            line = summary or (build.__doc__ or name).strip().splitlines()[0]
            self._entries[name] = Entry(name, line, build, options, build.__module__)
            return build

        return enter

    def entries(self) -> dict[str, Entry]:
        """Return every entry by name, in alphabetical order."""
        for module in self._modules():
            import_module(module)
        return dict(sorted(self._entries.items()))

    def __getitem__(self, name: str) -> Entry:
        """Return the entry of `name`.

        Raises:
            PlumblineError: unknown name, with the nearest known one; a module that cannot be imported.
        """
        if name not in self._entries:
            if (module := self._listed_module(name)) is not None:
                import_module(module)
            elif (one := packages.declared(self.kind, name)) is not None:
                self._import_declared(one)
        entries = self._entries if name in self._entries else self.entries()
        if name not in entries:
            raise unknown(self.kind, name, entries, f"plumbline classes {self.kind}")
        return entries[name]

    def _listed_module(self, name: str) -> str | None:
        self._listed = self._listed or listed_modules(self.kind)
        return self._listed.get(name)

    def _import_declared(self, one: packages.Declared) -> None:
        """Import the module of another package that registers a name."""
        try:
            import_module(one.module)
        except PlumblineError as error:
            raise PlumblineError(f"package {one.package}: {error}") from error
        if one.name not in self._entries:
            raise PlumblineError(
                f"package {one.package}: {one.module} registers no {self.kind} {one.name!r}: "
                f"decorate it with `@{self.kind}s.register({one.name!r}, ...)`, or correct the entry point"
            )

    def _modules(self) -> list[str]:
        """Return the modules of the package."""
        folder = Path(importlib.import_module(self.package).__path__[0])
        return [
            ".".join([self.package, *path.relative_to(folder).with_suffix("").parts])
            for path in sorted(folder.rglob("[!_]*.py"))
        ]

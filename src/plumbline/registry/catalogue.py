"""The catalogue of registered methods, problems, illustrations, figures and tables, readable without torch.

Building it imports every registered module, which takes seconds; Snakemake reads the configuration at every start and
in every cluster job. The catalogue is therefore cached in the user's cache folder under a digest of the source.

What other packages declare is not part of it. It is listed when it is looked up, and cached under a digest of their
source.
"""

import hashlib
import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal

from plumbline.core import files
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.inputs import METHOD, named_by
from plumbline.core.inputs import declared as marked
from plumbline.core.options import Options, parse
from plumbline.registry import packages
from plumbline.registry import source_digest as sources
from plumbline.registry.registry import Entry, Registry, catalogue_path

Kind = Literal["method", "problem", "design", "trainer", "illustration", "figure", "table"]


class Listing(Options):
    """One registered name.

    Attributes:
        name: as registered.
        summary: the first line of its docstring.
        module: where its code is.
        options: JSON schema.
        provides: features of a method for those that have it as their base or member.
        passes_on: features that a wrapper provides if its base does.
        needs: features that a wrapper or portfolio needs of its base or each member; None for other methods.
        libraries: distributions whose versions the results of a method depend on, and which may be absent.
        distribution: of the package that declares it; empty for this one.
        code: digest of the source of that package; empty for this one, whose digest the cache has in its path.
    """

    name: str
    summary: str
    module: str
    options: dict[str, Any]
    provides: tuple[str, ...] = ()
    passes_on: tuple[str, ...] = ()
    needs: tuple[str, ...] | None = None
    libraries: tuple[str, ...] = ()
    distribution: str = ""
    code: str = ""

    @property
    def place(self) -> str:
        """The module, and the package where it is another one."""
        return f"{self.module} (package {self.distribution})" if self.distribution else self.module


class Catalogue(Options):
    """Every registered method, problem, design, trainer, illustration, figure and table, by name."""

    method: dict[str, Listing]
    problem: dict[str, Listing]
    design: dict[str, Listing]
    trainer: dict[str, Listing]
    illustration: dict[str, Listing]
    figure: dict[str, Listing]
    table: dict[str, Listing]

    def _own(self, kind: Kind) -> dict[str, Listing]:
        listings: dict[str, Listing] = getattr(self, kind)
        return listings

    def has(self, kind: Kind, name: str) -> bool:
        """Return whether there is a `kind` called `name`, here or in a package that declares it."""
        return name in self._own(kind) or name in packages.declared_names(kind)

    def find(self, kind: Kind, name: str) -> Listing:
        """Return the listing of `name`.

        Raises:
            PlumblineError: there is none, with the nearest name; or the package that declares it is broken.
        """
        listings = self._own(kind)
        if name in listings:
            return listings[name]
        if (one := packages.declared(kind, name)) is not None:
            return _of_package(kind, one)
        raise unknown(kind, name, [*listings, *packages.declared_names(kind)], f"plumbline classes {kind}")

    def listed(self, kind: Kind) -> dict[str, Listing]:
        """Return the listings of a kind by name, those of other packages last.

        What is wrong with a package is a warning, and the others are listed.
        """
        listings = dict(self._own(kind))
        for name in packages.declared_names(kind):
            try:
                self._refuse_two(kind, name)
                listings[name] = self.find(kind, name)
            except PlumblineError as error:
                warnings.warn(f"{kind} {name!r} is not listed: {error}", stacklevel=2)
        return listings

    def _refuse_two(self, kind: Kind, name: str) -> None:
        """Raise PlumblineError if a package declares a name that this one has."""
        if name in self._own(kind) and (one := packages.declared(kind, name)) is not None:
            raise PlumblineError(
                f"{kind} {name!r} is registered twice: by {self._own(kind)[name].module} "
                f"and by the package {one.package}: rename that of the package"
            )

    def bases(self, name: str) -> list[str]:
        """Return the methods that can be the base or a member of `name`; a wrapper, only if its own base can."""
        needs = self.find("method", name).needs
        return [] if needs is None else [other for other, one in self.listed("method").items() if _serves(one, needs)]

    def wrappers(self, name: str) -> list[str]:
        """Return the wrappers and portfolios that the method `name` can be the base or a member of."""
        found = self.find("method", name)
        listings = self.listed("method").items()
        return [other for other, one in listings if one.needs is not None and _serves(found, one.needs)]

    def code_outside(self, kind: Kind, name: str, options: Mapping[str, Any]) -> list[str]:
        """Return digests of the source of other packages that says what `options` may be; methods inside count."""
        listing = self.find(kind, name)
        found = [listing.code] if listing.code else []
        for one in marked(listing.options, options):
            if one.mark == METHOD:
                inner = one.value if isinstance(one.value, Mapping) else {"name": one.value}
                base, its_options = inner.get("name"), inner.get("options", {})
                # What is no method is refused when the options are parsed.
                if isinstance(base, str) and isinstance(its_options, Mapping) and self.has("method", base):
                    found += self.code_outside("method", base, its_options)
        return found

    def check(self, kind: Kind, name: str, options: dict[str, Any], source: str) -> None:
        """Raise PlumblineError if there is no `kind` called `name`, or if `options` are not its options."""
        try:
            self._refuse_two(kind, name)
            listing = self.find(kind, name)
            code = self.code_outside(kind, name, options)
        except PlumblineError as error:
            raise PlumblineError(f"{source}: {error}") from error
        missing = sorted(set(listing.options.get("required", ())) - options.keys())
        if missing == ["dim"]:
            raise PlumblineError(f"{source}: {kind} {name!r}: dim: Field required: write `{name}-2`, say")
        if missing:
            raise PlumblineError(
                f"{source}: {kind} {name!r}: {missing[0]}: Field required"
                f"{f' (and {len(missing) - 1} more)' if missing[1:] else ''}{_where_options_are(kind, name)}"
            )
        where = f"{source}: {kind} {name!r}"
        try:
            item = json.dumps([kind, name, options, *code], sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            why = next(_named_by_path(options), error) if isinstance(error, TypeError) else error
            raise PlumblineError(f"{where}: options are numbers, texts, lists and mappings: {why}") from error
        once(item, lambda: parse(option_model(kind, name), options, where))


def _serves(listing: Listing, needs: Sequence[str]) -> bool:
    return {*needs} <= {*listing.provides, *listing.passes_on}


def _named_by_path(options: Any, place: str = "") -> Iterator[str]:
    """Yield the place of each class among options, and how it is named instead."""
    if words := named_by(options):
        yield f"{place}: {words}"
    inner = options.items() if isinstance(options, Mapping) else enumerate(options) if isinstance(options, list) else ()
    for name, one in inner:
        yield from _named_by_path(one, f"{place}.{name}" if place else str(name))


def _where_options_are(kind: Kind, name: str) -> str:
    return f": `plumbline classes {kind} {name}` shows them all"


def once(item: str, verify: Callable[[], object]) -> None:
    """Call `verify`, which raises on an error, unless `item` has passed with this source before.

    Verification imports torch or matplotlib, which takes seconds: a success is therefore recorded as an empty file in
    the user's cache folder.
    """
    if item in _CHECKED:
        return
    mark = sources.cache_folder() / hashlib.sha256(item.encode()).hexdigest()[:16]
    if not os.path.exists(mark):  # unlike Path.exists, False in a folder that may not be entered
        verify()
        with suppress(OSError):
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
    _CHECKED.add(item)


def remembered(item: str, compute: Callable[[], str]) -> str:
    """Look up what `compute` gives for `item`: once for this source, since it may import torch."""
    path = sources.cache_folder() / "remembered" / _digest(item)
    with suppress(OSError, UnicodeDecodeError):
        digest, _, text = path.read_text(encoding="utf-8").partition("\n")
        if digest == _digest(text):  # a damaged file must give no trial another name
            return text
    text = compute()
    with suppress(OSError):
        files.write_text(path, f"{_digest(text)}\n{text}")
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def option_model(kind: Kind, name: str) -> type[Options]:
    """Return the model of the options of the `kind` called `name`, importing its module and dependencies."""
    return _registry(kind)[name].options


REGISTRIES: dict[Kind, tuple[str, str]] = {
    "method": ("plumbline.methods.base", "methods"),
    "problem": ("plumbline.problems.base", "problems"),
    "design": ("plumbline.designs.base", "designs"),
    "trainer": ("plumbline.trainers.base", "trainers"),
    "illustration": ("plumbline.illustrations.base", "illustrations"),
    "figure": ("plumbline.analysis.outputs.kinds", "figures"),
    "table": ("plumbline.analysis.outputs.kinds", "tables"),
}
"""Module and name of each kind's registry, named rather than imported: three of them import torch."""


def _registry(kind: Kind) -> Registry:
    module, name = REGISTRIES[kind]
    return getattr(importlib.import_module(module), name)


def _listing(entry: Entry) -> Listing:
    return Listing(
        name=entry.name,
        summary=entry.summary,
        module=entry.module,
        options=entry.options.model_json_schema(),
        provides=tuple(sorted(getattr(entry.build, "provides", ()))),
        passes_on=tuple(sorted(getattr(entry.build, "passes_on", ()))),
        needs=tuple(sorted(entry.options.needs)) if hasattr(entry.options, "needs") else None,
        libraries=tuple(getattr(entry.build, "libraries", ())),
    )


def _listings(kind: Kind) -> dict[str, Listing]:
    """Return what this package registers; a module of another may have been imported by then."""
    entries = _registry(kind).entries()
    return {name: _listing(one) for name, one in entries.items() if one.module.startswith(f"{sources.PACKAGE}.")}


@cache
def _of_package(kind: Kind, one: packages.Declared) -> Listing:
    """Return the listing of what another package declares, from the cache if its source is the same."""
    try:
        code = sources.source_digest(one.module)
    except PlumblineError as error:
        raise PlumblineError(f"package {one.package}: {error}") from error

    def compute() -> str:
        listing = _listing(_registry(kind)[one.name])
        return listing.model_copy(update={"distribution": one.distribution, "code": code}).model_dump_json()

    item = json.dumps(["listing", kind, one.name, one.module, one.package, code])
    return Listing.model_validate_json(remembered(item, compute))


_CHECKED: set[str] = set()
"""Items that have passed in this process."""


@cache
def catalogue() -> Catalogue:
    """Return the catalogue of this source tree, from the cache if possible."""
    path = catalogue_path()
    try:
        return Catalogue.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        built = Catalogue(**{kind: _listings(kind) for kind in REGISTRIES})
    with suppress(OSError):  # a read-only home only costs seconds at the next start
        files.write_text(path, json.dumps(built.model_dump()))
    return built

"""The catalogue of registered methods, problems, illustrations, figures and tables, readable without torch.

Building it imports every registered module, which takes seconds; Snakemake reads the configuration at every start and
in every cluster job. The catalogue is therefore cached in the user's cache folder under a digest of the source.
"""

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal

from plumbline.core import files
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options, parse
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
    """

    name: str
    summary: str
    module: str
    options: dict[str, Any]
    provides: tuple[str, ...] = ()
    passes_on: tuple[str, ...] = ()
    needs: tuple[str, ...] | None = None
    libraries: tuple[str, ...] = ()


class Catalogue(Options):
    """Every registered method, problem, design, trainer, illustration, figure and table, by name."""

    method: dict[str, Listing]
    problem: dict[str, Listing]
    design: dict[str, Listing]
    trainer: dict[str, Listing]
    illustration: dict[str, Listing]
    figure: dict[str, Listing]
    table: dict[str, Listing]

    def find(self, kind: Kind, name: str) -> Listing:
        """Return the listing of `name`; raise PlumblineError with the nearest name if there is none."""
        listings: dict[str, Listing] = getattr(self, kind)
        if name not in listings:
            raise unknown(kind, name, listings, f"plumbline classes {kind}")
        return listings[name]

    def bases(self, name: str) -> list[str]:
        """Return the methods that can be the base or a member of `name`; a wrapper, only if its own base can."""
        needs = self.find("method", name).needs
        return [] if needs is None else [other for other, one in self.method.items() if _serves(one, needs)]

    def wrappers(self, name: str) -> list[str]:
        """Return the wrappers and portfolios that the method `name` can be the base or a member of."""
        listing = self.find("method", name)
        return [other for other, one in self.method.items() if one.needs is not None and _serves(listing, one.needs)]

    def check(self, kind: Kind, name: str, options: dict[str, Any], source: str) -> None:
        """Raise PlumblineError if there is no `kind` called `name`, or if `options` are not its options."""
        try:
            listing = self.find(kind, name)
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
            item = json.dumps([kind, name, options], sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise PlumblineError(f"{where}: options are numbers, texts, lists and mappings: {error}") from error
        once(item, lambda: parse(option_model(kind, name), options, where))


def _serves(listing: Listing, needs: Sequence[str]) -> bool:
    return {*needs} <= {*listing.provides, *listing.passes_on}


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
    return {name: _listing(entry) for name, entry in _registry(kind).entries().items()}


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

"""Keys of trials and of initial designs: digests of the spec, the code and the input files."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from plumbline.core.inputs import CODE, INPUT, METHOD, declared, module_and_name, replaced
from plumbline.core.libraries import distribution_of, installed_version
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.references import (
    MethodChoice,
    canonical_json,
    canonical_options,
    short_digest,
)
from plumbline.registry.source_digest import installed, outside, source_digest
from plumbline.registry.source_digest import look_again as look_again_at_sources
from plumbline.store.provenance import versions
from plumbline.store.spec import TrialSpec

Json = dict[str, Any]


@cache
def _content_digest(path: Path, modified: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def methods_of(name: str, options: Mapping[str, Any]) -> Iterator[MethodChoice]:
    """Yield a method and the methods inside its options, from the outside in.

    Raises:
        PlumblineError: an unknown name among them.
    """
    yield MethodChoice(name=name, options=dict(options))
    for inner in declared(catalogue().find("method", name).options, options):
        if inner.mark == METHOD:
            choice = MethodChoice.model_validate(inner.value)
            yield from methods_of(choice.name, choice.options)


def input_paths(kind: Kind, name: str, options: Mapping[str, Any]) -> list[str]:
    """Return the files in the data folder that `options` of the `kind` called `name` declare."""
    schema = catalogue().find(kind, name).options
    return [one.path for one in declared(schema, options) if one.mark == INPUT]


def named_modules(kind: Kind, name: str, options: Mapping[str, Any]) -> list[str]:
    """Return the modules of the classes that `options` of the `kind` called `name` name by their paths."""
    schema = catalogue().find(kind, name).options
    return [module_and_name(str(one.value))[0] for one in declared(schema, options) if one.mark == CODE]


def _parts_of_design(spec: TrialSpec) -> list[tuple[Kind, str, Json]]:
    problem, initial = spec.problem, spec.budget.initial
    return [("problem", problem.name, problem.options), ("design", initial.design, initial.options)]


def _parts_of_trial(spec: TrialSpec) -> list[tuple[Kind, str, Json]]:
    return [*_parts_of_design(spec), ("method", spec.method.name, spec.method.options)]


class Dependencies(NamedTuple):
    """What parts of a trial depend on, sorted: modules, files in the data folder, and distributions of libraries and of
    the packages that declare them."""

    modules: tuple[str, ...]
    inputs: tuple[str, ...]
    libraries: tuple[str, ...]


@cache
def _dependencies(parts: str) -> Dependencies:
    """Return what `parts` depend on: kinds, names and options, in JSON.

    Cached, since a study needs the same dependencies for thousands of seeds.
    """
    used: list[tuple[Kind, str, Json]] = []
    for kind, name, options in json.loads(parts):
        inner = [(choice.name, choice.options) for choice in methods_of(name, options)] if kind == "method" else []
        used += [(kind, *one) for one in inner or [(name, options)]]
    listings = [catalogue().find(kind, name) for kind, name, _ in used]
    named = {module for part in used for module in named_modules(*part)}
    modules = {listing.module for listing in listings} | named
    paths = {path for part in used for path in input_paths(*part)}
    libraries = {library for listing in listings for library in (*listing.libraries, listing.distribution) if library}
    # Installed code has no digest: its version says what it is.
    tops = {module.partition(".")[0] for module in named}
    libraries |= {distribution_of(top) or top for top in tops.intersection(installed(*named))}
    return Dependencies(tuple(sorted(modules)), tuple(sorted(paths)), tuple(sorted(libraries)))


def look_again() -> None:
    """Forget what was read of a user's own code, which may have changed since in the same process."""
    _dependencies.cache_clear()
    look_again_at_sources()


def _of_trial(spec: TrialSpec) -> Dependencies:
    return _dependencies(canonical_json(_parts_of_trial(spec)))


def trial_inputs(spec: TrialSpec) -> list[str]:
    """Return the files in the data folder that a trial reads, each once."""
    return list(_of_trial(spec).inputs)


def with_stand_ins(kind: Kind, name: str, options: Json, stand_ins: Mapping[str, str]) -> Json:
    """Return `options` with their declared datasets and models replaced by stand-ins, by name."""
    for one in list(declared(catalogue().find(kind, name).options, options)):
        if one.mark == INPUT and one.value in stand_ins:
            options = replaced(options, one.place, stand_ins[one.value])
        elif one.mark == METHOD:
            choice = MethodChoice.model_validate(one.value)
            inner = with_stand_ins("method", choice.name, choice.options, stand_ins)
            if inner != choice.options:
                options = replaced(options, one.place, {"name": choice.name, "options": inner})
    return options


LOOP = "plumbline.trials.trial"
"""The module of the loop, which every trial runs."""


def _code_digest(modules: Sequence[str]) -> str:
    return source_digest(*modules, LOOP)


def code_digest(spec: TrialSpec) -> str:
    """Return the digest of the source that a trial runs: its methods, problem and design, and the loop."""
    return _code_digest(_of_trial(spec).modules)


def own_modules(spec: TrialSpec) -> list[str]:
    """Return the modules of the user's own that a trial runs, outside of this package and of installed ones."""
    return list(outside(*_of_trial(spec).modules, LOOP))


def code_outside(spec: TrialSpec) -> Json:
    """Return what else a trial runs, for its provenance.

    `own_code` has the digests of one's own modules outside of this package, by name, and `imported` the versions of
    installed packages that `provenance` does not name, and of the libraries and packages in the trial's key.
    """
    modules = *_of_trial(spec).modules, LOOP
    in_key = {library: installed_version(library) for library in _of_trial(spec).libraries}
    known = {library: version for library, version in in_key.items() if version is not None}
    return {"own_code": outside(*modules), "imported": known | versions(*installed(*modules))}


def illustration_digest(kind: str) -> str:
    """Return the digest of the source that computes the illustration called `kind`."""
    return source_digest(catalogue().find("illustration", kind).module)


def trainer_digest(kind: str) -> str:
    """Return the digest of the source of the trainer called `kind`."""
    return source_digest(catalogue().find("trainer", kind).module)


def determinants(spec: TrialSpec) -> Json:
    """Return the part of a spec that a trial's numbers depend on, as data; equal options are spelt alike.

    Labels, which only figures and folders use, are left out. So are settings that are off by default, and off: a new
    such setting then changes no key of a trial without it.
    """
    problem, method, initial = spec.problem, spec.method, spec.budget.initial
    drawn = initial.model_copy(update={"options": canonical_options("design", initial.design, initial.options)})
    return {
        "problem": {"name": problem.name, "options": canonical_options("problem", problem.name, problem.options)},
        "method": {"name": method.name, "options": canonical_options("method", method.name, method.options)},
        "seed": spec.seed,
        "budget": _used(spec.budget.model_copy(update={"initial": drawn})),
        "diagnostics": _used(spec.diagnostics),
    }


def _used(settings: BaseModel) -> Json:
    """Return the settings without those that are off (empty, false, zero or None) by default."""
    dumped = settings.model_dump(mode="json")
    fields = type(settings).model_fields
    used = {}
    for name, value in dumped.items():
        default = fields[name].get_default(call_default_factory=True)
        inner = getattr(settings, name)
        if value or inner != default:
            used[name] = _used(inner) if isinstance(inner, BaseModel) else value
    return used


def _key(about: Json, code: str, inputs: Sequence[str], data: Path, libraries: Sequence[str] = ()) -> str:
    parts = [json.dumps(about, sort_keys=True), code]
    for name in inputs:
        path = data / name
        content = _content_digest(path, path.stat().st_mtime_ns) if path.is_file() else "not built yet"
        parts.append(f"{name} {content}")
    parts += [f"{library} {installed_version(library) or 'not installed'}" for library in libraries]
    return short_digest("\n".join(parts))


def trial_key(spec: TrialSpec, data: Path) -> str:
    """Return the key of a trial, 16 hex digits: a digest of its spec, its source, its input files and the versions of
    the libraries that its method is, and of the packages that declare its methods and problem."""
    return _key(determinants(spec), code_digest(spec), trial_inputs(spec), data, _of_trial(spec).libraries)


def design_key(spec: TrialSpec, data: Path) -> str:
    """Return the key of a trial's evaluated initial design, 16 hex digits; it does not depend on the method."""
    modules, inputs, libraries = _dependencies(canonical_json(_parts_of_design(spec)))
    parts = determinants(spec)
    about = {"problem": parts["problem"], "seed": parts["seed"], "initial": parts["budget"]["initial"]}
    return _key(about, _code_digest(modules), inputs, data, libraries)

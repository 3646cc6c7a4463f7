"""Names of the configuration, resolved: each value with its origin."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from plumbline.api.arguments import checked
from plumbline.api.defaults import fill_in, with_defaults
from plumbline.api.listings import claims, reference_results
from plumbline.api.repository import find_repository, find_study, study_names
from plumbline.api.written import Leaf, Tree, Written, entry_files, find_written, inherited, read_written
from plumbline.core.errors import unknown
from plumbline.core.places import STUDIES
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.study.experiments import Experiment, Preset
from plumbline.study.methods_and_tasks import (
    MethodEntry,
    MethodsAndTasks,
    TaskEntry,
    Value,
    load_methods_and_tasks,
    unknown_entry,
)

Shown = Literal["method", "task", "experiment", "claim"]

VARY = "vary"
"""The origin of a value that an entry varies: its line is that of `vary`."""


@dataclass(frozen=True)
class Resolved:
    """What a name stands for.

    Attributes:
        heading: lines that say what it is, and in which file.
        tree: its values.
    """

    heading: list[str]
    tree: Tree


@checked
def show(kind: Shown, name: str) -> None:
    """Print a method, a task, an experiment or a claim in full, with the origin of each value.

    Args:
        kind: method, task, experiment or claim.
        name: of the entry.

    Raises:
        PlumblineError: an unknown name, with the nearest ones.

    Examples:
        >>> pb.show("method", "ei")
    """
    print("\n".join(lines_of(resolve(kind, name))))


def resolve(kind: Shown, name: str) -> Resolved:
    """Return the resolved entry of a name.

    Raises:
        PlumblineError: an unknown kind or name, with the nearest ones.
    """
    repository = find_repository()
    if kind in ("method", "task"):
        entries = load_methods_and_tasks(repository / "config")
        return _method(repository, entries, name) if kind == "method" else _task(repository, entries, name)
    if kind == "experiment":
        return _experiment(repository, name)
    if kind == "claim":
        return _claim(repository, name)
    raise unknown("kind of entry", kind, get_args(Shown))


def _heading(what: str, written: Written, repository: Path, *besides: str) -> list[str]:
    return [what, f"{written.path.relative_to(repository)}, line {written.line}", *filter(None, besides)]


def _method(repository: Path, entries: MethodsAndTasks, name: str) -> Resolved:
    written = read_written(entry_files(repository, "methods"))
    families = entries.method_families
    entry = entries.methods[name].legend.entry if name in entries.methods else name
    if entry not in families:
        raise unknown_entry("method", name, entries.methods, families)
    heading, tree = _member(repository, written, "method", entry, name, families[entry])
    registered = catalogue().find("method", str(_value(tree["name"])))
    tree["options"] = _with_defaults("method", registered.name, tree.get("options"))
    tree = fill_in(_entry_schema(MethodEntry), tree)
    return Resolved([*heading, f"{registered.name}: {registered.summary} ({registered.module})"], tree)


def _task(repository: Path, entries: MethodsAndTasks, name: str) -> Resolved:
    written = read_written(entry_files(repository, "tasks"))
    families = entries.task_families
    entry = entries.tasks[name].entry if name in entries.tasks else name
    if entry not in families:
        raise unknown_entry("task", name, entries.tasks, families)
    heading, tree = _member(repository, written, "task", entry, name, families[entry])
    reference = entries.tasks[families[entry][0]].problem
    registered = catalogue().find("problem", reference.name)
    given = tree.get("options", {})
    if "dim" in reference.options and isinstance(given, dict) and "dim" not in given:
        assert isinstance(tree["problem"], Leaf)
        given = {"dim": Leaf(reference.options["dim"], tree["problem"].origin), **given}
    tree["options"] = _with_defaults("problem", registered.name, given)
    initial = tree["initial"]
    if isinstance(initial, dict):
        design = str(_value(initial["design"]))
        tree["initial"] = {**initial, "options": _with_defaults("design", design, initial.get("options"))}
    tree = fill_in(_entry_schema(TaskEntry), tree)
    return Resolved([*heading, f"{registered.name}: {registered.summary} ({registered.module})"], tree)


def _member(
    repository: Path, written: dict[str, Written], kind: str, entry: str, name: str, family: tuple[str, ...]
) -> tuple[list[str], Tree]:
    """Return the heading and the tree of a member of an entry, or of an entry with all that it varies."""
    own = find_written(written, kind, entry)
    tree = inherited(written, entry)
    vary = own.tree.get("vary")
    besides = [f"like {own.like}" if own.like else ""]
    if isinstance(vary, dict):
        if name == entry:
            tree["vary"] = vary
            besides.append(f"stands for {', '.join(family)}")
        else:
            besides.append(f"one of {len(family)} of the entry {entry}")
            options = tree.get("options", {})
            for path, value in _varied(entry, name, vary).items():
                options = _put(options, path.split("."), value)
            tree["options"] = options
    return _heading(f"{kind} {name}", own, repository, *besides), tree


def _varied(entry: str, name: str, vary: Tree) -> dict[str, Leaf]:
    """Return the values of what an entry varies in one of its members, by the options' paths."""
    from plumbline.study.methods_and_tasks import Entry, members

    choices: dict[str, tuple[Value, ...]] = {path: tuple(_value(one)) for path, one in vary.items()}
    values = dict(members(entry, Entry(vary=choices)))[name]
    return {path: Leaf(value, f"{VARY}, {_origin(vary[path])}") for path, value in values.items()}


def _put(tree: Tree | Leaf, path: list[str], value: Leaf) -> Tree:
    inner = dict(tree) if isinstance(tree, dict) else {}
    first, *rest = path
    return {**inner, first: _put(inner.get(first, {}), rest, value) if rest else value}


def _value(tree: Tree | Leaf) -> Any:
    assert isinstance(tree, Leaf)
    return tree.value


def _origin(tree: Tree | Leaf) -> str:
    assert isinstance(tree, Leaf)
    return tree.origin


def _with_defaults(kind: Kind, name: str, given: Tree | Leaf | None) -> Tree:
    return with_defaults(kind, name, given if isinstance(given, dict) else {})


def _entry_schema(model: type[MethodEntry] | type[TaskEntry]) -> dict[str, Any]:
    """Return the schema of an entry without what inheritance has used up."""
    schema = model.model_json_schema()
    kept = {name: field for name, field in schema["properties"].items() if name not in ("like", "vary", "resources")}
    return {**schema, "properties": {**kept, "resources": schema["properties"]["resources"]}}


def _experiment(repository: Path, name: str) -> Resolved:
    path, study = find_study(repository, name)
    entries = read_written([path], "experiments")
    written = entries[name]
    experiment = study.experiments[name]
    schema = Experiment.model_json_schema()
    for preset in ("like", *get_args(Preset)):
        del schema["properties"][preset]  # what they change is shown; that they change nothing else is not
    tree = fill_in(schema, inherited(entries, name))
    outputs: tuple[Kind, ...] = ("illustration", "figure", "table")
    for kind in outputs:
        output, shown = getattr(experiment, kind), tree.get(kind)
        if output is None:
            tree.pop(kind, None)
        elif isinstance(shown, dict):
            tree[kind] = {**shown, "options": _with_defaults(kind, output.kind, shown.get("options"))}
    library = load_methods_and_tasks(repository / "config")
    presets = [line for preset in get_args(Preset) if (line := _trials(experiment, preset, library))]
    claimed = ", ".join(claim for claim, about in study.claims.items() if name in about.all_experiments)
    results = reference_results(study, name)
    besides = [
        f"like {written.like}" if written.like else "",
        f"claims: {claimed}" if claimed else "no claim rests on it",
        *presets,
        f"reference results in {results}" if results else "",
    ]
    return Resolved(_heading(f"experiment {name}: {experiment.title}", written, repository, *besides), tree)


def _trials(experiment: Experiment, preset: Preset, entries: MethodsAndTasks) -> str:
    """Return how many trials a preset has of an experiment, in words; empty where it leaves it out."""
    scaled = experiment.at(preset)
    if scaled is None or not scaled.grid:
        return ""
    sizes = [
        (len(entries.expand("task", one.tasks)), len(entries.expand("method", one.methods)), one.seeds or scaled.seeds)
        for one in scaled.grid
    ]
    parts = " + ".join(f"{tasks} x {methods} x {seeds}" for tasks, methods, seeds in sizes)
    total = sum(tasks * methods * seeds for tasks, methods, seeds in sizes)
    return f"{preset}: {total} trials (tasks x methods x seeds: {parts})"


def _claim(repository: Path, name: str) -> Resolved:
    files = [repository / STUDIES / f"{study}.yaml" for study in study_names(repository)]
    written = read_written(files, "claims")
    if name not in written:
        raise unknown("claim", name, written, "plumbline verdicts")
    rows = claims()
    found = rows[rows["claim"] == name].iloc[0]
    verdict = ": ".join(str(found[column]) for column in ("measured", "estimate") if found[column])
    lines = [f"verdict: {found['verdict']}", verdict and f"measured: {verdict}"]
    return Resolved(_heading(f"claim {name}", written[name], repository, *lines), written[name].tree)


NARROWEST = 20
"""Columns below which a listing is not squeezed."""


def lines_of(resolved: Resolved, width: int = 80) -> list[str]:
    """Return a YAML-like listing with the origins as comments at its right.

    Args:
        resolved: what is listed.
        width: columns; a value that is longer is not cut.
    """
    comments = max((len(origin) for _, origin in _rows(resolved.tree, 0, width)), default=0) + 4
    room = max(width - comments, NARROWEST)
    rows = list(_rows(resolved.tree, 0, room))
    column = min(max((len(text) for text, _ in rows), default=0), room)
    listing = []
    for text, origin in rows:
        comment = f"# {origin}" if origin else ""
        if comment and len(text) > column and len(text) + 2 + len(comment) > width:
            listing += [text, f"{'':{column}}  {comment}"]
        else:
            listing.append(f"{text:{column}}  {comment}".rstrip())
    return [*(line for text in resolved.heading for line in _comment(text, width)), *listing]


def _comment(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, NARROWEST), initial_indent="# ", subsequent_indent="#   ")


def _rows(tree: Tree, depth: int, width: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of a tree, each with its origin."""
    indent = "  " * depth
    for name, one in tree.items():
        if isinstance(one, Leaf):
            first, *rest = _written(name, one.value, width - len(indent))
            yield indent + first, one.origin
            yield from ((indent + line, "") for line in rest)
        elif one:
            yield f"{indent}{name}:", ""
            yield from _rows(one, depth + 1, width)
        else:
            yield f"{indent}{name}: {{}}", ""


def _written(name: str, value: Any, width: int) -> list[str]:
    """Return the lines of a field in YAML: words are wrapped, and a list of mappings has an item a line or more."""
    nested = isinstance(value, list) and any(isinstance(one, dict | list) for one in value)
    columns = width - 2 if nested else 100_000
    text = yaml.safe_dump(value, default_flow_style=None, sort_keys=False, allow_unicode=True, width=columns)
    text = text.removesuffix("\n...\n").rstrip("\n")
    if nested:
        return [f"{name}:", *text.split("\n")]
    words = textwrap.TextWrapper(
        max(width, NARROWEST), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return words.wrap(f"{name}: {text}")

"""The methods and tasks of all studies, by name: the files of `config/methods` and `config/tasks`.

An entry may be `like` another of any file, whose fields it has but for those that it gives itself; options are merged
at any depth (see `plumbline.study.inheritance`).
An entry that says `vary` stands for a family: one member a value, called `<entry>-<value>`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options, distinct, parse
from plumbline.core.resources import Resources
from plumbline.core.strict_yaml import line_of, read_yaml, yaml_files
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.references import InitialDesign, Json, MethodRef, Named, ProblemRef, safe_label
from plumbline.store.keys import with_stand_ins
from plumbline.store.spec import Budget
from plumbline.study.inheritance import inherit
from plumbline.study.legends import COLOURS, Legend

LARGEST_FAMILY = 1_000
"""Members of an entry that varies several options: their number is a product, which a few more values make endless."""

Value = bool | int | float | str
EntryT = TypeVar("EntryT", bound="Entry")
MemberT = TypeVar("MemberT")
NamedT = TypeVar("NamedT", bound=Named)

NO_NOISE = re.compile(r", noise 0(?:\.0*)?(?![\w.])")
"""What a title says of a noise that there is not."""


class Entry(Options):
    """What entries of both files may say."""

    like: str = Field(default="", description="the entry whose fields this one has, but for those given here")
    vary: dict[str, Annotated[tuple[Value, ...], Field(min_length=1), AfterValidator(distinct)]] = Field(
        default_factory=dict, description="options, as `model.kernel`, with their values: one member a value"
    )
    resources: Resources = Field(default=Resources(), description="what its jobs ask of a machine")

    @model_validator(mode="after")
    def _a_family_that_can_be_run(self) -> Self:
        if (size := prod(map(len, self.vary.values()))) > LARGEST_FAMILY:
            raise ValueError(f"vary: these are {size:,} members, and a family has at most {LARGEST_FAMILY:,}")
        return self


class MethodEntry(Entry):
    """An entry of `config/methods`: a registered method, its options, what it is called and how it looks."""

    name: str = Field(description="the registered class that proposes")
    options: Json = Field(default_factory=dict, description="those of the class")
    legend: str = Field(default="", description="words of the legend; may hold {parameters} of `vary`")
    colour: str = Field(default="", description=f"{', '.join(COLOURS)} or #rrggbb; empty for the next that is free")
    dashed: bool = Field(default=False, description="whether its lines are dashed")


class TaskEntry(Entry):
    """An entry of `config/tasks`: a registered problem, its options, and how long a trial goes on."""

    problem: str = Field(description="the registered problem; `ackley-20` is `ackley` with option `dim: 20`")
    options: Json = Field(default_factory=dict, description="those of the problem")
    title: str = Field(default="", description="what figures call it; may hold {options} of the problem")
    initial: InitialDesign
    rounds: int = Field(ge=0, le=100_000, description="after the initial design; presets may have fewer")
    q: int = Field(default=1, ge=1, le=1_000, description="evaluations a round")
    costly: bool = Field(
        default=False,
        description="evaluations take longer than the method itself, so that costs on other tasks say nothing",
    )


def replace_inputs(kind: Kind, named: NamedT, stand_ins: Mapping[str, str]) -> NamedT:
    """Return a problem or a method with the inputs that its options declare replaced by their stand-ins."""
    options = with_stand_ins(kind, named.name, named.options, stand_ins) if stand_ins else named.options
    return named if options == named.options else named.model_copy(update={"options": options})


@dataclass(frozen=True)
class Method:
    """A method with its name, its look, and what its jobs need; `source` is what errors about it begin with."""

    ref: MethodRef
    legend: Legend
    resources: Resources
    source: str = field(default="", compare=False)

    def with_stand_ins(self, stand_ins: Mapping[str, str]) -> MethodRef:
        """Return the method on the datasets and models that stand in for its own, where any do."""
        return replace_inputs("method", self.ref, stand_ins)


@dataclass(frozen=True)
class Task:
    """A problem with its budget.

    `parameters` are the values of what its entry varies; `source` is what errors about it begin with.
    """

    name: str
    entry: str
    title: str
    problem: ProblemRef
    budget: Budget
    parameters: dict[str, Value]
    resources: Resources
    costly: bool = False
    source: str = field(default="", compare=False)

    def with_stand_ins(self, stand_ins: Mapping[str, str]) -> ProblemRef:
        """Return the problem on the datasets and models that stand in for its own, where any do."""
        return replace_inputs("problem", self.problem, stand_ins)

    def title_with(self, stand_ins: Mapping[str, str]) -> str:
        """Return the title, filled in from the options in use; of a noise that is zero it says nothing."""
        options = self.with_stand_ins(stand_ins).options
        return NO_NOISE.sub("", fill(self.title, {**options, **self.parameters}, f"{self.source}: title"))


@dataclass(frozen=True)
class MethodsAndTasks:
    """Every method and every task, by name."""

    methods: dict[str, Method] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)

    @cached_property
    def method_families(self) -> dict[str, tuple[str, ...]]:
        """Names of the members of each entry of methods: of one that varies nothing, its own."""
        return _families({name: method.legend.entry for name, method in self.methods.items()})

    @cached_property
    def task_families(self) -> dict[str, tuple[str, ...]]:
        """Names of the members of each entry of tasks: of one that varies nothing, its own."""
        return _families({name: task.entry for name, task in self.tasks.items()})

    @cached_property
    def same_methods(self) -> dict[str, str]:
        """The first name of each method: two have one where they differ in their names alone."""
        first: dict[str, str] = {}
        return {
            name: first.setdefault(method.ref.model_dump_json(exclude={"label"}), name)
            for name, method in self.methods.items()
        }

    def labels(self) -> dict[str, str]:
        """Return the words of each method in legends, by its name."""
        return {name: method.legend.label for name, method in self.methods.items()}

    def expand(self, kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the members that `names` of methods or tasks stand for, families in the order of their values.

        Raises:
            PlumblineError: a name that stands for nothing.
        """
        members = self.methods if kind == "method" else self.tasks
        families = self.method_families if kind == "method" else self.task_families
        found: list[str] = []
        for name in names:
            if name not in members and name not in families:
                raise unknown_entry(kind, name, members, families)
            found += [name] if name in members else families[name]
        return tuple(found)


def unknown_entry(kind: str, name: str, known: Iterable[str], families: Iterable[str] = ()) -> PlumblineError:
    """Return the error for a method or a task that has no entry, with what it is where a registered class is meant.

    Args:
        kind: method or task.
        name: as it was written.
        known: the names that `plumbline methods` or `plumbline tasks` list.
        families: entries that stand for several of them, where these may be meant too.
    """
    if not catalogue().has("method" if kind == "method" else "problem", name):
        return unknown(kind, name, known, f"plumbline {kind}s", besides=families)
    option, argument = ("class", "method_class") if kind == "method" else ("problem", "problem")
    return PlumblineError(
        f"{name!r} is a registered class, no entry of config/{kind}s: enter it there, or name the class itself: "
        f"--{option} {name} (in Python, {argument}={name!r})"
    )


def _families(entries: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    families: dict[str, tuple[str, ...]] = {}
    for name, entry in entries.items():
        families[entry] = (*families.get(entry, ()), name)
    return families


def fill(template: str, values: Mapping[str, Any], source: str) -> str:
    """Return `template` with its {fields} filled in.

    Raises:
        PlumblineError: a field is not among `values`, or cannot be filled in; the message has `source`.
    """
    try:
        return template.format_map(values)
    except KeyError as error:
        raise PlumblineError(f"{source}: {unknown('field', str(error.args[0]), values)}") from error
    except (AttributeError, IndexError, ValueError) as error:
        raise PlumblineError(f"{source}: {template!r} cannot be filled in: {error}") from error


def _with(options: Json, path: str, value: Value, source: str) -> Json:
    first, _, rest = path.partition(".")
    if not rest:
        return {**options, first: value}
    inner = options.get(first) or {}
    if not isinstance(inner, dict):
        raise PlumblineError(f"{source}: vary: {path}: {first!r} is {inner!r} and has no {rest.partition('.')[0]!r}")
    return {**options, first: _with(inner, rest, value, source)}


def _defaults(problem: str) -> Json:
    known = catalogue()
    properties = known.find("problem", problem).options.get("properties", {}) if known.has("problem", problem) else {}
    return {name: schema["default"] for name, schema in properties.items() if "default" in schema}


def members(name: str, entry: Entry) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield the name of each member of an entry, and the values of what it varies, by the options' paths."""
    for values in product(*entry.vary.values()):
        yield "-".join([name, *(str(value) for value in values)]), dict(zip(entry.vary, values, strict=True))


def _last_parts(values: Mapping[str, Value], source: str) -> dict[str, Value]:
    """Return values by the last parts of their paths: what figures call them."""
    named = {path.rpartition(".")[2]: value for path, value in values.items()}
    if len(named) < len(values):
        raise PlumblineError(f"{source}: vary: {', '.join(values)}: two of them end alike, and could not be told apart")
    return named


def methods_of(name: str, entry: MethodEntry, source: str) -> Iterator[tuple[str, Method]]:
    """Yield the members of an entry of methods.

    Raises:
        PlumblineError: what the entry varies, its legend or a field is wrong; the message has `source`.
    """
    for label, values in members(name, entry):
        options = entry.options
        for path, value in values.items():
            options = _with(options, path, value, source)
        parameters = _last_parts(values, source)
        legend = {
            "label": fill(entry.legend or label, parameters, f"{source}: legend"),
            "colour": entry.colour,
            "dashed": entry.dashed,
            "parameters": parameters,
            "entry": name,
        }
        ref = {"name": entry.name, "options": options, "label": label}
        yield label, Method(parse(MethodRef, ref, source), parse(Legend, legend, source), entry.resources, source)


def tasks_of(name: str, entry: TaskEntry, source: str) -> Iterator[tuple[str, Task]]:
    """Yield the members of an entry of tasks.

    Raises:
        PlumblineError: what the entry varies, its title or a field is wrong; the message has `source`.
    """
    budget = Budget(initial=entry.initial, rounds=entry.rounds, q=entry.q)
    for label, values in members(name, entry):
        problem = parse(ProblemRef, {"name": entry.problem, "options": entry.options}, source)
        options, defaults = problem.options, _defaults(problem.name) if values else {}
        for path, value in values.items():
            # A default stays unsaid: the member is then written like the task that does not vary.
            if path in options or path not in defaults or defaults[path] != value:
                options = _with(options, path, value, source)
        task = Task(
            label,
            name,
            entry.title or label,
            problem.model_copy(update={"options": options}),
            budget,
            _last_parts(values, source),
            entry.resources,
            entry.costly,
            source,
        )
        task.title_with({})
        yield label, task


def _checked_label(label: str, source: str) -> str:
    try:
        return safe_label(label)
    except ValueError as error:
        raise PlumblineError(f"{source}: {error}") from error


def _gather(
    data: Any,
    kind: str,
    model: type[EntryT],
    members_of: Callable[[str, EntryT, str], Iterator[tuple[str, MemberT]]],
    files: Mapping[str, str],
) -> dict[str, MemberT]:
    """Return the members of all entries by name; `files` are those that entries stand in."""
    if not isinstance(data, dict):
        raise PlumblineError(f"{kind}s: a mapping of names to {kind}s is expected")

    def source(name: str) -> str:
        return f"{files.get(name, f'{kind}s')}: {name}"

    found: dict[str, MemberT] = {}
    entries: dict[str, str] = {}
    for name, content in inherit(data, kind, source, own=("vary",)).items():
        where = source(name)
        for label, member in members_of(name, parse(model, content, where), where):
            if label in found:
                raise PlumblineError(f"{where}: two {kind}s are called {label!r}, the other by {entries[label]}")
            entries[label] = where
            found[_checked_label(label, where)] = member
    return found


def parse_methods_and_tasks(
    methods: Any,
    tasks: Any,
    files_of_methods: Mapping[str, str] = MappingProxyType({}),
    files_of_tasks: Mapping[str, str] = MappingProxyType({}),
) -> MethodsAndTasks:
    """Return the methods and tasks of mappings of names to entries; errors name the files that entries stand in.

    Raises:
        PlumblineError: what is wrong, with file, entry and field.
    """
    return MethodsAndTasks(
        _gather(methods, "method", MethodEntry, methods_of, files_of_methods),
        _gather(tasks, "task", TaskEntry, tasks_of, files_of_tasks),
    )


def read_entries(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the entries of all files of a folder, and the file of each: `config/methods/conformal.yaml`.

    Raises:
        PlumblineError: a file that cannot be read or is no mapping, or an entry that is in two files.
    """
    entries: dict[str, Any] = {}
    files: dict[str, str] = {}
    for path in yaml_files(folder):
        file = str(path.relative_to(folder.parents[1]))
        content = read_yaml(path) or {}
        if not isinstance(content, dict):
            raise PlumblineError(f"{file}: a mapping of names to entries is expected")
        for name in content:
            if name in entries:
                here, there = (f"{one}:{line_of(folder.parents[1] / one, name)}" for one in (file, files[name]))
                raise PlumblineError(f"{here}: {name} is in {there} too: rename one")
        entries |= content
        files |= dict.fromkeys(content, file)
    return entries, files


def load_methods_and_tasks(folder: Path) -> MethodsAndTasks:
    """Read the files of `methods` and `tasks` in the configuration's `folder`; see `parse_methods_and_tasks`."""
    methods, files_of_methods = read_entries(folder / "methods")
    tasks, files_of_tasks = read_entries(folder / "tasks")
    return parse_methods_and_tasks(methods, tasks, files_of_methods, files_of_tasks)

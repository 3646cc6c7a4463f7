"""Options have one spelling: equal ones are alike in keys and random streams, however they are written."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from plumbline.core.errors import PlumblineError
from plumbline.core.seeding import identity
from plumbline.registry.catalogue import Kind, catalogue, option_model
from plumbline.registry.references import Json, MethodRef, ProblemRef, canonical_options
from plumbline.study.methods_and_tasks import load_methods_and_tasks
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config

KINDS: tuple[Kind, ...] = ("method", "problem", "design", "trainer")


@pytest.mark.parametrize(
    ("kind", "name", "one", "other"),
    [
        ("problem", "ackley", {"dim": 2}, {"dim": "2"}),
        ("problem", "ackley", {"dim": 2}, {"dim": 2.0, "noise_std": 0, "noise_scale": None}),
        ("problem", "ackley", {"dim": 2, "noise_std": 1}, {"noise_std": 1.0, "dim": 2}),
        ("problem", "ackley", {"dim": 2, "noise_scale": 0}, {"noise_scale": -0.0, "dim": 2}),
        ("problem", "rosenbrock", {"dim": 2, "interval": [-2, 2]}, {"dim": 2, "interval": (-2.0, "2")}),
        ("problem", "radio", {}, {"uav_fading": "yes", "n_ch": "1"}),
        ("method", "ei", {}, {"model": {}}),
        ("method", "ucb", {"sqrt_beta": 2}, {"sqrt_beta": 2.0, "schedule": None}),
        ("method", "trust-region", {"base": "ei"}, {"base": {"name": "ei"}}),
        ("method", "trust-region", {"base": "ei"}, {"base": {"name": "ei", "options": {"model": {"ard": "true"}}}}),
        ("design", "part", {"low": 0, "high": 1}, {"high": "1e0", "low": -0.0, "outside": False}),
    ],
)
def test_equal_options_are_spelt_alike(kind: Kind, name: str, one: Json, other: Json) -> None:
    assert canonical_options(kind, name, one) == canonical_options(kind, name, other)
    assert repr(canonical_options(kind, name, one)) == repr(canonical_options(kind, name, other))


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("ackley", {"dim": 2}, {"dim": 3}),
        ("ackley", {"dim": 2}, {"dim": 2, "noise_scale": 0.0}),
        ("ackley", {"dim": 2, "noise_std": 1.0}, {"dim": 2, "noise_std": 1.0000000000000002}),
    ],
)
def test_other_options_are_spelt_otherwise(name: str, one: Json, other: Json) -> None:
    assert canonical_options("problem", name, one) != canonical_options("problem", name, other)


def test_what_is_not_valid_stays_as_it_is() -> None:
    assert canonical_options("method", "random", {"x": 1}) == {"x": 1}
    with pytest.raises(PlumblineError, match="unknown method 'rndom'"):
        canonical_options("method", "rndom", {})


def spelt(value: Any) -> st.SearchStrategy[Any]:
    """Other spellings of options: numbers as text, whole numbers with a point, tuples, other orders."""
    if isinstance(value, dict):
        fields = st.fixed_dictionaries({key: spelt(one) for key, one in value.items()})
        return fields.flatmap(lambda one: st.permutations(list(one.items())).map(dict))
    if isinstance(value, list):
        whole = st.tuples(*map(spelt, value))
        return whole | whole.map(list)
    if isinstance(value, bool):
        return st.sampled_from([value, str(value).lower(), "yes" if value else "no"])
    if isinstance(value, int | float):
        whole_number = [int(value), str(int(value))] if float(value).is_integer() else []
        return st.sampled_from([value, float(value), repr(value), *whole_number, *([-0.0] if value == 0 else [])])
    return st.just(value)


def is_valid(kind: Kind, name: str, options: Json) -> bool:
    try:
        option_model(kind, name).model_validate(options)
    except ValidationError:
        return False
    return True


def changed(schema: Json) -> dict[str, list[Any]]:
    """Some values of the options of a schema besides their defaults; several are not valid."""
    found: dict[str, list[Any]] = {}
    for option, one in schema.get("properties", {}).items():
        default = one.get("default")
        kinds = {part.get("type") for part in (one, *one.get("anyOf", ()))}
        enums = [value for part in (one, *one.get("anyOf", ())) for value in part.get("enum", ())]
        numbers = [0, 1, 2, 0.25, 3.0] if kinds & {"number", "integer"} else []
        truth = [True, False] if "boolean" in kinds else []
        found[option] = [*enums, *numbers, *truth, *([] if default is None else [default])]
    return {option: values for option, values in found.items() if values}


def examples(kind: Kind, name: str, of_studies: list[Json]) -> list[Json]:
    """Valid options of a registered name: those of the studies, and each with one option changed."""
    schema = catalogue().find(kind, name).options
    plain: list[Json] = [{}, {"dim": 3}, {"base": "ei"}, {"optimiser": "module:Class"}]
    starts = [options for options in (*of_studies, *plain) if is_valid(kind, name, options)]
    more = [
        {**start, option: value}
        for start in starts[-2:]
        for option, values in changed(schema).items()
        for value in values
    ]
    return starts + [options for options in more if is_valid(kind, name, options)]


@pytest.fixture(scope="module")
def valid(root: Path) -> list[tuple[Kind, str, Json]]:
    """Kinds, names and options of all that is registered, as far as valid options are found."""
    plan = load_plan(read_config(root / "config/config.yaml"), root)
    used: dict[tuple[Kind, str], list[Json]] = {}
    for method in plan.library.methods.values():
        used.setdefault(("method", method.ref.name), []).append(method.ref.options)
    for task in plan.library.tasks.values():
        initial = task.budget.initial
        used.setdefault(("problem", task.problem.name), []).append(task.problem.options)
        used.setdefault(("design", initial.design), []).append(initial.options)
    for model in plan.models.values():
        used.setdefault(("trainer", model.trainer), []).append(model.options)
    found: list[tuple[Kind, str, Json]] = []
    for kind in KINDS:
        for name in getattr(catalogue(), kind):
            some = examples(kind, name, used.get((kind, name), []))
            assert some, f"no valid options of {kind} {name!r} are known"
            found += [(kind, name, options) for options in some]
    return found


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much])
@given(st.data())
def test_options_of_all_that_is_registered_are_spelt_alike(valid: list[tuple[Kind, str, Json]], data: Any) -> None:
    kind, name, options = data.draw(st.sampled_from(valid))
    whole = option_model(kind, name).model_validate(options).model_dump(mode="json")
    start = data.draw(st.sampled_from([options, whole]))
    other = data.draw(spelt(start))
    if is_valid(kind, name, other):
        one, two = canonical_options(kind, name, options), canonical_options(kind, name, other)
        assert repr(two) == repr(one)
        assert is_valid(kind, name, one)
        assert repr(canonical_options(kind, name, one)) == repr(one)
        if kind == "problem":
            names = [ProblemRef(name=name, options=spelling).stream_name() for spelling in (options, other)]
            assert names[0] == names[1]


@pytest.mark.slow
def test_streams_of_the_studies_have_the_names_that_their_records_were_drawn_under(root: Path) -> None:
    """The options as the tasks write them: under any other name of a stream all records of a task would be others."""
    for data in ("generated", "real"):
        config = read_config(root / "config/config.yaml").model_copy(update={"data": data})
        plan = load_plan(config, root)
        for task in plan.library.tasks.values():
            problem = task.with_stand_ins(plan.stand_ins)
            assert problem.stream_name() == identity(problem.name, problem.options), task.name


PATHS = {"ask-tell": "optimiser", "botorch-acquisition": "acquisition"}
"""Methods that are classes by their paths, and the options that name these."""


@given(method=st.sampled_from(sorted(PATHS)), name=st.from_regex(r"[A-Z][A-Za-z0-9_]{0,12}", fullmatch=True))
def test_a_class_by_its_path_goes_by_its_name(method: str, name: str) -> None:
    for path in (f"mine:{name}", f"mine.parts.{name}"):
        ref = MethodRef(name=method, options={PATHS[method]: path})
        assert ref.label == name
        assert MethodRef.model_validate_json(ref.model_dump_json()) == ref
        assert MethodRef(name=method, options={PATHS[method]: path}, label="its-own").label == "its-own"
        assert MethodRef(name=method, options={PATHS[method]: path}, label=method).label == method, "an entry may be so"


@pytest.mark.parametrize("path", [None, 5, "alone", "mine:", "mine:a/b", ["mine:A"], f"mine:{'A' * 200}"])
def test_what_is_no_path_of_a_class_leaves_the_registered_name(path: Any) -> None:
    assert MethodRef(name="ask-tell", options={"optimiser": path}).label == "ask-tell"
    assert MethodRef(name="random", options={"optimiser": "mine:A"}).label == "random"
    assert MethodRef(name="no-such", options={"optimiser": "mine:A"}).label == "no-such"
    with pytest.raises(ValidationError, match="a label is lower-case letters"):
        MethodRef(name="ask-tell", options={"optimiser": path}, label="Other")


def test_labels_of_entries_are_their_names(root: Path) -> None:
    methods = load_methods_and_tasks(root / "config").methods
    assert {name: method.ref.label for name, method in methods.items()} == {name: name for name in methods}

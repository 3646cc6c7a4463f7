"""Methods and tasks by name: inheritance, families, resources, and mistakes told in one line."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.core.seeding import identity
from plumbline.study.methods_and_tasks import NO_NOISE, MethodsAndTasks, load_methods_and_tasks, parse_methods_and_tasks

METHODS: dict[str, Any] = {
    "dice": {"name": "random", "legend": "dice", "colour": "grey"},
    "bound": {"name": "ucb", "options": {"model": {"kernel": "rbf", "ard": False}, "alpha": 0.2}, "legend": "UCB"},
    "bound-matern": {"like": "bound", "options": {"model": {"kernel": "matern52"}}, "dashed": True},
    "bound-alpha": {"like": "bound", "vary": {"alpha": [0.1, 0.2]}, "legend": "UCB, alpha {alpha}"},
}
BUDGET = {"initial": {"design": "uniform", "size": 4}, "rounds": 30}
TASKS: dict[str, Any] = {
    "hole": {"problem": "ackley-2", **BUDGET, "title": "Ackley"},
    "hole-q3": {"like": "hole", "q": 3, "initial": {"size": 9}},
    "qed": {
        "problem": "molecules",
        "options": {"dataset": "zinc250k", "target": "qed"},
        "title": "{dataset}: {target}",
        **BUDGET,
    },
    "network": {"problem": "radio", **BUDGET},
    "channels": {"like": "network", "vary": {"n_ch": [1, 2]}, "title": "{n_ch} channels"},
}


@pytest.fixture(scope="module")
def library() -> MethodsAndTasks:
    return parse_methods_and_tasks(METHODS, TASKS)


def test_an_entry_has_what_the_one_it_is_like_has(library: MethodsAndTasks) -> None:
    method = library.methods["bound-matern"]
    assert method.ref.options == {"model": {"kernel": "matern52", "ard": False}, "alpha": 0.2}
    assert (method.ref.name, method.ref.label) == ("ucb", "bound-matern")
    assert (method.legend.label, method.legend.dashed) == ("UCB", True)
    task = library.tasks["hole-q3"]
    assert (task.budget.q, task.budget.rounds, task.budget.initial.size) == (3, 30, 9)
    assert task.problem == library.tasks["hole"].problem
    assert task.title == "Ackley"


def test_the_one_it_is_like_stays_as_it_was(library: MethodsAndTasks) -> None:
    assert library.methods["bound"].ref.options["model"]["kernel"] == "rbf"
    assert library.tasks["hole"].budget.initial.size == 4


def test_a_family_is_a_member_a_value(library: MethodsAndTasks) -> None:
    assert library.method_families["bound-alpha"] == ("bound-alpha-0.1", "bound-alpha-0.2")
    one, two = (library.methods[name] for name in library.method_families["bound-alpha"])
    assert (one.ref.options["alpha"], two.ref.options["alpha"]) == (0.1, 0.2)
    assert two.ref.options == library.methods["bound"].ref.options
    assert (one.legend.entry, one.legend.parameters, one.legend.label) == (
        "bound-alpha",
        {"alpha": 0.1},
        "UCB, alpha 0.1",
    )
    assert "bound-alpha" not in library.methods


def test_methods_that_differ_in_their_names_alone_are_the_same(library: MethodsAndTasks) -> None:
    same = library.same_methods
    assert same["bound-alpha-0.2"] == same["bound"] == "bound"
    assert {name for name, first in same.items() if name == first} == same.keys() - {"bound-alpha-0.2"}


def test_what_varies_may_lie_deep_and_in_several_places() -> None:
    entry = {**METHODS["bound"], "vary": {"model.kernel": ["rbf", "matern52"], "alpha": [0.1, 0.3]}}
    methods = parse_methods_and_tasks({"b": entry}, {}).methods
    assert list(methods) == ["b-rbf-0.1", "b-rbf-0.3", "b-matern52-0.1", "b-matern52-0.3"]
    last = methods["b-matern52-0.3"]
    assert last.ref.options == {"model": {"kernel": "matern52", "ard": False}, "alpha": 0.3}
    assert last.legend.parameters == {"kernel": "matern52", "alpha": 0.3}


def test_a_family_of_tasks_leaves_defaults_unsaid(library: MethodsAndTasks) -> None:
    """A member at the default is written like the task that does not vary."""
    one, two = (library.tasks[name] for name in library.task_families["channels"])
    network = library.tasks["network"].problem
    assert identity(one.problem.name, one.problem.options) == identity(network.name, network.options)
    assert two.problem.options == {"n_ch": 2}
    assert (one.parameters, two.parameters) == ({"n_ch": 1}, {"n_ch": 2})
    assert [task.title_with({}) for task in (one, two)] == ["1 channels", "2 channels"]


def test_what_a_family_varies_is_not_inherited() -> None:
    family = {**METHODS["bound"], "vary": {"alpha": [0.1, 0.2]}}
    methods = parse_methods_and_tasks({"family": family, "heir": {"like": "family", "legend": "heir"}}, {}).methods
    assert list(methods) == ["family-0.1", "family-0.2", "heir"]
    assert methods["heir"].legend.parameters == {}


def test_names_are_expanded(library: MethodsAndTasks) -> None:
    names = ("dice", "bound-alpha", "bound")
    assert library.expand("method", names) == ("dice", "bound-alpha-0.1", "bound-alpha-0.2", "bound")
    assert library.expand("task", ("channels-2", "hole")) == ("channels-2", "hole")
    with pytest.raises(PlumblineError, match="unknown method 'bund': did you mean 'bound'"):
        library.expand("method", ("bund",))
    with pytest.raises(PlumblineError, match="unknown task 'dice': allowed: channels, channels-1"):
        library.expand("task", ("dice",))


def test_stand_ins_change_the_data_and_the_title_and_not_the_name(library: MethodsAndTasks) -> None:
    task, stand_ins = library.tasks["qed"], {"zinc250k": "generated-molecules"}
    assert task.title_with({}) == "zinc250k: qed"
    assert task.title_with(stand_ins) == "generated-molecules: qed"
    assert task.with_stand_ins({}) is task.problem
    assert task.with_stand_ins(stand_ins).options == {"dataset": "generated-molecules", "target": "qed"}
    assert task.problem.options["dataset"] == "zinc250k"


@pytest.mark.parametrize(
    ("methods", "tasks", "message"),
    [
        ({"a": {"like": "b"}}, {}, "methods: a: like: unknown method 'b': allowed: a"),
        ({}, {"a": {"like": "b"}, "b": {"like": "a"}}, "tasks: a: like: 'b' is itself like 'a'"),
        ({"a": {"nme": "ei"}}, {}, "methods: a: unknown field 'nme': did you mean 'name'?"),
        ({"a": "ei"}, {}, "methods: a: an entry is a mapping of fields to values, not 'ei'"),
        (
            {"a": {"name": "x", "options": {"base": "ei"}, "vary": {"base.options.k": [1]}}},
            {},
            "'base' is 'ei' and has no",
        ),
        ({"a": {"name": "x", "vary": {"m.k": [1], "n.k": [2]}}}, {}, "two of them end alike"),
        ({"a": {}}, {}, "methods: a: name: Field required"),
        ({"a" * 121: {"name": "ei"}}, {}, "a label names a file: it has at most 120 characters"),
        (
            {"a": {"name": "ei", "vary": {f"x{i}": list(range(9)) for i in range(12)}}},
            {},
            "methods: a: vary: these are 282,429,536,481 members, and a family has at most 1,000",
        ),
        ({"a": {"name": "ei", "colour": "bleu"}}, {}, "methods: a: colour: String should match pattern"),
        ({"a": {"name": "ei", "legend": "{alpha}"}}, {}, "methods: a: legend: unknown field 'alpha'"),
        ({"A b": {"name": "ei"}}, {}, "methods: A b: label: a label is lower-case letters"),
        ({"a": {"name": "ei", "vary": {"jitter": ["0.1/2"]}}}, {}, "methods: a: label: a label is lower-case"),
        (
            {"a": {"name": "ei", "vary": {"jitter": [0.1]}}, "a-0.1": {"name": "pi"}},
            {},
            "called 'a-0.1', the other by methods: a",
        ),
        ({"a": {"name": "ei", "resources": {"gpu": 9}}}, {}, "methods: a: resources.gpu: Input should be less than"),
        ({"a": {"name": "ei", "resources": {"cores": 0}}}, {}, "methods: a: resources.cores: Input should be greater"),
        ({"a": {"name": "ei", "resources": {"seeds_per_job": 0}}}, {}, "methods: a: resources.seeds_per_job: "),
        (["a"], {}, "methods: a mapping of names to methods is expected"),
        ({}, {"t": {"problem": "branin"}}, "tasks: t: initial: Field required"),
        ({}, {"t": {"problem": "branin", **BUDGET, "q": 0}}, "tasks: t: q: Input should be greater than or equal to 1"),
        ({}, {"t": {"problem": "branin", **BUDGET, "rounds": -1}}, "tasks: t: rounds: Input should be greater"),
        ({}, {"t": {"problem": "ackley-2", "options": {"dim": 3}, **BUDGET}}, "which of the two is meant"),
        ({}, {"t": {"problem": "branin", **BUDGET, "title": "{dtaset}"}}, "t: title: unknown field 'dtaset'"),
        ({}, {"t": {"problem": "branin", **BUDGET, "title": "{"}}, "t: title: '{' cannot be filled in"),
    ],
)
def test_mistakes_name_file_entry_and_field(methods: Any, tasks: Any, message: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        parse_methods_and_tasks(methods, tasks)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def write(folder: Path, **files: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content) if content else "# nothing yet\n")


def test_entries_lie_in_all_files_of_two_folders(tmp_path: Path) -> None:
    config = tmp_path / "config"
    heir = {"like": "bound", "legend": "from another file"}
    write(config / "methods", paper=METHODS, mine={"heir": heir}, empty={})
    write(config / "tasks", paper={name: TASKS[name] for name in ("hole", "qed")})
    write(config / "tasks", other={name: TASKS[name] for name in TASKS if name not in ("hole", "qed")})
    assert load_methods_and_tasks(config) == parse_methods_and_tasks({**METHODS, "heir": heir}, TASKS)


def test_mistakes_name_the_file_of_the_entry(tmp_path: Path) -> None:
    config = tmp_path / "config"
    write(config / "methods", paper=METHODS, mine={"heir": {"like": "bound", "nme": "ei"}})
    write(config / "tasks", paper=TASKS)
    with pytest.raises(PlumblineError, match=r"^config/methods/mine\.yaml: heir: unknown field 'nme'"):
        load_methods_and_tasks(config)
    write(config / "methods", mine=["heir"])
    with pytest.raises(PlumblineError, match=r"^config/methods/mine\.yaml: a mapping of names to entries is expected"):
        load_methods_and_tasks(config)


def test_a_name_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    config = tmp_path / "config"
    write(config / "methods", paper=METHODS)
    write(config / "tasks", paper=TASKS, zoo={"hole": TASKS["hole"]})
    with pytest.raises(PlumblineError, match=r"^config/tasks/zoo\.yaml:1: hole is in config/tasks/paper\.yaml:\d+ too"):
        load_methods_and_tasks(config)


@pytest.mark.parametrize(
    ("title", "value", "shown"),
    [
        ("Branin, noise {noise_scale}", 0.0, "Branin"),
        ("Branin, noise {noise_scale}", 0, "Branin"),
        ("Branin, noise {noise_scale}", 0.1, "Branin, noise 0.1"),
        ("Branin, noise {noise_scale}", 0.05, "Branin, noise 0.05"),
        ("Branin, noise {noise_scale}, long", 0.0, "Branin, long"),
    ],
)
def test_titles_are_silent_on_noise_that_there_is_not(title: str, value: float, shown: str) -> None:
    assert NO_NOISE.sub("", title.format(noise_scale=value)) == shown

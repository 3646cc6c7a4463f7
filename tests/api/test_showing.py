"""What names of the configuration stand for, each value with where it comes from."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.api.defaults import DEFAULT
from plumbline.api.repository import find_repository
from plumbline.api.showing import Resolved, lines_of, resolve
from plumbline.api.written import Leaf, Tree, tree_of, values_of
from plumbline.core.errors import PlumblineError
from plumbline.core.nested import merge
from plumbline.registry.catalogue import catalogue
from plumbline.study.methods_and_tasks import MethodsAndTasks, load_methods_and_tasks

METHODS = """
plain: {name: ucb, options: {model: {kernel: rbf}, sqrt_beta: 2.0}, legend: UCB, colour: red}
wrapped:
  name: calibrated
  options:
    base: {name: ucb, options: {sqrt_beta: 3.0}}
heir:
  like: plain
  options: {model: {ard: false}}
  vary: {sqrt_beta: [1.0, 4.0]}
"""
TASKS = """
ackley: {problem: ackley-2, initial: {design: uniform, size: 3}, rounds: 2, title: "Ackley in {dim} dimensions"}
"""
STUDY = """
study: tiny
title: A tiny study
citation: Nobody.
experiments:
  TINY-T1:
    title: A table
    grid: [{tasks: [ackley], methods: [heir, plain]}]
    seeds: 4
    table: {kind: final-values, options: {metrics: [regret]}}
    quick: {seeds: 2}
    paper: null
"""


@pytest.fixture(scope="module")
def entries() -> MethodsAndTasks:
    return load_methods_and_tasks(find_repository() / "config")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file, text in {"methods/methods": METHODS, "tasks/tasks": TASKS, "studies/tiny": STUDY}.items():
        (tmp_path / f"config/{file}.yaml").parent.mkdir(parents=True)
        (tmp_path / f"config/{file}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def at(tree: Any, path: str) -> Any:
    for part in path.split("."):
        tree = tree[part]
    return tree


def origins(tree: Tree | Leaf) -> set[str]:
    return {tree.origin} if isinstance(tree, Leaf) else {one for inner in tree.values() for one in origins(inner)}


@pytest.mark.parametrize("kind", ["method", "task"])
@pytest.mark.slow
def test_every_entry_resolves_to_what_is_run(kind: str, entries: MethodsAndTasks) -> None:
    """Whatever was inherited, varied and wrapped: the options that trials get are those shown."""
    members: dict[str, Any] = entries.methods if kind == "method" else entries.tasks
    first = {one.legend.entry if kind == "method" else one.entry: name for name, one in members.items()}
    assert len(first) > 20
    for name in list(first.values())[::7]:
        one = members[name]
        reference = one.ref if kind == "method" else one.problem
        shown = values_of(resolve(kind, name).tree)  # type: ignore[arg-type]
        assert merge(shown["options"], reference.options) == shown["options"], name
        required = catalogue().find("method" if kind == "method" else "problem", reference.name).options
        assert set(shown["options"]) == set(required.get("properties", {})), name


def test_where_values_come_from(repository: Path) -> None:
    tree = resolve("method", "heir-4.0").tree
    assert at(tree, "name") == Leaf("ucb", "methods.yaml:2")
    assert at(tree, "options.model.kernel") == Leaf("rbf", "methods.yaml:2")
    assert at(tree, "options.model.ard") == Leaf(False, "methods.yaml:9")
    assert at(tree, "options.sqrt_beta") == Leaf(4.0, "vary, methods.yaml:10")
    assert at(tree, "options.search.restarts").origin == DEFAULT
    assert at(tree, "colour") == Leaf("red", "methods.yaml:2")
    assert at(tree, "resources.cores") == Leaf(1, DEFAULT)


def test_a_family_is_shown_with_its_members(repository: Path) -> None:
    found = resolve("method", "heir")
    assert "stands for heir-1.0, heir-4.0" in found.heading
    assert at(found.tree, "vary.sqrt_beta").value == [1.0, 4.0]


def test_a_method_in_a_wrapper_has_its_own_defaults(repository: Path) -> None:
    tree = resolve("method", "wrapped").tree
    assert at(tree, "options.base.options.sqrt_beta") == Leaf(3.0, "methods.yaml:6")
    assert at(tree, "options.base.options.model.kernel") == Leaf("matern52", DEFAULT)


def test_a_task(repository: Path) -> None:
    tree = resolve("task", "ackley").tree
    assert at(tree, "options.dim") == Leaf(2, "tasks.yaml:2")
    assert at(tree, "options.noise_std").origin == DEFAULT
    assert at(tree, "q") == Leaf(1, DEFAULT)


def test_an_experiment(repository: Path) -> None:
    found = resolve("experiment", "TINY-T1")
    assert "config/studies/tiny.yaml, line 6" in found.heading
    assert "quick: 6 trials (tasks x methods x seeds: 1 x 3 x 2)" in found.heading
    assert "desk: 12 trials (tasks x methods x seeds: 1 x 3 x 4)" in found.heading
    assert not any(line.startswith("paper") for line in found.heading)
    assert at(found.tree, "seeds") == Leaf(4, "tiny.yaml:9")
    assert at(found.tree, "table.options.metrics") == Leaf(["regret"], "tiny.yaml:10")
    assert origins(at(found.tree, "diagnostics")) == {DEFAULT}


def test_an_experiment_has_its_claims_and_reference_results() -> None:
    assert {"claims: C1, C2, C3", "reference results in results/reference/CBO-F5-400"} <= set(
        resolve("experiment", "CBO-F5-400").heading
    )
    assert "reference results in results/atlas" in resolve("experiment", "ATLAS-clean").heading


@pytest.mark.slow
def test_a_claim_has_its_verdict() -> None:
    found = resolve("claim", "C1")
    assert any(line.startswith("verdict: ") for line in found.heading)
    assert values_of(found.tree)["experiments"]


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("method", "plian", "unknown method 'plian': did you mean 'plain'"),
        ("method", "logei", "'logei' is a registered class, no entry of config/methods"),
        ("task", "branin", "'branin' is a registered class, no entry of config/tasks.*--problem branin"),
        ("experiment", "TINY-T2", "unknown experiment 'TINY-T2': did you mean 'TINY-T1'"),
        ("claim", "K1", "unknown claim 'K1'"),
        ("figure", "curves", "unknown kind of entry 'figure'"),
    ],
)
def test_unknown_names(kind: Any, name: str, reason: str, repository: Path) -> None:
    with pytest.raises(PlumblineError, match=reason):
        resolve(kind, name)


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize(("kind", "name"), [("method", "cucb"), ("experiment", "CAL-F3"), ("claim", "C1")])
def test_a_listing_is_as_wide_as_asked(kind: Any, name: str, width: int) -> None:
    assert max(map(len, lines_of(resolve(kind, name), width))) <= width


def test_no_value_is_cut_where_it_is_too_long() -> None:
    tree = tree_of({"path": "x" * 90, "n": 1}, "a.yaml:1")
    assert isinstance(tree, dict)
    lines = lines_of(Resolved(["what"], tree), 80)
    assert lines[0] == "# what"
    assert f"path: {'x' * 90}" in "\n".join(lines) or "x" * 90 in "\n".join(lines)
    assert sum("# a.yaml:1" in line for line in lines) == 2


@given(st.integers(-20, 60))
def test_a_listing_of_any_width(width: int) -> None:
    inner: Tree = {"name": Leaf("word " * 20, "default"), "rows": Leaf([{"a": "b c " * 9}], "x.yaml:1")}
    lines = lines_of(Resolved(["what it is " * 9], {"deep": {"deeper": {"deepest": inner}}}), width)
    assert sum(line.count("word") for line in lines) == 20

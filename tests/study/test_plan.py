"""A plan: grids expanded, jobs, legends, stand-ins, and names that are checked before anything runs."""

import math
import shutil
import subprocess
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.core.seeding import identity
from plumbline.data.datasets import Dataset
from plumbline.store.keys import trial_key
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import parse_methods_and_tasks
from plumbline.study.plan import Plan, load_plan
from plumbline.study.resolved import job_resources
from plumbline.study.settings import Config, read_config

BUDGET = {"initial": {"design": "uniform", "size": 4}, "rounds": 30, "q": 2}
METHODS: dict[str, Any] = {
    "dice": {"name": "random", "legend": "dice", "colour": "grey"},
    "grid": {"name": "sobol", "resources": {"gpu": 1, "mem_mb": 500}},
    "bound": {"name": "ucb", "options": {"alpha": 0.2}},
    "bound-alpha": {"like": "bound", "vary": {"alpha": [0.1, 0.3]}},
}
TASKS: dict[str, Any] = {
    "branin": {"problem": "branin", **BUDGET},
    "hole": {"problem": "ackley-20", **BUDGET, "resources": {"mem_mb": 9000, "cores": 2}},
    "forrester": {"problem": "forrester", "initial": {"design": "sobol", "size": 2}, "rounds": 9, "title": "Forrester"},
    "qed": {
        "problem": "molecules",
        "title": "{dataset}: QED",
        "options": {"dataset": "zinc250k", "target": "qed"},
        **BUDGET,
    },
    "network": {"problem": "radio", **BUDGET, "vary": {"n_ch": [1, 2]}},
}
STUDY: dict[str, Any] = {
    "study": "toy",
    "title": "A toy",
    "citation": "Nobody.",
    "experiments": {
        "F1": {
            "title": "Figure 1",
            "grid": [
                {"tasks": ["hole", "branin"], "methods": ["dice", "grid"]},
                {"tasks": ["forrester"], "methods": ["dice"], "rounds": 8, "seeds": 3},
            ],
            "seeds": 7,
            "quick": {"seeds": 2, "rounds": 3},
            "desk": {"grid": [{"tasks": ["branin"], "methods": ["dice"]}], "diagnostics": {"holdout": 5}},
        },
        "F2": {
            "title": "Figure 2",
            "grid": [{"tasks": ["branin"], "methods": ["dice"]}],
            "seeds": 7,
            "paper": None,
        },
        "F3": {"title": "Molecules", "grid": [{"tasks": ["qed"], "methods": ["dice"]}], "quick": {}},
        "F4": {"title": "Sweep", "grid": [{"tasks": ["network"], "methods": ["bound-alpha", "bound"]}], "quick": {}},
        "T1": {"title": "No trials", "quick": {}},
    },
    "claims": {
        "K1": {
            "source": "p. 1",
            "statement": "It is so.",
            "experiments": ["F1"],
            "primary": [
                {
                    "statistic": "value",
                    "metric": "regret",
                    "of": "mean",
                    "task": "branin",
                    "method": "dice",
                    "direction": "less",
                }
            ],
        }
    },
}
MOLECULES = {
    "zinc250k": Dataset(name="zinc250k", title="z", licence="-", citation="-"),
    "generated-molecules": Dataset(
        name="generated-molecules", title="g", licence="-", citation="-", stands_in_for="zinc250k"
    ),
}


def plan_at(preset: str, **changes: Any) -> Plan:
    config = Config.model_validate({"preset": preset, "studies": ["toy"], "data": "real", **changes})
    return Plan(config, {"toy": parse(Study, STUDY, "toy")}, parse_methods_and_tasks(METHODS, TASKS), MOLECULES)


def test_a_grid_is_expanded() -> None:
    specs = plan_at("paper").resolve("F1").specs
    names = [(spec.task, spec.method.label) for spec in specs]
    assert names == [("hole", "dice"), ("hole", "grid"), ("branin", "dice"), ("branin", "grid"), ("forrester", "dice")]
    assert (specs[0].problem.name, specs[0].problem.options) == ("ackley", {"dim": 20})
    assert (specs[-1].budget.initial.design, specs[-1].budget.q, specs[-1].budget.rounds) == ("sobol", 1, 8)
    assert specs[0].budget.q == 2
    assert {spec.seed for spec in specs} == {0}
    assert specs[0].method.name == "random"


def test_families_are_expanded_where_they_are_named() -> None:
    pairs = [(spec.task, spec.method.label) for spec in plan_at("quick").resolve("F4").specs]
    assert pairs == [
        (task, method)
        for task in ("network-1", "network-2")
        for method in ("bound-alpha-0.1", "bound-alpha-0.3", "bound")
    ]


def test_what_is_expanded_is_as_valid_as_what_is_typed() -> None:
    for spec in plan_at("paper").resolve("F1").specs:
        assert type(spec).model_validate_json(spec.model_dump_json()) == spec


def test_presets_change_seeds_rounds_grids_and_diagnostics() -> None:
    quick = plan_at("quick")
    assert {spec.budget.rounds for spec in quick.resolve("F1").specs} == {3}, "blocks with rounds of their own too"
    assert {chunk.seeds for chunk in quick.resolve("F1").chunks} == {(0, 1)}
    desk = plan_at("desk").resolve("F1").specs
    assert [(spec.task, spec.diagnostics.holdout, spec.budget.rounds) for spec in desk] == [("branin", 5, 30)]


def test_a_block_may_have_seeds_of_its_own() -> None:
    chunks = plan_at("paper").resolve("F1").chunks
    assert [(chunk.spec.task, len(chunk.seeds)) for chunk in chunks[-3:]] == [
        ("branin", 7),
        ("branin", 7),
        ("forrester", 3),
    ]


def test_what_a_preset_leaves_out() -> None:
    quick = plan_at("quick")
    assert quick.grid("F2") == set()
    assert quick.resolve("T1").trials == ()
    assert list(quick.run.experiments) == ["F1", "F3", "F4", "T1"]
    with pytest.raises(PlumblineError, match="F2 is not part of preset 'quick'; it is of desk: choose another"):
        quick.resolve("F2")
    with pytest.raises(PlumblineError, match="unknown experiment 'F9': allowed: F1, F2"):
        quick.resolve("F9")


def test_stand_ins_change_the_data_and_no_name() -> None:
    real, generated = plan_at("quick"), plan_at("quick", data="generated")
    assert generated.stand_ins == {"zinc250k": "generated-molecules"}
    (one,), (other,) = real.resolve("F3").specs, generated.resolve("F3").specs
    assert one.task == other.task == "qed"
    assert other.problem.options == {"dataset": "generated-molecules", "target": "qed"}
    assert identity(other.problem.name, other.problem.options) != identity(one.problem.name, one.problem.options)
    assert real.resolve("F3").titles == {"qed": "zinc250k: QED"}
    assert generated.resolve("F3").titles == {"qed": "generated-molecules: QED"}
    assert (real.resolve("F3").inputs, generated.resolve("F3").inputs) == (["zinc250k"], ["generated-molecules"])
    assert real.resolve("F1").inputs == []


def test_the_configuration_may_name_stand_ins_of_its_own() -> None:
    other = {"zinc250k": "other-molecules"}
    for data in ("real", "generated"):
        plan = plan_at("quick", data=data, instead=other)
        assert plan.stand_ins == other
        assert plan.resolve("F3").titles == {"qed": "other-molecules: QED"}
        assert plan.resolve("F3").inputs == ["other-molecules"]


def test_legends_and_titles_are_those_of_the_grid() -> None:
    plan = plan_at("quick")
    legends = plan.resolve("F4").legends
    assert list(legends) == ["bound-alpha-0.1", "bound-alpha-0.3", "bound"]
    assert legends["bound-alpha-0.3"].parameters == {"alpha": 0.3}
    assert legends["bound-alpha-0.3"].entry == "bound-alpha"
    assert plan.resolve("F1").legends["dice"].colour == "grey"
    assert plan.resolve("F1").titles == {"hole": "hole", "branin": "branin", "forrester": "Forrester"}
    assert plan.resolve("F4").parameters == {"network-1": {"n_ch": 1}, "network-2": {"n_ch": 2}}
    assert plan.resolve("F1").parameters["branin"] == {}


def test_trials_that_experiments_share_are_one() -> None:
    plan = plan_at("desk")
    one, two = plan.resolve("F1").chunks[0], plan.resolve("F2").chunks[0]
    assert one.id != two.id, "desk checks a holdout in F1"
    plan = plan_at("paper")
    like_f2 = next(chunk for chunk in plan.resolve("F1").chunks if chunk.spec.task == "branin")
    assert like_f2.id == two.id
    assert trial_key(like_f2.spec, Path("no")) == trial_key(two.spec, Path("no"))


def test_a_job_gets_the_greater_of_what_method_and_task_need() -> None:
    plan = plan_at("paper")
    needs = {(spec.task, spec.method.label): job_resources(plan.library, spec) for spec in plan.resolve("F1").specs}
    both = needs["hole", "grid"]
    assert (both.gpu, both.mem_mb, both.cores) == (1, 9000, 2)
    assert needs["branin", "grid"].mem_mb == 500
    assert needs["branin", "dice"].cores == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunk=st.none() | st.integers(1, 10), seeds_per_job=st.none() | st.integers(1, 10))
def test_chunks_cover_each_seed_once(chunk: int | None, seeds_per_job: int | None) -> None:
    plan = plan_at("paper", chunk=chunk)
    methods = {**METHODS, "grid": {"name": "sobol", "resources": {"seeds_per_job": seeds_per_job}}}
    plan = Plan(plan.config, plan.studies, parse_methods_and_tasks(methods, TASKS))
    chunks = plan.resolve("F1").chunks
    covered = Counter((c.spec.task, c.spec.method.label, seed) for c in chunks for seed in c.seeds)
    assert set(covered.values()) == {1}
    assert len(covered) == 4 * 7 + 3
    for one in chunks:
        limits = [chunk, seeds_per_job if one.spec.method.label == "grid" else None, 7]
        assert len(one.seeds) <= min(limit for limit in limits if limit)
    assert len({c.id for c in chunks}) == len(chunks)


def test_jobs_by_task_are_of_one_task_and_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_at("quick", chunk=1)
    found = {name: Counter(one.spec.method.label for one in chunks) for name, chunks in plan.jobs_by_task().items()}
    assert found["branin"] == {"dice": 2}
    assert found["branin~2"] == {"grid": 2}, "these ask for a GPU"
    assert found["network-2"] == {"bound": 1, "bound-alpha-0.1": 1, "bound-alpha-0.3": 1}
    chunks = [one for job in plan.jobs_by_task().values() for one in job]
    expected = {one.id for experiment in plan.run.experiments.values() for one in experiment.chunks}
    assert {one.id for one in chunks} == expected
    assert len(chunks) == len(expected), "each in one job"
    monkeypatch.setattr("plumbline.study.resolved.MOST_CHUNKS", 2)
    assert [len(plan.jobs_by_task()[name]) for name in ("network-2", "network-2~2")] == [2, 1]


def test_jobs_by_task_fit_on_a_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_at("quick", chunk=1)
    chunks = plan.jobs_by_task()["network-2"]
    lengths = [len(one.model_dump_json()) for one in chunks]
    for most in (1, max(lengths), lengths[0] + lengths[1], sum(lengths) - 1, sum(lengths)):
        monkeypatch.setattr("plumbline.study.resolved.LONGEST", most)
        jobs = [job for name, job in plan.jobs_by_task().items() if name.partition("~")[0] == "network-2"]
        assert [one for job in jobs for one in job] == chunks
        assert all(len(job) == 1 or sum(len(one.model_dump_json()) for one in job) <= most for job in jobs)
        assert (len(jobs) == 1) == (most == sum(lengths))


def test_each_chunk_has_a_job_that_its_benchmark_is_called_by() -> None:
    plan = plan_at("quick", chunk=1)
    chunks = {one.id: one for experiment in plan.run.experiments.values() for one in experiment.chunks}
    paths = {id: f"{one.spec.task}/{one.spec.method.label}/{id}" for id, one in chunks.items()}
    assert plan.jobs() == paths
    by_task = plan_at("quick", chunk=1, job="task")
    assert by_task.jobs() == {one.id: job for job, some in by_task.jobs_by_task().items() for one in some}


@pytest.mark.parametrize("choice", [{"experiments": ["F1"]}, {"experiments": ["F2"]}, {"without": ["F1"]}])
def test_a_job_by_task_is_the_same_in_a_run_of_some_experiments(choice: dict[str, Any]) -> None:
    """Else a run of some would do again what a run of all has done."""
    study = {**STUDY, "experiments": {name: {**one, "desk": {}} for name, one in STUDY["experiments"].items()}}
    config = Config.model_validate({"preset": "desk", "studies": ["toy"], "data": "real"})
    parts = {"toy": parse(Study, study, "toy")}, parse_methods_and_tasks(METHODS, TASKS), MOLECULES
    whole = Plan(config, *parts).jobs_by_task()
    assert [len(whole[name]) for name in ("branin", "branin~2")] == [1, 1], "F2 has one of the two of F1 too"
    some = Plan(config.model_copy(update={name: tuple(value) for name, value in choice.items()}), *parts)
    ids = {one.id for experiment in some.run.experiments.values() for one in experiment.chunks}
    jobs = some.jobs_by_task()
    assert jobs.items() <= whole.items()
    assert {one.id for job in jobs.values() for one in job} == ids, "and computes nothing for others"


# What is checked on loading: a repository with the toy study in files.


@pytest.fixture
def repository(root: Path, tmp_path: Path) -> Path:
    (tmp_path / "config/studies").mkdir(parents=True)
    shutil.copy(root / "config/datasets.yaml", tmp_path / "config")
    for folder, entries in {"methods": METHODS, "tasks": TASKS}.items():
        (tmp_path / "config" / folder).mkdir()
        (tmp_path / "config" / folder / "toy.yaml").write_text(yaml.safe_dump(entries))
    (tmp_path / "config/studies/toy.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    return tmp_path


def changed(repository: Path, file: str, change: Callable[[Any], None]) -> None:
    path = repository / "config" / file
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def load(repository: Path, **changes: Any) -> Plan:
    return load_plan({"studies": ["toy"], **changes}, repository)


def claimed(plan: Plan) -> list[str]:
    return [name for name, one in plan.run.experiments.items() if one.claims]


def set_at(*path: Any, value: Any) -> Callable[[Any], None]:
    def change(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return change


TEST = ("claims", "K1", "primary", 0)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "studies/toy.yaml",
            set_at("experiments", "F1", "grid", 0, "methods", value=["dise"]),
            "config/studies/toy.yaml: F1: unknown method 'dise': did you mean 'dice'?",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "F1", "desk", "grid", 0, "tasks", value=["brannin"]),
            "config/studies/toy.yaml: F1: unknown task 'brannin': did you mean 'branin'?",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "F4", "grid", 0, "methods", value=["bound-alpha", "bound-alpha-0.1"]),
            "toy.yaml: F4: grid: 'bound-alpha-0.1' on 'network-1' is in block 1 twice: which counts?",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "F1", "grid", 1, "tasks", value=["forrester", "branin"]),
            "toy.yaml: F1: grid: 'dice' on 'branin' is in blocks 1 and 2: which counts?",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "F1", "desk", "grid", value=2 * [{"tasks": ["branin"], "methods": ["dice"]}]),
            "toy.yaml: F1: desk.grid: 'dice' on 'branin' is in blocks 1 and 2: which counts?",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "F1", "diagnostics", value={"snapshots": {"rounds": [2, 9]}}),
            "toy.yaml: F1: quick: diagnostics.snapshots.rounds: round 9 of a trial of 3 rounds (hole)",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "F1", "desk", "diagnostics", value={"snapshots": {"rounds": [31]}}),
            "toy.yaml: F1: desk: diagnostics.snapshots.rounds: round 31 of a trial of 30 rounds (branin)",
        ),
        *(
            (
                "studies/toy.yaml",
                set_at(*TEST, value={**STUDY["claims"]["K1"]["primary"][0], "statistic": "share-above", **options}),
                "toy.yaml: claim K1: option of statistic 'share-above': level: ",
            )
            for options in [{"options": {"level": level}} for level in ("high", None, [1], True, math.nan)]
        ),
        (
            "methods/toy.yaml",
            set_at("bound-alpha", "vary", value={"alpha": []}),
            "config/methods/toy.yaml: bound-alpha: vary.alpha: at least 1 wanted, 0 given",
        ),
        (
            "methods/toy.yaml",
            set_at("bound-alpha", "vary", value={"alpha": [1, 1.0]}),
            "config/methods/toy.yaml: bound-alpha: vary.alpha: 1.0 is there twice, as items 1 and 2 of the list",
        ),
        (
            "methods/toy.yaml",
            set_at("bound", "options", value={"alpha": True}),
            "config/methods/toy.yaml: bound: method 'ucb': alpha: a number is wanted (got True)",
        ),
        (
            "tasks/toy.yaml",
            set_at("branin", "options", value={"noise_std": math.nan}),
            "config/tasks/toy.yaml: branin: problem 'branin': noise_std: ",
        ),
        (
            "methods/toy.yaml",
            set_at("dice", "name", value="rndom"),
            "config/methods/toy.yaml: dice: unknown method 'rndom'",
        ),
        (
            "methods/toy.yaml",
            set_at("bound", "options", value={"alfa": 0.1}),
            "config/methods/toy.yaml: bound: method 'ucb': unknown field 'alfa': did you mean 'alpha'?",
        ),
        (
            "tasks/toy.yaml",
            set_at("branin", "problem", value="brannin"),
            "config/tasks/toy.yaml: branin: unknown problem 'brann",
        ),
        (
            "tasks/toy.yaml",
            set_at("hole", "problem", value="ackley"),
            "config/tasks/toy.yaml: hole: problem 'ackley': dim: Field required: write `ackley-2`, say",
        ),
        (
            "tasks/toy.yaml",
            set_at("qed", "options", value={"dataset": "zinc250k"}),
            "qed: problem 'molecules': target: Field required: `plumbline classes problem molecules` shows them all",
        ),
        ("studies/toy.yaml", set_at(*TEST, "task", value="brannin"), "claim K1: unknown task 'brannin': did you mean"),
        ("studies/toy.yaml", set_at(*TEST, "task", value="qed"), "claim K1: unknown task 'qed': allowed: branin, f"),
        ("studies/toy.yaml", set_at(*TEST, "method", value="dise"), "claim K1: unknown method 'dise': did you mean"),
        ("studies/toy.yaml", set_at(*TEST, "baseline", value="dise"), "claim K1: unknown method 'dise': did you mean"),
        ("studies/toy.yaml", set_at(*TEST, "metric", value="regrets"), "claim K1: unknown metric 'regrets': did you"),
        ("studies/toy.yaml", set_at(*TEST, "statistic", value="ratioo"), "claim K1: unknown statistic 'ratioo'"),
        (
            "studies/toy.yaml",
            set_at("claims", "K1", "stuck", value={"metric": "regrets", "above": 1.0}),
            "claim K1: unknown metric 'regrets': did you",
        ),
        (
            "studies/toy.yaml",
            set_at(
                *TEST,
                value={
                    "statistic": "share-above",
                    "location": "median",
                    "metric": "regret",
                    "task": "branin",
                    "method": "dice",
                    "direction": "less",
                },
            ),
            "claim K1: statistic 'share-above' counts seeds, and has no `location: median`",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "F1", "figure", value={"kind": "crves"}),
            "F1: unknown figure 'crves': did you mean 'curves'?",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "F1", "table", value={"kind": "final-values", "options": {"metrics": ["regrets"]}}),
            "F1: table 'final-values': unknown metric 'regrets'",
        ),
        (
            "studies/toy.yaml",
            set_at(
                "experiments", "F1", "figure", value={"kind": "curves", "options": {"panels": [{"task": "brannin"}]}}
            ),
            "F1: figure 'curves': unknown task 'brannin': did you mean 'branin'?",
        ),
        (
            "studies/toy.yaml",
            set_at("experiments", "T1", "figure", value={"kind": "curves"}),
            "T1: a figure needs a `grid` of trials or an `illustration`",
        ),
    ],
)
def test_a_name_that_stands_for_nothing_is_one_line(
    file: str, change: Callable[[Any], None], message: str, repository: Path
) -> None:
    """Whichever preset is asked for: a typo must not drop a test where it happens not to be run."""
    load(repository)
    changed(repository, file, change)
    for preset in ("quick", "desk", "paper"):
        with pytest.raises(PlumblineError) as caught:
            load(repository, preset=preset)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_run_of_nothing_is_a_mistake(repository: Path) -> None:
    for name in ("F1", "F3", "F4", "T1"):
        changed(repository, "studies/toy.yaml", set_at("experiments", name, "quick", value=None))
    with pytest.raises(PlumblineError, match="nothing to build: no experiment of toy is of preset 'quick': an exp"):
        load(repository)
    load(repository, preset="desk")
    with pytest.raises(PlumblineError, match=r"nothing to build: .*and left by `without`"):
        load(repository, preset="paper", without=["F1", "F3", "F4", "T1"])


@pytest.mark.slow
def test_names_of_files_stay_in_their_folder(repository: Path) -> None:
    path = repository / "config/datasets.yaml"
    datasets = yaml.safe_load(path.read_text())
    for name in ("..", "a/b", "../x", " ", ""):
        path.write_text(yaml.safe_dump({**datasets, name: datasets["zinc250k"]}))
        with pytest.raises(PlumblineError, match=r"datasets.yaml: the name .* names files"):
            load(repository)
    for file in ("..", ".", "a/b", "/", ""):
        path.write_text(yaml.safe_dump({**datasets, "mine": {**datasets["zinc250k"], "file": file}}))
        with pytest.raises(PlumblineError, match=r"datasets.yaml: mine: file: "):
            load(repository)
    for file in (".x", "..x", "...", "a.b", "ab", "a"):
        path.write_text(yaml.safe_dump({**datasets, "mine": {**datasets["zinc250k"], "file": file}}))
        load(repository)


def test_a_test_of_trials_that_no_preset_runs(repository: Path) -> None:
    changed(repository, "studies/toy.yaml", set_at(*TEST, "task", value="forrester"))
    load(repository)
    changed(repository, "studies/toy.yaml", set_at(*TEST, "method", value="grid"))
    with pytest.raises(PlumblineError, match="claim K1: no preset runs 'grid' on 'forrester', but: dice"):
        load(repository)


def test_experiments_of_one_claim_have_no_trials_in_common(repository: Path) -> None:
    """They may be of other seeds or rounds: nobody could say which of them a claim is judged by."""
    changed(repository, "studies/toy.yaml", set_at("claims", "K1", "experiments", value=["F1", "F3"]))
    assert claimed(load(repository)) == ["F1", "F3"]
    changed(repository, "studies/toy.yaml", set_at("claims", "K1", "experiments", value=["F1", "F2"]))
    with pytest.raises(PlumblineError, match="claim K1: F1 and F2 both run 'dice' on 'branin': which of them counts"):
        load(repository)


def test_a_test_may_be_of_what_another_preset_runs(repository: Path) -> None:
    changed(repository, "studies/toy.yaml", set_at(*TEST, "method", value="grid"))
    assert claimed(load(repository, preset="desk")) == ["F1"]


def test_figures_may_name_families(repository: Path) -> None:
    options = {"metric": "regret", "label": "regret", "parameter": "alpha", "lines": ["bound-alpha"]}
    figure = {"kind": "sweep", "options": options}
    changed(repository, "studies/toy.yaml", set_at("experiments", "F4", "figure", value=figure))
    load(repository)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (
            "experiments",
            "F1",
            "config/studies/second.yaml:3: experiment F1 is in config/studies/toy.yaml:5 too: rename one",
        ),
        ("claims", "K1", "config/studies/second.yaml:3: claim K1 is in config/studies/toy.yaml:62 too: rename one"),
    ],
)
def test_names_are_of_one_study(kind: str, name: str, message: str, repository: Path) -> None:
    content = {"T9": {"title": "x"}} if kind == "experiments" else {name: {"source": "s", "statement": "x"}}
    second = {"study": "second", "title": "x", "citation": "x", "experiments": {}, kind: content}
    if kind == "experiments":
        second["experiments"] = {name: {"title": "x"}}
    (repository / "config/studies/second.yaml").write_text(yaml.safe_dump(second))
    with pytest.raises(PlumblineError) as caught:
        load(repository, studies=["toy", "second"])
    assert str(caught.value) == message


def test_experiments_that_the_preset_lacks_are_no_empty_report(repository: Path) -> None:
    assert list(load(repository, experiments=["T1", "F1"]).run.experiments) == ["F1", "T1"]
    with pytest.raises(PlumblineError, match="F2 is not part of preset 'paper'; it is of desk"):
        load(repository, experiments=["F1", "F2"], preset="paper")


@pytest.mark.slow
def test_what_was_found_right_needs_neither_torch_nor_matplotlib(root: Path, one_core: dict[str, str]) -> None:
    code = (
        "import sys; from pathlib import Path; from plumbline.study.plan import load_plan;"
        "from plumbline.study.settings import read_config;"
        "load_plan(read_config(Path('config/config.yaml')), Path('.'));"
        "print([name for name in ('torch', 'matplotlib', 'pandas') if name in sys.modules])"
    )
    load_plan(read_config(root / "config/config.yaml"), root)  # written down by this process, if by none before
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, env=one_core, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_committed_configuration_loads_at_once(root: Path) -> None:
    config = read_config(root / "config/config.yaml", root / "config/paper.yaml")
    load_plan(config, root)
    # The least processor time of five: what other processes take of a shared machine is no cost of ours.
    seconds = timeit.repeat(lambda: load_plan(config, root), timer=time.process_time, number=1, repeat=5)
    assert min(seconds) < 0.5


@pytest.mark.parametrize(
    ("study", "name", "message"),
    [
        ("second", "claims", "config/studies/second.yaml: experiment claims has the name of a rule of the workflow"),
        (
            "second",
            "trials-A",
            "config/studies/second.yaml: experiment trials-A has the name of a rule of the workflow",
        ),
        ("second", "all", "config/studies/second.yaml: experiment all has the name of a rule of the workflow"),
        ("second", "toy", "config/studies/second.yaml: experiment toy has the name of a study"),
        ("second", "second", "config/studies/second.yaml: experiment second has the name of a study"),
        ("track", "T9", "config/studies/track.yaml: the study has the name of a rule of the workflow"),
    ],
)
@pytest.mark.parametrize("own", [True, False], ids=["its own workflow", "the packaged workflow"])
def test_targets_of_the_workflow_differ(
    study: str, name: str, message: str, own: bool, repository: Path, root: Path
) -> None:
    if own:
        shutil.copytree(root / "workflow", repository / "workflow")
    content = {"study": study, "title": "x", "citation": "x", "experiments": {name: {"title": "x"}}}
    (repository / f"config/studies/{study}.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(PlumblineError) as caught:
        load(repository, studies=["toy", study])
    assert str(caught.value) == f"{message}: rename it"


def test_a_preset_without_experiments_is_nothing_to_build(repository: Path) -> None:
    content = {"study": "second", "title": "x", "citation": "x", "experiments": {"T9": {"title": "x"}}}
    (repository / "config/studies/second.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(PlumblineError, match="nothing to build: no experiment of second is of preset 'quick': "):
        load(repository, studies=["second"], preset="quick")
    with pytest.raises(PlumblineError, match="is of preset 'desk' and left by `without`: "):
        load(repository, studies=["second"], preset="desk", without=["T9"])

"""The committed configuration is sound, and a mistake in it is one line."""

import re
import shutil
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from snakemake.utils import update_config

from plumbline.analysis.evidence.runs import COLUMNS
from plumbline.analysis.verdicts.judge import ExperimentRuns, judge
from plumbline.analysis.verdicts.rule import MIN_SEEDS
from plumbline.analysis.verdicts.verdict import runnable_tests
from plumbline.core.errors import PlumblineError
from plumbline.core.nested import merge
from plumbline.statistics.inference import TAIL
from plumbline.statistics.over_seeds import SHARES
from plumbline.study.plan import Plan, load_plan
from plumbline.study.resolved import pairs
from plumbline.study.settings import Config, read_config, summary_folder
from plumbline.trainers.online_lda import OnlineLdaOptions

STUDIES = ("calibrated", "conformal", "localised", "approximation", "practice")
PRESETS = ("quick", "desk", "paper")


def preset(root: Path, name: str) -> Config:
    files = [root / "config/config.yaml"] + ([] if name == "quick" else [root / f"config/{name}.yaml"])
    return read_config(*files)


@pytest.fixture(scope="module")
def plans(root: Path) -> dict[str, Plan]:
    return {name: load_plan(preset(root, name), root) for name in PRESETS}


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A copy of the configuration to spoil."""
    shutil.copytree(root / "config", tmp_path / "config")
    return tmp_path


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_loads(plans: dict[str, Plan], name: str) -> None:
    plan = plans[name]
    assert plan.config.preset == name
    assert plan.config.data == ("generated" if name == "quick" else "real")
    assert bool(plan.stand_ins) == (name == "quick")


@pytest.mark.parametrize("name", PRESETS)
def test_every_experiment_expands(plans: dict[str, Plan], name: str) -> None:
    plan = plans[name]
    ids: dict[str, str] = {}
    for experiment, resolved in plan.run.experiments.items():
        chunks, scaled = resolved.chunks, resolved.experiment
        assert bool(chunks) == bool(scaled.grid)
        assert scaled.figure or scaled.table, f"{experiment} has nothing to show"
        for chunk in chunks:
            assert chunk.spec.method.label in plan.library.methods
            assert chunk.spec.task in plan.library.tasks
            assert len(chunk.seeds) <= 10 or name != "paper"
            text = chunk.model_dump_json()
            assert ids.setdefault(chunk.id, text) == text
        grid = [(c.spec.task, c.spec.method.label, seed) for c in chunks for seed in c.seeds]
        assert len(set(grid)) == len(grid), f"{experiment} has two trials of one name"


def test_quick_has_some_experiment_of_every_study_that_has_any(plans: dict[str, Plan], root: Path) -> None:
    plan = plans["quick"]
    built = {one.study.study for one in plan.run.experiments.values()}
    assert built == {name for name, study in plan.studies.items() if study.experiments}
    assert set(plan.studies) == {path.stem for path in (root / "config/studies").glob("*.yaml")}


def test_a_study_without_experiments_says_what_is_not_run(plans: dict[str, Plan]) -> None:
    for study in plans["paper"].studies.values():
        assert study.experiments or study.claims
        assert study.experiments or all(not claim.experiments for claim in study.claims.values())


def test_no_two_claims_have_one_name(plans: dict[str, Plan]) -> None:
    names = [name for study in plans["paper"].studies.values() for name in study.claims]
    assert len(set(names)) == len(names)


def test_desk_and_paper_have_every_experiment(plans: dict[str, Plan]) -> None:
    """Those with fresh seeds are of one of them: who runs the desk does not look at seeds that are to decide a claim.

    The long budgets of approximation-aware BO are the paper's own, and have no shorter form.
    """
    long = {name for name in plans["paper"].names() if re.match("AABO-X[568]", name)}
    studies = plans["paper"].studies.values()
    fresh = {name for study in studies for name, one in study.experiments.items() if one.first_seed}
    built = {preset: set(plans[preset].run.experiments) for preset in ("desk", "paper")}
    for experiments in built.values():
        assert experiments - fresh - long == set(plans["paper"].names()) - fresh - long
    assert (built["desk"] ^ built["paper"]) == fresh | long
    claims = [claim for study in studies for claim in study.claims.values()]
    assert {name for claim in claims for name in claim.fresh} <= fresh
    assert fresh <= {name for claim in claims for name in claim.all_experiments}


def test_no_other_experiment_has_a_fresh_seed(plans: dict[str, Plan]) -> None:
    for study in plans["paper"].studies.values():
        for experiment in study.experiments.values():
            blocks = [block for grid in experiment.grids().values() for block in grid]
            assert experiment.first_seed == 0 or experiment.first_seed >= 1000
            assert all((block.seeds or experiment.seeds) <= 1000 for block in blocks if not experiment.first_seed)


def test_quick_needs_no_download(plans: dict[str, Plan]) -> None:
    plan = plans["quick"]
    for one in plan.run.experiments.values():
        for chunk in one.chunks:
            dataset = chunk.spec.problem.options.get("dataset")
            assert dataset is None or plan.datasets[dataset].url is None


def test_claims_speak_of_trials_that_there_are(plans: dict[str, Plan]) -> None:
    """A claim about a method that its experiments do not run would never get a verdict.

    A test may be about one of the two presets alone, where the desk has models of its own; no primary one is. Of it
    the paper's preset runs every part.
    """
    for study in plans["paper"].studies.values():
        for name, claim in study.claims.items():
            if not claim.experiments:
                continue
            grids = [set().union(*map(plans[preset].grid, claim.experiments)) for preset in ("desk", "paper")]
            for test in claim.tests:
                assert any(grid.issuperset(test.trials) for grid in grids), f"{name}: {test.task}"
            desk, paper = (runnable_tests(claim, grid) for grid in grids)
            assert desk is not None, name
            assert paper is not None, name
            assert paper.complete, name


def whole_grid(plan: Plan, name: str) -> set[tuple[str, str]]:
    """Return the (task, method) of an experiment at any preset."""
    grids = plan.study_of(name).experiments[name].grids()
    return {pair for blocks in grids.values() for block in blocks for pair in pairs(plan.library, block)}


@pytest.mark.slow
def test_every_claim_can_be_judged(plans: dict[str, Plan]) -> None:
    """From runs of chance: no statistic, option or range stumbles."""
    plan, rng = plans["paper"], np.random.default_rng(0)

    def drawn(experiment: str) -> ExperimentRuns:
        here = whole_grid(plan, experiment)
        asked = dict.fromkeys(
            run
            for claim in plan.study_of(experiment).claims.values()
            for names in claim.evidence
            if experiment in names
            for found in [runnable_tests(claim, {pair for name in names for pair in whole_grid(plan, name)})]
            if found is not None
            for run in found.runs
            if run[:2] in here
        )
        rows = [(*one, seed, *np.exp(rng.normal(size=3)), 9, 9, 12) for one in asked for seed in range(5)]
        return ExperimentRuns(pd.DataFrame(rows, columns=COLUMNS), "paper", "synthetic")

    found = judge(plan.studies.values(), plan.library, drawn)
    claims = {name for study in plan.studies.values() for name, claim in study.claims.items() if claim.experiments}
    assert set(found["claim"]) == claims
    assert found[["ours", "low", "high", "p"]].notna().all(axis=None)
    assert found["test"].notna().all()
    assert (found["test"] != "").all()


UNDECIDED = {
    "desk": {"A5": "a round of 1,024 inducing points takes a minute", "C4": "", "C6": "", "C12": "does not apply"},
    "paper": {"C12": "does not apply"},
}
"""Claims that a preset is too small for, whatever its runs say; of those without a word the paper's preset is not."""


@pytest.mark.parametrize("preset", UNDECIDED)
def test_seeds_are_enough_to_decide_about_a_claim(plans: dict[str, Plan], preset: str) -> None:
    """A sign test of n seeds has no probability below `2^-n`, and of the claim's parts each is corrected for all."""
    plan, undecided = plans[preset], set()
    for study in plan.studies.values():
        for name, claim in study.claims.items():
            here = [one for one in claim.experiments if one in plan.preset_names()]
            chunks = [chunk for one in here for chunk in plan.resolve(one).chunks]
            seeds = Counter((one.spec.task, one.spec.method.label) for one in chunks for _ in one.seeds)
            found = runnable_tests(claim, seeds)
            for test in found.primary if found else ():
                few = [min(seeds[trial] for trial in test.trials if trial[0] == task) for task in test.tasks]
                of_signs = test.statistic in SHARES or test.location == "median"
                if min(few) < MIN_SEEDS or (of_signs and len(found.primary) * 0.5 ** sum(few) > TAIL):
                    undecided.add(name)
    assert undecided == set(UNDECIDED[preset])


def test_every_method_and_task_is_used(plans: dict[str, Plan]) -> None:
    """Of public libraries some configurations are for comparisons of one's own."""
    plan = plans["paper"]
    used = {pair for name in plan.names() for pair in whole_grid(plan, name)}
    libraries = yaml.safe_load(Path("config/methods/peers.yaml").read_text(encoding="utf-8"))
    assert set(plan.library.methods) == {method for _, method in used} | set(libraries)
    assert set(plan.library.tasks) == {task for task, _ in used}


def test_differences_to_the_plain_method_are_to_its_own(plans: dict[str, Plan]) -> None:
    """Calibrated UCB less plain UCB, not less EI; each pair that a preset runs has a panel."""
    for one in (one for plan in plans.values() for one in plan.run.experiments.values()):
        study, name, experiment = one.study, one.name, one.experiment
        options = experiment.figure.options if experiment.figure else {}
        if study.study != "calibrated" or not any("minus" in row for row in options.get("rows", ())):
            continue
        drawn = set()
        for panel in options["panels"]:
            plain, *others = panel["methods"]
            kind = plain.removesuffix("-ml")
            assert all(other.startswith(f"calibrated-{kind}") for other in others), name
            drawn |= {(panel["task"], method) for method in panel["methods"]}
        run = {(task, method) for block in experiment.grid for task in block.tasks for method in block.methods}
        assert run <= drawn, name
        assert all(row.get("minus", "first") == "first" for row in options["rows"]), name


@pytest.mark.parametrize(
    "path",
    [
        *(f"{name}.yaml" for name in ("config", "desk", "paper", "datasets", "models")),
        *(f"{folder}/{name}.yaml" for folder in ("methods", "tasks") for name in STUDIES),
        "methods/shared.yaml",
    ],
)
def test_files_name_their_schema(path: str, root: Path) -> None:
    check_schema(root / "config" / path)


def test_studies_name_their_schema(root: Path) -> None:
    for path in (root / "config/studies").glob("*.yaml"):
        check_schema(path)


def check_schema(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema="), path
    assert (path.parent / first.partition("=")[2]).is_file(), path


def test_the_example_of_the_readme_is_a_study(copy: Path) -> None:
    blocks = (copy / "config/README.md").read_text().split("```yaml\n# ")[1:]
    for file, _, rest in (block.partition("\n") for block in blocks):
        (copy / file).write_text(rest.partition("```")[0])
    plan = load_plan({"studies": ["mine"]}, copy)
    assert [len(one.chunks) for one in plan.run.experiments.values()] == [4]
    assert [len(claim.tests) for claim in plan.studies["mine"].claims.values()] == [1]


def test_later_files_win(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("studies: [x]\nchunk: 3\n")
    (tmp_path / "b.yaml").write_text("chunk: 1\n")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    config = read_config(tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "empty.yaml")
    assert (config.studies, config.chunk) == (("x",), 1)


replaced = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))
left_out = st.lists(st.sampled_from("pq"), unique=True)
fields = {"instead": replaced, "chunk": st.integers(1, 9), "without": left_out}


@given(st.lists(st.fixed_dictionaries({}, optional=fields), max_size=4))
def test_layers_are_merged_as_snakemake_merges_its_configfiles(layers: list[dict[str, Any]]) -> None:
    merged: dict[str, Any] = {"studies": ["x"]}
    for layer in layers:
        update_config(merged, layer)
    assert read_config({"studies": ["x"]}, *layers).model_dump() == Config.model_validate(merged).model_dump()


nested = st.recursive(st.integers(), lambda one: st.dictionaries(st.sampled_from("abc"), one, min_size=1), max_leaves=6)
mappings = st.dictionaries(st.sampled_from("abc"), nested)


@given(mappings, mappings)
def test_mappings_are_merged_at_any_depth_as_by_snakemake(below: dict[str, Any], above: dict[str, Any]) -> None:
    expected = deepcopy(below)
    update_config(expected, above)
    assert merge(below, above) == expected


@given(st.lists(st.sampled_from(["out", "a", ".", ".."]), min_size=1), st.sampled_from(["", "/", "//", "/."]))
def test_a_folder_has_one_spelling(parts: list[str], end: str) -> None:
    """Rules write `{results}/trials`, and Python `Path(results) / "trials"`."""
    for field in ("results", "datasets"):
        written = "/".join(parts) + end
        folder = getattr(read_config({"studies": ["x"], field: written}), field)
        assert folder == str(Path(written))
        assert folder == "." or f"{folder}/trials" == str(Path(folder) / "trials")


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("chunk: zero\n", "data: real\n", "a.yaml: chunk: Input should be a valid integer"),
        ("chnk: 1\n", "data: real\n", "a.yaml: unknown field 'chnk': did you mean 'chunk'?"),
        ("chunk: 1\n", "data: unreal\n", "b.yaml: data: Input should be 'generated' or 'real'"),
        ("chunk: 1\n", "chunk: yes\n", "b.yaml: chunk: a number is wanted (got True)"),
        ("- 1\n", "data: real\n", "a.yaml: a configuration is a mapping of names to values"),
        ("chunk: 1\nchunk: 1\n", "data: real\n", "a.yaml:2: 'chunk' is there twice"),
        ("studies: [calibratd]\n", "data: real\n", "a.yaml: studies: unknown study 'calibratd'"),
        ("without: [CAL-F9]\n", "studies: [calibrated]\n", "a.yaml: without: unknown experiment 'CAL-F9'"),
        ("studies: [calibrated]\n", "without: [CAL-F9]\n", "b.yaml: without: unknown experiment 'CAL-F9'"),
        ("experiments: [CAL-F9]\n", "studies: [calibrated]\n", "a.yaml: experiments: unknown experiment 'CAL-F9'"),
        (
            "experiments: [CBO-X1]\n",
            "studies: [calibrated]\n",
            "a.yaml: experiments: experiment 'CBO-X1': its study conformal is not in `studies`: add it there",
        ),
        ("without: [CBO-X1]\n", "studies: [calibrated]\n", "a.yaml: without: experiment 'CBO-X1': its study conformal"),
        ("instead: {a: b}\n", "studies: [calibrated]\n", "a.yaml: instead: unknown dataset or model 'a'"),
        ("chunk: 1\n", "data: real\n", "a.yaml, b.yaml: there are no `studies`: a preset comes after"),
    ],
)
def test_a_mistake_names_the_file_that_it_is_in(
    first: str, second: str, message: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(first)
    (tmp_path / "b.yaml").write_text(second)
    with pytest.raises(PlumblineError) as caught:
        load_plan(read_config(Path("a.yaml"), Path("b.yaml")), root)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "quik"}, "config: preset: Input should be 'quick', 'desk' or 'paper' (got 'quik')"),
        ({"studies": ["calibratd"]}, "config: studies: unknown study 'calibratd': did you mean 'calibrated'?"),
        ({"studies": []}, "config: studies: "),
        ({"experiments": ["CAL-F9"]}, "config: experiments: unknown experiment 'CAL-F9': did you mean 'CAL-F"),
        ({"chunk": True}, "config: chunk: a number is wanted (got True)"),
        ({"studies": ["practice", "practice"]}, "config: studies: 'practice' is there twice, as items 1 and 2"),
        ({"experiments": ["CAL-F2", "CAL-F2"]}, "config: experiments: 'CAL-F2' is there twice"),
        *(
            ({name: text}, f"config: {name}: ")
            for name in ("results", "datasets", "mirror")
            for text in ("", " ", True)
        ),
        (
            {"studies": ["practice"], "experiments": ["BOWH-1"], "without": ["BOWH-1"]},
            "config: BOWH-1 is among `experiments`",
        ),
        ({"chunk": 0}, "config: chunk: Input should be greater than 0 (got 0)"),
        ({"sedes": 3}, "config: unknown field 'sedes'"),
        ({"data": "fake"}, "config: data: Input should be 'generated' or 'real' (got 'fake')"),
    ],
)
def test_mistakes_in_the_config(changes: dict[str, Any], message: str, root: Path) -> None:
    data = preset(root, "quick").model_dump(mode="json") | changes
    with pytest.raises(PlumblineError) as caught:
        load_plan(data, root)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "methods/calibrated.yaml",
            "sqrt_beta: 2.0}\n  legend: UCB",
            "sqrt_bata: 2.0}\n  legend: UCB",
            "config/methods/calibrated.yaml: ucb-ml: method 'ucb': unknown field 'sqrt_bata': did you mean",
        ),
        (
            "methods/calibrated.yaml",
            "kernel: rbf",
            "kernel: rfb",
            "ucb-ml: method 'ucb': model.kernel: Input should be",
        ),
        (
            "methods/calibrated.yaml",
            "{base: {name: ucb",
            "{base: {name: ucp",
            "unknown method 'ucp'",
        ),
        (
            "tasks/calibrated.yaml",
            "problem: forrester",
            "problem: forester",
            "forrester: unknown problem 'forester': did you mean",
        ),
        ("studies/calibrated.yaml", "[forrester]", "[forester]", "calibrated.yaml: CAL-F2: unknown task 'forester'"),
        (
            "studies/calibrated.yaml",
            "[ucb-ml,",
            "[ucb-lm,",
            "calibrated.yaml: CAL-F1: unknown method 'ucb-lm': did you",
        ),
        (
            "studies/calibrated.yaml",
            "kind: model-steps",
            "kind: model-step",
            "unknown figure 'model-step': did you mean",
        ),
        (
            "studies/calibrated.yaml",
            "kind: search-space",
            "kind: search-pace",
            "unknown table 'search-pace': did you mean",
        ),
        (
            "studies/calibrated.yaml",
            "minimise: true}",
            "minimize: true}",
            "CAL-F1: figure 'model-steps': unknown field",
        ),
        (
            "tasks/conformal.yaml",
            "dataset: zinc250k",
            "dataset: zinc250",
            "unknown dataset 'zinc250': did you mean 'zinc250k'?",
        ),
        ("models.yaml", "dataset: zinc250k", "dataset: zinc25k", "zinc-components: unknown dataset 'zinc25k'"),
        ("models.yaml", "trainer: principal-components", "trainer: principal", "zinc-components: unknown trainer"),
        ("models.yaml", "generated-components:", "generated-molecules:", "there is a dataset of that name: rename one"),
        (
            "tasks/conformal.yaml",
            "initial: {design: worst, size: 32}",
            "initial: {design: worst, size: 32, options: {seed: 1}}",
            "design 'worst': unknown field 'seed'",
        ),
        (
            "studies/calibrated.yaml",
            "options: {level: 1.0}",
            "options: {levle: 1.0}",
            "option of statistic 'share-above'",
        ),
        (
            "studies/calibrated.yaml",
            "method: calibrated-ucb\n      baseline: ucb-ml\n",
            "method: calibrated-ucb\n",
            "compares with a `baseline`",
        ),
        (
            "methods/conformal.yaml",
            "name: trust-region\n  options: {base: {name: ucb",
            "name: trust-region\n  options: {base: {name: random",
            "tr-ucb: method 'trust-region': ",
        ),
        ("studies/calibrated.yaml", "title: Selected", "titel: Selected", "experiments.CAL-F1: unknown field 'titel'"),
        (
            "studies/calibrated.yaml",
            "method: calibrated-ei",
            "method: calibrated-ie",
            "claim K2: unknown method 'calibra",
        ),
    ],
)
def test_a_typo_is_found_at_load(file: str, old: str, new: str, message: str, copy: Path) -> None:
    path = copy / "config" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(PlumblineError) as caught:
        load_plan(preset(copy, "quick"), copy)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_plan_finds_its_experiments(plans: dict[str, Plan]) -> None:
    plan = plans["quick"]
    assert plan.study_of("CAL-F2").study == "calibrated"
    with pytest.raises(PlumblineError, match="unknown experiment 'CAL-F0'"):
        plan.study_of("CAL-F0")


def test_stand_ins_are_datasets_of_their_own(plans: dict[str, Plan]) -> None:
    plan = plans["quick"]
    for real, generated in plan.stand_ins.items():
        assert real != generated
        if real in plan.models:
            assert generated in plan.models
            continue
        assert plan.datasets[generated].url is None
        assert plan.datasets[real].features is not None


def test_every_dataset_has_what_its_kind_needs(root: Path) -> None:
    entries = yaml.safe_load((root / "config/datasets.yaml").read_text())
    for name, entry in entries.items():
        assert entry.get("file") or entry.get("stands_in_for"), name
        assert entry.get("hash") or entry.get("note") or not entry.get("file"), (
            f"{name} has no checksum and says not why"
        )


@pytest.mark.parametrize(
    ("instead", "message"),
    [
        ({"online-lda": "online-lda-rebuild"}, "instead: unknown dataset or model .*did you mean 'online-lda-rebuilt'"),
        ({"onlin-lda": "online-lda-rebuilt"}, "did you mean 'online-lda'"),
        ({"online-lda": "20-newsgroups-rebuilt"}, "one is a dataset and one is a model"),
    ],
)
def test_what_is_to_replace_a_model_must_be_one(root: Path, instead: dict[str, str], message: str) -> None:
    config = preset(root, "quick").model_copy(update={"instead": instead})
    with pytest.raises(PlumblineError, match=message) as caught:
        load_plan(config, root)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_experiments_can_be_left_out(root: Path) -> None:
    """Where SVHN cannot be had: its jobs and files are not asked for, and the rest is as it was."""
    whole, left = (
        load_plan(preset(root, "desk").model_copy(update={"without": without}), root)
        for without in ((), ("CAL-F4-svhn",))
    )
    names = [list(plan.run.experiments) for plan in (whole, left)]
    assert names[1] == [name for name in names[0] if name != "CAL-F4-svhn"]
    svhn = whole.downloads("CAL-F4-svhn")
    assert svhn == {"train_32x32.mat", "test_32x32.mat"}
    assert not any(svhn & left.downloads(name) for name in names[1])
    assert whole.downloads("CAL-F4-lda") == {"20news-bydate.tar.gz"}
    assert whole.downloads("CAL-F2") == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"without": ("CAL-F4-svnh",)}, "without: unknown experiment 'CAL-F4-svnh': did you mean 'CAL-F4-svhn'"),
        ({"without": ("CAL-F2",), "experiments": ("CAL-F2",)}, "CAL-F2 is among `experiments`, and among those to do"),
    ],
)
def test_what_is_left_out_must_be_there(root: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        load_plan(preset(root, "desk").model_copy(update=changes), root)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_the_rebuilt_posts_can_take_the_place_of_the_others(root: Path) -> None:
    config = preset(root, "desk").model_copy(update={"instead": {"online-lda": "online-lda-rebuilt"}})
    plan = load_plan(config, root)
    assert plan.resolve("CAL-F4-lda-50").inputs == ["online-lda-rebuilt"]
    rebuilt, canonical = plan.models["online-lda-rebuilt"], plan.models["online-lda"]
    assert rebuilt.options == {**canonical.options, "dataset": "20-newsgroups-rebuilt"}
    posts, others = plan.datasets["20-newsgroups-rebuilt"], plan.datasets["20-newsgroups"]
    assert (posts.url, posts.features) == (None, others.features)


def test_the_grid_of_online_lda_is_that_of_the_papers_table(plans: dict[str, Plan]) -> None:
    options = OnlineLdaOptions.model_validate(plans["paper"].models["online-lda"].options)
    for parameter, values in zip(
        plans["paper"].studies["calibrated"].spaces["online-lda"],
        (options.minibatch, options.kappa, options.tau0),
        strict=True,
    ):
        assert (values[0], values[-1]) == (parameter.low, parameter.high)
        steps = np.diff(np.log2(values) if parameter.scale == "log" else values)
        np.testing.assert_allclose(steps, parameter.step or 1.0)
    assert len(options.points()) == 288


USUAL = ("one", "two")


@pytest.mark.parametrize(
    ("chosen", "folder"),
    [
        ({}, "quick"),
        ({"studies": ("two", "one")}, "quick"),
        ({"studies": ("one", "two", "own")}, "quick"),
        ({"studies": ("own",)}, "quick/only-own"),
        ({"studies": ("one",), "preset": "desk"}, "desk/only-one"),
        ({"experiments": ("E-1",)}, "quick/only-E-1"),
        ({"experiments": ("E-1", "E-2"), "studies": ("own",)}, "quick/only-E-1-E-2"),
        ({"without": ("E-1",)}, "quick"),
    ],
)
def test_a_part_of_the_run_leaves_the_page_of_the_whole_alone(chosen: dict[str, Any], folder: str) -> None:
    assert summary_folder(Config(**{"studies": USUAL, **chosen}), USUAL) == folder


def test_a_long_name_is_shortened() -> None:
    names = [tuple(f"EXPERIMENT-{i}" for i in range(n)) for n in (20, 21)]
    first, second = (summary_folder(Config(studies=USUAL, experiments=chosen), USUAL) for chosen in names)
    assert first != second
    assert max(len(first), len(second)) < 40

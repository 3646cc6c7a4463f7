"""Studies as data: presets, grids, stand-ins, jobs, and mistakes that are found before anything runs."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.errors import PlumblineError
from plumbline.keys import trial_key
from plumbline.options import parse
from plumbline.study import Study, datasets_of, load_study, read_yaml

DESIGN = {"design": "uniform", "size": 4}
STAND_INS = {"zinc250k": "generated-molecules"}


def toy() -> dict[str, Any]:
    """A study with every kind of experiment."""
    template = {"name": "molecules", "label": "{dataset}-{target}", "options": {"dataset": "zinc250k", "target": "qed"}}
    return {
        "study": "toy",
        "title": "A toy",
        "citation": "Nobody.",
        "methods": {
            "dice": {"name": "random"},
            "grid": {"name": "sobol", "resources": {"gpu": 1, "mem_mb": 500}},
        },
        "experiments": {
            "F1": {
                "title": "Figure 1",
                "grid": [
                    {"problems": ["ackley-20", "branin"], "methods": ["dice", "grid"]},
                    {
                        "problems": ["forrester"],
                        "methods": ["dice"],
                        "initial": {"design": "sobol", "size": 2},
                        "rounds": 9,
                    },
                ],
                "seeds": 7,
                "budget": {"initial": DESIGN, "rounds": 30, "q": 2},
                "quick": {"seeds": 2, "rounds": 3},
                "desk": {"grid": [{"problems": ["branin"], "methods": ["dice"]}], "diagnostics": {"holdout": 5}},
            },
            "F2": {
                "title": "Figure 2",
                "grid": [{"problems": ["branin"], "methods": ["dice"]}],
                "seeds": 7,
                "budget": {"initial": DESIGN, "rounds": 30, "q": 2},
                "paper": None,
            },
            "F3": {
                "title": "Molecules",
                "grid": [{"problems": [template], "methods": ["dice"]}],
                "budget": {"initial": DESIGN, "rounds": 2},
                "quick": {},
            },
            "T1": {"title": "No trials", "quick": {}},
        },
        "claims": {
            "K1": {
                "source": "p. 1",
                "statement": "It is so.",
                "experiment": "F1",
                "tests": [
                    {"statistic": "s", "metric": "regret", "problem": "branin", "method": "dice", "direction": "less"}
                ],
            },
            "K2": {"source": "p. 2", "statement": "It is not tried."},
        },
    }


@pytest.fixture
def study() -> Study:
    return parse(Study, toy(), "toy")


def test_a_preset_without_an_entry(study: Study) -> None:
    f1, f2 = study.experiments["F1"], study.experiments["F2"]
    assert f2.at("quick") is None, "quick has only what says so"
    assert f2.at("paper") is None
    assert f2.at("desk") == f2
    assert f1.at("paper") == f1, "the paper's settings are the experiment's own"
    assert study.trials("F2", "quick", {}) == []
    assert list(study.seeds("F2", "quick")) == []
    assert study.chunks("F2", "quick", {}, None) == []
    assert study.trials("T1", "quick", {}) == []


def test_what_a_preset_changes(study: Study) -> None:
    quick = study.experiments["F1"].at("quick")
    assert quick is not None
    assert quick.budget is not None
    assert (quick.seeds, quick.budget.rounds, quick.budget.q, quick.budget.initial.size) == (2, 3, 2, 4)
    assert {spec.budget.rounds for spec in study.trials("F1", "quick", {})} == {3}, (
        "blocks with rounds of their own too"
    )
    paper = {(spec.problem.label, spec.budget.rounds) for spec in study.trials("F1", "paper", {})}
    assert paper == {("ackley-20", 30), ("branin", 30), ("forrester", 9)}
    desk = study.trials("F1", "desk", {})
    assert [(spec.problem.label, spec.diagnostics.holdout) for spec in desk] == [("branin", 5)]


def test_a_grid_is_expanded(study: Study) -> None:
    specs = study.trials("F1", "paper", {})
    names = [(spec.problem.label, spec.method.label) for spec in specs]
    assert names == [
        ("ackley-20", "dice"), ("ackley-20", "grid"), ("branin", "dice"), ("branin", "grid"), ("forrester", "dice"),
    ]  # fmt: skip
    assert specs[0].problem.options == {"dim": 20}
    assert specs[-1].budget.initial.design == "sobol"
    assert specs[-1].budget.q == 2
    assert {spec.seed for spec in specs} == {0}
    assert specs[0].method.name == "random"


def test_stand_ins_are_named_as_such(study: Study) -> None:
    (real,) = study.trials("F3", "quick", {})
    (generated,) = study.trials("F3", "quick", STAND_INS)
    assert (real.problem.label, real.problem.options["dataset"]) == ("zinc250k-qed", "zinc250k")
    assert generated.problem.label == "generated-molecules-qed"
    assert generated.problem.options == {"dataset": "generated-molecules", "target": "qed"}
    assert generated.problem.identity() != real.problem.identity()
    assert datasets_of([real, generated, *study.trials("F1", "paper", {})]) == ["generated-molecules", "zinc250k"]


def test_trials_that_experiments_share_are_one(study: Study) -> None:
    ids = {name: {chunk.id: chunk for chunk in study.chunks(name, "desk", {}, None)} for name in ("F1", "F2")}
    assert ids["F1"].keys() != ids["F2"].keys(), "desk checks a holdout in F1"
    changed = toy()
    del changed["experiments"]["F1"]["desk"]["diagnostics"]
    study = parse(Study, changed, "toy")
    ones, twos = study.chunks("F1", "desk", {}, None), study.chunks("F2", "desk", {}, None)
    assert [chunk.id for chunk in ones] == [chunk.id for chunk in twos]
    assert trial_key(ones[0].spec, Path("no")) == trial_key(twos[0].spec, Path("no"))


def test_resources_do_not_change_a_trial(study: Study) -> None:
    changed = toy()
    changed["methods"]["grid"]["resources"] = {"mem_mb": 64_000}
    changed["experiments"]["F1"]["title"] = "Another"
    other = parse(Study, changed, "toy")
    for one, two in zip(study.chunks("F1", "paper", {}, 2), other.chunks("F1", "paper", {}, 2), strict=True):
        assert one.id == two.id


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(size=st.none() | st.integers(1, 10))
def test_chunks_cover_each_seed_once(study: Study, size: int | None) -> None:
    chunks = study.chunks("F1", "paper", {}, size)
    covered = Counter((c.spec.problem.label, c.spec.method.label, seed) for c in chunks for seed in c.seeds)
    assert set(covered.values()) == {1}
    assert len(covered) == 5 * 7
    assert {spec.seed for c in chunks for spec in c.specs()} == set(range(7))
    assert all(len(c.seeds) <= (size or 7) for c in chunks)
    assert len({c.id for c in chunks}) == len(chunks)


def change(path: tuple[Any, ...], value: Any) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        data = toy()
        inner: Any = data
        for key in path[:-1]:
            inner = inner[key]
        if value is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        return data

    return make


F1 = ("experiments", "F1")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            change((*F1, "grid", 0, "methods"), ["dise"]),
            "F1: unknown method 'dise': did you mean 'dice'? allowed: dice, grid",
        ),
        (change((*F1, "desk", "grid", 0, "methods"), ["dise"]), "F1: unknown method 'dise'"),
        (change(("claims", "K1", "experiment"), "F9"), "claim K1: unknown experiment 'F9': allowed: F1"),
        (change(("claims", "K1", "tests"), []), "claim K1: give both `experiment` and `tests`, or neither: not run"),
        (change(("claims", "K1", "experiment"), None), "claim K1: give both `experiment` and `tests`, or neither"),
        (change((*F1, "budget"), None), "F1: a grid of trials needs a `budget`"),
        (change((*F1, "sedes"), 3), "experiments.F1: unknown field 'sedes': did you mean 'seeds'?"),
        (change((*F1, "quick", "round"), 3), "experiments.F1.quick: unknown field 'round': did you mean 'rounds'?"),
        (change((*F1, "seeds"), 0), "experiments.F1.seeds: Input should be greater than or equal to 1 (got 0)"),
        (change((*F1, "seeds"), 10_001), "experiments.F1.seeds: Input should be less than or equal to 10000"),
        (change((*F1, "quick", "seeds"), "two"), "experiments.F1.quick.seeds: Input should be a valid integer"),
        (change((*F1, "grid", 0, "problems"), []), "experiments.F1.grid.0.problems: "),
        (change((*F1, "title"), None), "experiments.F1.title: Field required"),
        (change(("methods", "grid", "resources", "gpu"), 9), "methods.grid.resources.gpu: Input should be less than"),
        (
            change(("claims", "K1", "tests", 0, "direction"), "more"),
            "claims.K1.tests.0.direction: Input should be 'less' or",
        ),
        (lambda: [1, 2], "Input should be"),
        (lambda: None, "Input should be"),
    ],
)
def test_mistakes_name_file_and_field(data: Callable[[], Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(data()))
    with pytest.raises(PlumblineError) as caught:
        load_study(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert message in text
    assert "\n" not in text


def test_a_study_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(toy()))
    assert load_study(path) == parse(Study, toy(), "toy")


def test_a_document_of_which_nothing_is_run() -> None:
    study = parse(Study, toy() | {"experiments": {}, "claims": {"K2": toy()["claims"]["K2"]}}, "toy")
    study.check("toy")
    assert (study.claims["K2"].experiment, study.claims["K2"].tests) == (None, ())


def test_files_that_are_not_yaml(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no file .*absent.yaml"):
        read_yaml(tmp_path / "absent.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1\nb: 2\n")
    with pytest.raises(PlumblineError, match=r"bad.yaml is not YAML: .*line 2") as caught:
        read_yaml(tmp_path / "bad.yaml")
    assert "\n" not in str(caught.value)

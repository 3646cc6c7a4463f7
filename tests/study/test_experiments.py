"""Studies as data: presets, grids, claims, and mistakes that are found before anything runs."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.study.claims import Claim
from plumbline.study.experiments import Study, load_study


def toy() -> dict[str, Any]:
    """A study with every kind of experiment."""
    return {
        "study": "toy",
        "title": "A toy",
        "citation": "Nobody.",
        "experiments": {
            "F1": {
                "title": "Figure 1",
                "grid": [
                    {"tasks": ["hole", "branin"], "methods": ["dice", "grid"]},
                    {"tasks": ["forrester"], "methods": ["dice"], "rounds": 9, "seeds": 3},
                ],
                "seeds": 7,
                "quick": {"seeds": 2, "rounds": 3},
                "desk": {
                    "grid": [{"tasks": ["branin"], "methods": ["dice"], "rounds": 5}],
                    "diagnostics": {"holdout": 5},
                },
            },
            "F2": {"title": "Figure 2", "grid": [{"tasks": ["branin"], "methods": ["dice"]}], "paper": None},
            "T1": {"title": "No trials", "quick": {}},
        },
        "claims": {
            "K1": {"source": "p. 1", "statement": "It is so.", "experiments": ["F1"], "primary": [{**TEST}]},
            "K2": {"source": "p. 2", "statement": "It is not tried."},
        },
    }


TEST = {
    "statistic": "value",
    "metric": "regret",
    "of": "mean",
    "task": "branin",
    "method": "dice",
    "direction": "less",
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


def test_what_a_preset_changes(study: Study) -> None:
    f1 = study.experiments["F1"]
    quick, desk = f1.at("quick"), f1.at("desk")
    assert quick is not None
    assert desk is not None
    assert (quick.seeds, [block.rounds for block in quick.grid]) == (2, [3, 3]), "blocks with rounds of their own too"
    assert [block.seeds for block in quick.grid] == [None, None], "and with seeds of their own"
    assert [block.rounds for block in f1.grid] == [None, 9]
    assert [block.seeds for block in f1.grid] == [None, 3]
    assert (desk.seeds, desk.diagnostics.holdout, [block.rounds for block in desk.grid]) == (7, 5, [5])


def test_all_blocks_are_those_of_every_preset(study: Study) -> None:
    grids = study.experiments["F1"].grids()
    assert {name: [block.rounds for block in grid] for name, grid in grids.items()} == {
        "grid": [None, 9],
        "desk.grid": [5],
    }
    assert study.experiments["T1"].grids() == {"grid": ()}


def claim(*tests: dict[str, Any]) -> Claim:
    return parse(Claim, {"source": "s", "statement": "x", "experiments": ["F1"], "primary": tests}, "claim")


def test_tests_that_share_fields_are_written_once() -> None:
    shared = {"statistic": "difference", "metric": "regret", "direction": "less", "published": "so"}
    pairs = [["a", "b"], ["a", "c"]]
    tests = claim({**shared, "tasks": ["t", "u"], "pairs": pairs}, {**shared, "task": "v", "method": "d"}).tests
    assert [(test.task, test.method, test.baseline) for test in tests] == [
        ("t", "a", "b"), ("t", "a", "c"), ("u", "a", "b"), ("u", "a", "c"), ("v", "d", None),
    ]  # fmt: skip
    assert {str(test.published) for test in tests} == {"so"}
    assert tests[0].trials == (("t", "a"), ("t", "b"))


def test_a_baseline_may_be_on_another_task() -> None:
    (test,) = claim({**TEST, "baseline": "grid", "baseline_task": "hole"}).tests
    assert test.trials == (("branin", "dice"), ("hole", "grid"))


def test_a_test_may_be_about_several_tasks_at_once() -> None:
    (test,) = claim({**TEST, "baseline": "grid", "also": ["hole"]}).tests
    assert test.tasks == ("branin", "hole")
    assert test.trials == ((test.task, test.method), (test.task, "grid"), ("hole", test.method), ("hole", "grid"))
    (alone,) = claim({**TEST, "of": "last", "also": ["hole"]}).tests
    assert alone.trials == ((alone.task, alone.method), ("hole", alone.method))
    with pytest.raises(PlumblineError, match="leave `baseline_task` out"):
        claim({**TEST, "baseline": "grid", "baseline_task": "pit", "also": ["hole"]})


def test_a_claim_round_trips() -> None:
    one = claim({**TEST, "baseline": "grid"})
    assert Claim.model_validate_json(one.model_dump_json()) == one
    assert Claim.model_validate(one.model_dump(mode="json")).tests == one.tests


def test_one_primary_test_is_no_list() -> None:
    written = {"source": "s", "statement": "x", "experiments": ["F1"], "primary": TEST}
    assert parse(Claim, written, "claim") == claim(TEST)


def test_the_primary_tests_come_first() -> None:
    written = {
        "source": "s",
        "statement": "x",
        "experiments": ["F1"],
        "secondary": [{**TEST, "of": "last"}],
        "primary": TEST,
    }
    assert [test.of for test in parse(Claim, written, "claim").tests] == ["mean", "last"]


def test_a_verdict_in_words_says_what_holds_or_the_rest() -> None:
    stated = {"source": "p. 1", "statement": "S."}
    assert Claim.model_validate(stated).in_words is None
    both = Claim.model_validate(stated | {"in_words": {"rest": "Two fail.", "holds": "One holds."}}).in_words
    assert both is not None
    assert list(both.said.items()) == [("what holds", "One holds."), ("what does not hold, or is open", "Two fail.")]
    one = Claim.model_validate(stated | {"in_words": {"rest": "All is open."}}).in_words
    assert one is not None
    assert list(one.said) == ["what does not hold, or is open"]
    with pytest.raises(ValueError, match="say in words what `holds`"):
        Claim.model_validate(stated | {"in_words": {}})


def test_what_no_trial_can_decide_says_why() -> None:
    written = {"source": "s", "statement": "x", "experiments": ["F1"], "primary": TEST}
    for beyond, message in (
        ({"verdict": "cannot fail"}, "beyond.because: Field required"),
        (
            {"verdict": "reproduced", "because": "We know."},
            "beyond.verdict: Input should be 'cannot fail' or 'does not",
        ),
    ):
        with pytest.raises(PlumblineError, match=message):
            parse(Claim, {**written, "beyond": beyond}, "claim")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"direction": "within"}, "`range: [low, high]` is for `direction: within`, and that needs one"),
        ({"range": [0.0, 1.0]}, "`range: [low, high]` is for `direction: within`, and that needs one"),
        ({"direction": "within", "range": [math.nan, 1.0]}, "range.0: Input should be a finite number (got nan)"),
        ({"direction": "within", "range": [0.0, math.inf]}, "range.1: Input should be a finite number (got inf)"),
        ({"direction": "within", "range": [1.0, 1.0]}, "the `range` ends where it begins, or before"),
        ({"of": "mean", "after": 0.5}, "`after` is of the `last` value"),
        ({"after": 1.0}, "after: Input should be less than 1 (got 1.0)"),
        ({"of": "first"}, "of: Input should be 'last', 'mean' or 'median' (got 'first')"),
        ({"location": "mode"}, "location: Input should be 'mean' or 'median' (got 'mode')"),
    ],
)
def test_a_measure_is_whole(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        claim({**TEST, **change})
    assert message in str(caught.value)
    assert claim({**TEST, "direction": "within", "range": [0.0, 1.0]}).tests[0].range == (0.0, 1.0)


def test_parts_are_of_one_test_with_the_first() -> None:
    """Of the same claim: a primary test has them all, and is no choice between them."""
    written = {"statistic": "value", "metric": "regret", "direction": "less", "task": "t", "method": "a"}
    other = {**written, "statistic": "ratio", "baseline": "b", "direction": "greater"}
    (primary,) = claim({**written, "parts": [other]}).primary
    assert [test.statistic for test in primary.each()] == ["value", "ratio"]
    assert [test.baseline for test in primary.each()] == [None, "b"]


def test_cases_are_a_test_each() -> None:
    written = {key: value for key, value in TEST.items() if key not in ("task", "method", "baseline")}
    tests = claim({**written, "cases": [["t", "a", "b"], ["u", "c", "d"]]}).tests
    assert [(test.task, test.method, test.baseline) for test in tests] == [("t", "a", "b"), ("u", "c", "d")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": ["t"]}, "primary.0: give `task`, or several `tasks`"),
        ({"task": None}, "primary.0: give `task`, or several `tasks`"),
        ({"pairs": [["a", "b"]]}, "primary.0: give a `method` and maybe its `baseline`, or several `pairs`"),
        ({"method": None}, "primary.0: give a `method` and maybe its `baseline`, or several `pairs`"),
        (
            {"method": None, "pairs": [["a", "b"]], "baseline": "c"},
            "primary.0: give a `method` and maybe its `baseline`",
        ),
        ({"cases": [["t", "a", "b"]]}, "primary.0: `cases` [task, method, baseline] stand alone"),
        ({"metrics": "x"}, "primary.0: unknown field 'metrics': did you mean 'metric'?"),
        ({"direction": "more"}, "primary.0.direction: Input should be 'less', 'greater' or 'within' (got 'more')"),
    ],
)
def test_tests_that_say_too_much_or_too_little(change: dict[str, Any], message: str) -> None:
    written = {key: value for key, value in {**TEST, **change}.items() if value is not None}
    with pytest.raises(PlumblineError) as caught:
        claim(written)
    assert str(caught.value).startswith(f"claim: {message}")
    assert "\n" not in str(caught.value)


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
        (change(("claims", "K1", "experiments"), ["F9"]), "claim K1: unknown experiment 'F9': allowed: F1"),
        (
            change(("claims", "K1", "primary"), []),
            "claim K1: give both `experiments` and `primary`, or neither: not run",
        ),
        (change(("claims", "K1", "experiments"), []), "claim K1: give both `experiments` and `primary`, or neither"),
        (change(("experiments", "a/b"), {"title": "x"}), "an experiment's name is letters, digits and . _ -"),
        (change(("experiments", "a" * 121), {"title": "x"}), "so that it can name a file, 120 at most"),
        (change((*F1, "sedes"), 3), "experiments.F1: unknown field 'sedes': did you mean 'seeds'?"),
        (change((*F1, "quick", "round"), 3), "experiments.F1.quick: unknown field 'round': did you mean 'rounds'?"),
        (change((*F1, "seeds"), 0), "experiments.F1.seeds: Input should be greater than or equal to 1 (got 0)"),
        (change((*F1, "seeds"), 10_001), "experiments.F1.seeds: Input should be less than or equal to 10000"),
        (change((*F1, "quick", "seeds"), "two"), "experiments.F1.quick.seeds: Input should be a valid integer"),
        (change((*F1, "grid", 0, "tasks"), []), "experiments.F1.grid.0.tasks: "),
        (change((*F1, "grid", 0, "methods"), []), "experiments.F1.grid.0.methods: "),
        (
            change((*F1, "grid", 0, "methods"), ["dice", "grid", "dice"]),
            "experiments.F1.grid.0.methods: 'dice' is there twice, as items 1 and 3 of the list",
        ),
        (change((*F1, "grid", 0, "tasks"), ["hole", "hole"]), "grid.0.tasks: 'hole' is there twice"),
        (change((*F1, "quick", "grid"), []), "experiments.F1.quick.grid: "),
        (change((*F1, "seeds"), []), "experiments.F1.seeds: Input should be a valid integer"),
        (change((*F1, "seeds"), True), "experiments.F1.seeds: a number is wanted (got True)"),
        (change((*F1, "quick", "rounds"), True), "experiments.F1.quick.rounds: a number is wanted (got True)"),
        (change((*F1, "title"), True), "experiments.F1.title: Input should be a valid string (got True)"),
        (
            change((*F1, "diagnostics"), {"snapshots": {"rounds": []}}),
            "experiments.F1.diagnostics.snapshots.rounds: at least 1 wanted, 0 given",
        ),
        (
            change((*F1, "diagnostics"), {"alphas": [0.1, 0.2, 0.1]}),
            "experiments.F1.diagnostics.alphas: 0.1 is there twice, as items 1 and 3",
        ),
        (change(("claims", "K1", "experiments"), ["F1", "F1"]), "claims.K1.experiments: 'F1' is there twice"),
        (
            change(("claims", "K1", "primary", 0, "threshold"), math.nan),
            "primary.0.threshold: Input should be",
        ),
        (
            change(("claims", "K1", "primary", 0, "threshold"), math.inf),
            "primary.0.threshold: Input should be",
        ),
        (change(("claims", "K1", "primary", 0, "threshold"), True), "primary.0.threshold: a number is wanted"),
        (change(("claims", "K1", "primary", 0, "also"), ["branin"]), "`also` has 'branin', a task itself"),
        (change(("study",), "other"), "study: it has the name of its file, 'toy' (got 'other')"),
        (change((*F1, "grid", 0, "problems"), []), "experiments.F1.grid.0: unknown field 'problems'"),
        (change((*F1, "title"), None), "experiments.F1.title: Field required"),
        (
            change(("claims", "K1", "primary", 0, "direction"), "more"),
            "claims.K1.primary.0.direction: Input should be 'less', 'greater' or",
        ),
        (lambda: [1, 2], "a mapping is wanted"),
        (lambda: None, "a mapping is wanted"),
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
    assert (study.claims["K2"].experiments, study.claims["K2"].tests) == ((), ())


class TestSizes:
    @pytest.mark.parametrize(
        ("changes", "least"),
        [
            ({"published": "a lot"}, None),
            ({"published": {"words": "half", "ratio": 0.5}}, ("ratio", 0.5)),
            ({"published": {"ratio": 0.5, "error": 0.1}}, ("ratio", 0.6)),
            ({"published": {"value": -2.0, "error": 0.5}}, ("value", -1.5)),
            ({"direction": "greater", "published": {"value": 2.0, "error": 0.5}}, ("value", 1.5)),
            ({"direction": "greater", "published": {"ratio": 1.2, "error": 0.05}}, ("ratio", 1.15)),
        ],
    )
    def test_a_published_size_is_as_weak_as_it_may_be(
        self, changes: dict[str, Any], least: tuple[str, float] | None
    ) -> None:
        (test,) = claim({**TEST, "statistic": "difference", "baseline": "grid", "threshold": 0.0, **changes}).tests
        size = test.published_size
        assert (size is None) == (least is None)
        if size is not None and least is not None:
            assert getattr(size, least[0]) == pytest.approx(least[1])

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"published": {"ratio": 0.9, "error": 0.2}}, "give its `words` alone"),
            ({"published": {"value": -1.0, "error": 1.0}}, "give its `words` alone"),
            ({"matters": {"ratio": 1.1}}, "give its `words` alone"),
            ({"matters": {}}, "give a `value` or a `ratio`"),
            ({"matters": {"value": -1.0, "ratio": 0.5}}, "not both"),
            ({"direction": "within", "range": [0, 1], "matters": {"value": 0.5}}, "a range has none"),
            ({"published": {"ratio": -0.5}}, "greater than 0"),
            ({"published": {"word": "half"}}, "unknown field 'word'"),
        ],
    )
    def test_one_that_says_nothing_is_one_line(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(PlumblineError, match=message) as error:
            claim({**TEST, "statistic": "difference", "baseline": "grid", "threshold": 0.0, **changes})
        assert "\n" not in str(error.value)

    def test_its_words_name_the_place(self) -> None:
        (test,) = claim({**TEST, "published": {"words": "half", "source": "table 2"}}).tests
        assert str(test.published) == "half (table 2)"
        assert str(claim(TEST).tests[0].published) == ""


def test_a_claim_rests_on_fresh_experiments_once_all_are_there() -> None:
    one = claim(TEST).model_copy(update={"fresh": ("N1", "N2")})
    assert one.rests_on(["F1", "N1"]) == ("F1",)
    assert one.rests_on(["F1", "N1", "N2"]) == ("N1", "N2")
    assert claim(TEST).rests_on([]) == ("F1",)

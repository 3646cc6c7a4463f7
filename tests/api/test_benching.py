"""A method of one's own beside the atlas: what a target is, what is run, and what it is compared with."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_edition import TASK, TASKS, shift_starts, small_grid

import plumbline as pb
from plumbline.api import benching
from plumbline.api.benching import Compared, changed_versions, tasks_named
from plumbline.api.editions import AtlasGrid
from plumbline.core.errors import PlumblineError


@pytest.fixture
def bench(small_atlas: Path, atlas_grid: AtlasGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return `pb.bench` beside the small edition, in this process."""
    monkeypatch.setattr(benching, "AtlasGrid", lambda _: small_grid(atlas_grid))
    usual = {"against": ["random"], "cores": 1, "folder": small_atlas, "store": tmp_path / "store", "data": tmp_path}
    return lambda target, **settings: pb.bench(target, **{**usual, **settings})


@pytest.mark.slow
def test_seeds_pair_with_those_of_the_reference(bench: Any) -> None:
    """The method of the atlas itself, run again, differs in nothing."""
    found = bench("random")
    assert found["task"].tolist() == ["all tasks", TASK, "common-branin-0.0"]
    assert found["pairs"].tolist() == [2, 2, 2]
    assert (found["difference"] == 0).all()
    assert found.attrs["notes"] == []


@pytest.mark.slow
def test_a_class_by_its_path_stands_among_those_of_the_reference(bench: Any) -> None:
    found = bench("ask_tell_cases:Steps", table="standing")
    assert sorted(found["method"]) == ["Steps", "random", "sobol"]
    assert found["rank"].tolist() == sorted(found["rank"])
    own = bench("ask_tell_cases:Steps", table="trials")
    assert own[["task", "seed"]].to_numpy().tolist() == [[task, seed] for task in sorted(TASKS) for seed in (0, 1)]
    assert (own["error"] == "").all()
    mine = found.set_index("method").loc["Steps", "score"]
    assert mine == pytest.approx(own.groupby("task")["score"].mean().mean())


def test_more_seeds_than_on_file_are_run_and_unpaired(bench: Any) -> None:
    found = bench("ask_tell_cases:Steps", tasks=[TASK], seeds=3)
    assert found.set_index("task").loc[TASK, "pairs"] == 2
    assert found.attrs["notes"] == ["seeds 2 to 2: run, unpaired: the atlas has none of random"]


@pytest.mark.slow
def test_a_task_that_starts_elsewhere_is_not_compared(small_atlas: Path, bench: Any, tmp_path: Path) -> None:
    """As one does with another trained model: its seeds have no pairs."""
    edition = tmp_path / "edition"
    shutil.copytree(small_atlas, edition)
    shift_starts(edition, "common-branin-0.0")
    found = bench("random", folder=edition)
    assert set(found["task"]) == {"all tasks", TASK}
    (note,) = found.attrs["notes"]
    assert re.fullmatch(
        r"common-branin-0\.0: not compared: the best value of seed 0's initial design is \S+ here and \S+ in the "
        "atlas: data, a model or a library differ",
        note,
    )
    with pytest.raises(PlumblineError, match="not compared"):
        bench("random", folder=edition, tasks="common-branin-0.0")


@pytest.mark.slow
def test_a_failure_is_a_row_with_file_and_line_and_the_rest_goes_on(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
class Tired:
    def __init__(self, bounds):
        self.middle = bounds.mean(axis=0)
    def tell(self, x, y):
        pass
    def ask(self):
        if len(self.middle) == 2:
            raise ValueError("no more")
        return self.middle
"""
    (tmp_path / "tired_case.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    own = bench("tired_case:Tired", table="trials").set_index(["task", "seed"])
    assert own.loc[TASK, "score"].notna().all()
    assert own.loc["common-branin-0.0", "score"].isna().all()
    error = own.loc[("common-branin-0.0", 0), "error"]
    assert "ValueError: no more" in error
    assert f"{tmp_path / 'tired_case.py'}, line 9" in error
    found = bench("tired_case:Tired")
    assert set(found["task"]) == {"all tasks", TASK}
    assert found.attrs["notes"][0].startswith("common-branin-0.0: 2 of 2 trials failed: ValueError: no more")
    with pytest.raises(PlumblineError, match="2 of 2 trials failed: ValueError: no more"):
        bench("tired_case:Tired", tasks="common-branin-0.0")
    assert bench("tired_case:Tired", tasks="common-branin-0.0", table="trials")["score"].isna().all()


@pytest.mark.slow
def test_a_call_that_does_not_return_fails_its_trial_at_its_line(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
class Stuck:
    def __init__(self, bounds):
        self.middle = bounds.mean(axis=0)
    def tell(self, x, y):
        pass
    def ask(self):
        while len(self.middle) == 2:
            pass
        return self.middle
"""
    (tmp_path / "stuck_case.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    own = bench("stuck_case:Stuck", table="trials", timeout=1).set_index(["task", "seed"])
    assert own.loc[TASK, "score"].notna().all()
    for seed in (0, 1):
        error = own.loc[("common-branin-0.0", seed), "error"]
        assert error.startswith("TimeoutError: no answer within 1 s")
        assert re.search(rf"{re.escape(str(tmp_path / 'stuck_case.py'))}, line (8|9)\b", error)


def test_a_point_out_of_bounds_names_the_class(bench: Any) -> None:
    with pytest.raises(PlumblineError, match=r"must lie in its bounds.*ask_tell_cases\.py, line \d+\)"):
        bench("ask_tell_cases:Odd", tasks=TASK, options={"arguments": {"answer": [7.0]}})


def test_a_task_that_it_cannot_run_on_is_left_out(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = benching.domain_of
    monkeypatch.setattr(benching, "domain_of", lambda spec, data: _no_data() if spec.task == TASK else ours(spec, data))
    found = bench("random")
    assert found.attrs["notes"] == [f"{TASK}: left out: no data"]
    assert TASK not in set(found["task"])


def test_a_task_that_the_workspace_does_not_plan_is_left_out(
    bench: Any, atlas_grid: AtlasGrid, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of an older `plumbline init` does not plan tasks that came later."""
    older = small_grid(atlas_grid)
    specs = {task: spec for task, spec in older.specs().items() if task != TASK}
    older.specs = lambda: specs
    monkeypatch.setattr(benching, "AtlasGrid", lambda _: older)
    found = bench("random")
    assert found.attrs["notes"] == [f"{TASK}: left out: not in the study atlas of {root}"]
    with pytest.raises(PlumblineError, match="no task that it can run on: not in the study atlas of"):
        bench("random", tasks=TASK)


@pytest.mark.parametrize(
    ("failures", "refusals", "reason"),
    [(["a: failed"], ["b: refused"], "a: failed"), ([], ["b: refused"], "b: refused"), ([], [], "no score")],
)
def test_without_a_score_the_first_reason_is_said(failures: list[str], refusals: list[str], reason: str) -> None:
    frames = [pd.DataFrame()] * 3
    with pytest.raises(PlumblineError, match=reason):
        Compared(*frames, [], failures, refusals).require_scores()


def _no_data() -> None:
    raise PlumblineError("no data")


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        ("nothing_here:Class", {}, "there is no module 'nothing_here' on Python's path"),
        ("ask_tell_cases:Stepps", {}, "module 'ask_tell_cases' has no 'Stepps'"),
        ("collections:OrderedDict", {}, "is neither an acquisition function of BoTorch .* nor an optimiser"),
        (
            "plumbline.methods.baselines:RandomSearch",
            {},
            "is a method of plumbline: give the name",
        ),
        ("atlas-logie", {}, "unknown target 'atlas-logie': did you mean 'atlas-logei'"),
        ("atlas-ehvi", {}, "no task that it can run on: for several objectives; this problem has one objective"),
        ("ask_tell_cases:Odd", {}, r"needs an argument 'answer', .* \(.*ask_tell_cases\.py, line \d+\)"),
        ("random", {"options": {"speed": 1}}, "method 'random': unknown field 'speed'"),
        ("random", {"tasks": "noisy"}, "unknown task or track of the atlas 'noisy'"),
        ("random", {"against": ["sobl"]}, "unknown method 'sobl': did you mean 'sobol'"),
        ("random", {"against": ["ei"]}, "the atlas has no ei on these tasks, but random, sobol"),
        ("random", {"against": []}, "the atlas has none of atlas-logei, atlas-ucb, botorch-loop on these tasks"),
        ("random", {"seeds": 0}, "no seeds"),
        ("random", {"seeds": [3, 4]}, r"seeds: a whole number or None is wanted \(got \[3, 4\]\)"),
        ("random", {"cores": 0}, r"cores: one or more \(got 0\)"),
        ("random", {"timeout": 0}, r"timeout: seconds above 0, at most 1e\+09, or inf for no limit \(got 0\)"),
        ("random", {"table": "means"}, "unknown table 'means'"),
    ],
)
def test_mistakes_are_one_line(bench: Any, target: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as found:
        bench(target, **settings)
    assert "\n" not in str(found.value)


def test_another_edition_is_refused_by_name(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "edition.json").write_text('{"edition": "1999.1"}')
    with pytest.raises(PlumblineError, match=r"is the atlas 1999\.1"):
        bench("random", folder=tmp_path)


def test_tasks_go_by_their_names_or_their_tracks() -> None:
    tasks = pd.DataFrame({"task": ["a", "b", "c"], "track": ["x", "y", "x"]})
    assert tasks_named([], tasks) == ["a", "b", "c"]
    assert tasks_named(["x"], tasks) == ["a", "c"]
    assert tasks_named(["b", "a"], tasks) == ["a", "b"]


def test_libraries_of_other_versions_than_on_file_are_said() -> None:
    installed = benching.installed_version("numpy")
    libraries = [f"numpy {installed}", "numpy 0.1; no-such-library 2.0", np.nan]
    cells = pd.DataFrame({"method": ["same", "other", "none"], "libraries": libraries})
    assert changed_versions(cells) == [
        f"other was run with no-such-library 2.0 (installed: none), numpy 0.1 (installed: {installed})"
    ]

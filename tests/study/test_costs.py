"""What a run will cost."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core import places
from plumbline.core.options import parse
from plumbline.methods.baselines import RandomSearch
from plumbline.store.spec import TrialSpec
from plumbline.study import costs as module
from plumbline.study.costs import REFERENCE_COSTS, Costs, estimates, measured_costs, trainings
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import parse_methods_and_tasks
from plumbline.study.plan import Plan, load_plan
from plumbline.study.settings import Config
from plumbline.trials import run_trial


def plan_of(experiments: dict[str, dict[str, object]]) -> Plan:
    """A plan of cheap methods on two tasks."""
    budget = {"initial": {"design": "uniform", "size": 2}, "rounds": 36}
    study = {"study": "toy", "title": "A toy", "citation": "Nobody.", "experiments": experiments}
    methods = {"dice": {"name": "random"}, "gpu": {"name": "sobol", "resources": {"gpu": 1}}}
    tasks = {name: {"problem": name, **budget} for name in ("branin", "forrester")}
    return Plan(Config(studies=("toy",)), {"toy": parse(Study, study, "toy")}, parse_methods_and_tasks(methods, tasks))


@pytest.fixture
def plan() -> Plan:
    grid = [{"tasks": ["branin", "forrester"], "methods": ["dice", "gpu"]}]
    return plan_of(
        {
            "F1": {"title": "One", "grid": grid, "seeds": 5, "quick": {}},
            "T1": {"title": "No trials", "quick": {}},
            "F9": {"title": "Not in quick", "grid": grid},
        }
    )


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away from the reference costs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "shipped", lambda: tmp_path)


def test_costs_are_medians(cheap_spec: Callable[..., TrialSpec]) -> None:
    costs = Costs.of([("branin", "ei", 1.0), ("branin", "ei", 9.0), ("branin", "ei", 2.0), ("levy-2", "ei", 100.0)])
    assert costs.round_seconds(cheap_spec("branin", "ei")) == 2.0
    assert costs.round_seconds(cheap_spec("levy-2", "ei")) == 100.0
    assert costs.round_seconds(cheap_spec("forrester", "ei")) == 5.5, "the method's median where the task is new"
    assert costs.round_seconds(cheap_spec("branin", "ucb")) is None


def test_a_method_is_as_slow_on_a_task_as_others_are(cheap_spec: Callable[..., TrialSpec]) -> None:
    small = [("branin", "ei", 1.0), ("forrester", "ei", 1.0), ("branin", "ucb", 2.0), ("forrester", "ucb", 2.0)]
    large = [("levy-5", "ei", 30.0), ("levy-5", "ucb", 20.0), ("levy-5", "kg", 1e6)]
    costs = Costs.of([*small, *large, ("branin", "random", 0.1), ("forrester", "random", 0.3)])
    assert costs.slowness["levy-5"] == (30 + 10) / 2, "nothing is to be learned from a method that was nowhere else"
    assert costs.round_seconds(cheap_spec("levy-5", "random")) == pytest.approx(20 * 0.2)
    assert costs.round_seconds(cheap_spec("levy-5", "ei")) == 30.0, "what was measured"
    assert costs.round_seconds(cheap_spec("levy-2", "random")) == pytest.approx(0.2), "of a new task nothing is known"


def test_a_costly_task_is_costed_by_itself_alone(cheap_spec: Callable[..., TrialSpec]) -> None:
    """A network trained at each evaluation, beside functions that take no time."""
    measured = [("branin", "ei", 1.0), ("levy-2", "ei", 3.0), ("network", "ei", 600.0), ("network", "ucb", 500.0)]
    costs = Costs.of(measured, costly={"network", "levy-5"})
    assert costs.round_seconds(cheap_spec("network", "ei")) == 600.0
    assert costs.round_seconds(cheap_spec("levy-5", "ei")) is None
    assert costs.round_seconds(cheap_spec("forrester", "ei")) == 2.0
    assert costs.round_seconds(cheap_spec("forrester", "ucb")) is None


def test_networks_are_unmeasured_until_one_was_trained(root: Path, tmp_path: Path) -> None:
    """Of all images none was, and small ones say nothing of them."""

    def seconds(preset: str) -> list[float | None]:
        chosen = Config(preset=preset, data="real", studies=("calibrated",), experiments=("CAL-F4-cifar10",))
        plan = load_plan(chosen, root)
        costly = {name for name, task in plan.library.tasks.items() if task.costly}
        costs = measured_costs(tmp_path, root / REFERENCE_COSTS, costly)
        return [costs.round_seconds(spec) for spec in plan.resolve("CAL-F4-cifar10").specs]

    assert seconds("paper") == [None] * 4
    assert all(0.5 < second < 30 for second in seconds("desk"))


def test_models_to_be_trained_have_a_row(root: Path, tmp_path: Path) -> None:
    chosen = Config(preset="desk", data="real", studies=("calibrated",), experiments=("CAL-F4-lda", "CAL-F4-cifar10"))
    plan = load_plan(chosen, root)
    grid, images = trainings(plan.run, tmp_path)
    assert (grid.name, grid.trials, grid.cpu_hours, grid.unknown) == ("online-lda", 0, 2.5, 0)
    assert (images.name, images.cpu_hours, images.unknown) == ("cifar-10-subset", 0.0, 1)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "online-lda.npz").touch()
    assert [one.name for one in trainings(plan.run, tmp_path)] == ["cifar-10-subset"]


def test_nothing_measured(plan: Plan, tmp_path: Path) -> None:
    one, none, every = estimates(plan.run, tmp_path / "store", tmp_path)
    assert (one.name, one.trials, one.done, one.unknown) == ("F1", 20, 0, 20)
    assert (one.cpu_hours, one.gpu_hours) == (0.0, 0.0)
    assert (none.name, none.trials, none.done, none.unknown) == ("T1", 0, 0, 0)
    assert (every.name, every.trials, every.done, every.unknown) == ("all", 20, 0, 20)


@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from(["branin", "forrester"]), min_size=1),
            st.sets(st.sampled_from(["dice", "gpu"]), min_size=1),
            st.integers(1, 12),
        ),
        max_size=4,
    )
)
def test_trials_that_experiments_share_are_counted_once_in_all(grids: list[tuple[set[str], set[str], int]]) -> None:
    named = {
        f"F{i}": {
            "title": "One",
            "grid": [{"tasks": sorted(tasks), "methods": sorted(methods)}],
            "seeds": n,
            "quick": {},
        }
        for i, (tasks, methods, n) in enumerate(grids)
    }
    *own, every = estimates(plan_of(named).run, Path("nowhere"), Path("nowhere"))
    trials = [set(product(tasks, methods, range(n))) for tasks, methods, n in grids]
    assert [one.trials for one in own] == [len(one) for one in trials]
    assert every.trials == every.unknown == len(set().union(*trials))


def test_done_is_not_counted(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [spec for chunk in plan.resolve("F1").chunks for spec in chunk.specs()]
    for spec in specs[:2]:
        run_trial(spec, tmp_path / "store", tmp_path)
    assert specs[0].method.label == "dice"
    monkeypatch.setattr(
        module, "measured_costs", lambda store, costly: Costs({("branin", "dice"): 100.0, ("", "gpu"): 50.0})
    )
    one, _, every = estimates(plan.run, tmp_path / "store", tmp_path)
    assert (one.trials, one.done, one.unknown) == (20, 2, 5)
    assert one.cpu_hours == pytest.approx(3 * 36 * 100 / 3600)
    assert one.gpu_hours == pytest.approx(10 * 36 * 50 / 3600)
    assert every == replace(one, name=every.name, title=every.title)


def test_seconds_come_from_earlier_trials(cheap_spec: Callable[..., TrialSpec], tmp_path: Path) -> None:
    store = tmp_path / "store"
    folder = run_trial(cheap_spec(rounds=4), store, tmp_path)
    run_trial(cheap_spec("forrester", rounds=0), store, tmp_path)
    costs = measured_costs(store)
    assert costs.seconds.keys() == {("branin", "random"), ("", "random")}
    assert costs.round_seconds(cheap_spec()) == pytest.approx(folder.provenance()["wall_seconds"] / 4)


def test_the_reference_fills_what_the_store_lacks(cheap_spec: Callable[..., TrialSpec], tmp_path: Path) -> None:
    store, reference = tmp_path / "store", tmp_path / "costs.csv"
    run_trial(cheap_spec(rounds=1), store, tmp_path)
    rows = [("branin", "random", 1000.0), ("branin", "ei", 3.0)]
    pd.DataFrame(rows, columns=["task", "method", "seconds_a_round"]).to_csv(reference, index=False)
    costs = measured_costs(store, reference)
    assert costs.round_seconds(cheap_spec(method="ei")) == 3.0
    measured = costs.round_seconds(cheap_spec())
    assert measured is not None
    assert measured < 100, "what was measured here wins"


def edition(folder: Path, cells: str) -> Path:
    """An edition of the atlas with two tasks, of four and of five rounds."""
    folder.mkdir()
    (folder / "tasks.csv").write_text("task,track,rounds\nbranin,clean,4\nforrester,clean,5\n")
    (folder / "cells.csv").write_text(f"task,method,empty,seconds\n{cells}")
    return folder


def test_the_atlas_fills_what_the_reference_lacks(cheap_spec: Callable[..., TrialSpec], tmp_path: Path) -> None:
    atlas = edition(tmp_path / "atlas", "branin,random,,2.0\nbranin,ei,,8\nforrester,ucb,,10\nforrester,ei,no model,\n")
    reference = tmp_path / "costs.csv"
    reference.write_text("task,method,seconds_a_round\nbranin,ei,3.0\n")
    costs = measured_costs(tmp_path / "store", reference, atlas=atlas)
    assert costs.seconds == {
        ("branin", "random"): 0.5,
        ("", "random"): 0.5,
        ("branin", "ei"): 3.0,
        ("", "ei"): 3.0,
        ("forrester", "ucb"): 2.0,
        ("", "ucb"): 2.0,
    }, "seconds a round; an empty cell has none; what was kept of an experiment wins"
    run_trial(cheap_spec(rounds=1), tmp_path / "store", tmp_path)
    assert measured_costs(tmp_path / "store", reference, atlas=atlas).seconds["branin", "random"] != 0.5


@pytest.mark.parametrize("damaged", ["cells.csv", "tasks.csv"])
def test_costs_of_a_damaged_atlas_are_left_out(tmp_path: Path, damaged: str) -> None:
    atlas = edition(tmp_path / "atlas", "branin,random,,2.0\n")
    reference = tmp_path / "costs.csv"
    reference.write_text("task,method,seconds_a_round\nbranin,ei,3.0\n")
    (atlas / damaged).write_text("task\n")
    with pytest.warns(UserWarning, match=rf"{damaged} .*; its times are left out") as caught:
        costs = measured_costs(tmp_path / "store", reference, atlas=atlas)
    assert len(caught) == 1
    assert costs.seconds == {("branin", "ei"): 3.0, ("", "ei"): 3.0}, "the other table is read"


@pytest.mark.parametrize(
    "content", [b"", b'{"spec": {', b"{}", b"[]", b"\xff", b'{"spec": {"old": 1}, "wall_seconds": 1}', None]
)
def test_a_trial_whose_provenance_is_damaged_is_left_out(
    cheap_spec: Callable[..., TrialSpec], tmp_path: Path, content: bytes | None
) -> None:
    whole = run_trial(cheap_spec(rounds=2), tmp_path / "store", tmp_path)
    other = run_trial(cheap_spec("forrester", rounds=2), tmp_path / "store", tmp_path)
    text = (
        other.provenance_path.read_text().replace('"wall_seconds": ', '"wall_seconds": -1') if content is None else ""
    )
    other.provenance_path.write_bytes(text.encode() if content is None else content)
    with pytest.warns(UserWarning, match=rf"{other.key}/provenance\.json.*; its time is left out") as caught:
        costs = measured_costs(tmp_path / "store")
    assert "\n" not in str(caught[0].message)
    assert len(caught) == 1
    assert set(costs.seconds) == {("branin", "random"), ("", "random")}
    assert whole.provenance()["status"] == "ok"


@pytest.mark.parametrize("text", ["", "task,method\n", "task,method,seconds_a_round\nbranin,random,0.", "a\nb,c\n"])
def test_reference_costs_that_are_damaged_are_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "costs.csv").write_text(text)
    with pytest.warns(UserWarning, match=r"costs\.csv .*; its times are left out"):
        assert measured_costs(tmp_path, tmp_path / "costs.csv").seconds == {}


def test_a_trial_that_failed_is_done_and_is_said_to_have_failed(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its error.json was lost."""

    def fail(self: RandomSearch, *arguments: object) -> None:
        raise ValueError("no luck")

    one, other, *_ = (
        spec for chunk in plan.resolve("F1").chunks for spec in chunk.specs() if spec.method.label == "dice"
    )
    run_trial(one, tmp_path / "store", tmp_path)
    monkeypatch.setattr(RandomSearch, "ask", fail)
    folder = run_trial(other, tmp_path / "store", tmp_path)
    folder.error_path.unlink()
    rows = {row.name: row for row in estimates(plan.run, tmp_path / "store", tmp_path)}
    assert [(rows[name].done, rows[name].failed) for name in ("F1", "T1", "all")] == [(2, 1), (0, 0), (2, 1)]
    folder.forget()
    rows = {row.name: row for row in estimates(plan.run, tmp_path / "store", tmp_path)}
    assert (rows["F1"].done, rows["F1"].failed) == (1, 0)


def test_the_time_of_a_trial_that_failed_is_no_cost(
    cheap_spec: Callable[..., TrialSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its error.json was lost."""

    def fail(self: RandomSearch, *arguments: object) -> None:
        raise ValueError("no luck")

    monkeypatch.setattr(RandomSearch, "ask", fail)
    folder = run_trial(cheap_spec(rounds=2), tmp_path / "store", tmp_path)
    folder.error_path.unlink()
    assert folder.failed
    assert measured_costs(tmp_path / "store").seconds == {}


def test_a_trial_whose_records_are_damaged_is_not_done(plan: Plan, tmp_path: Path) -> None:
    chunk = plan.run.experiments["F1"].chunks[0]
    folder = run_trial(chunk.specs()[0], tmp_path / "store", tmp_path)
    done = next(one.done for one in estimates(plan.run, tmp_path / "store", tmp_path) if one.name == "F1")
    assert done == 1
    folder.records_path.write_bytes(folder.records_path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"records\.parquet is damaged .*: its trial will run again"):
        found = estimates(plan.run, tmp_path / "store", tmp_path)
    assert [one.done for one in found if one.name == "F1"] == [0]
    folder.sums_path.unlink()
    with pytest.warns(UserWarning, match=r"records\.parquet is damaged .*: its trial will run again"):
        assert estimates(plan.run, tmp_path / "store", tmp_path)[0].done == 0

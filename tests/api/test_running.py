"""Trials as tables: what is run, and what each row says."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from botorch.test_functions import Branin
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits
from torch import Tensor

import plumbline as pb
from plumbline.api import running
from plumbline.api.repository import find_repository
from plumbline.api.running import TrialRequest, entries_and_stand_ins, seed_numbers
from plumbline.core.errors import PlumblineError
from plumbline.core.inputs import INPUT, declared
from plumbline.problems.build import problem_of
from plumbline.registry.catalogue import catalogue
from plumbline.registry.references import ProblemRef
from plumbline.store.spec import TrialSpec
from plumbline.study.experiments import MAX_SEEDS
from plumbline.study.methods_and_tasks import MethodsAndTasks

PLACE = ["method", "task", "seed", "iteration", "evaluation"]


@pytest.fixture(scope="module")
def entries() -> MethodsAndTasks:
    return entries_and_stand_ins(find_repository(), real=True)[0]


def asked(entries: MethodsAndTasks, **what: Any) -> TrialSpec:
    return TrialRequest(**what).spec(entries, {}, 0)


@pytest.mark.slow
def test_a_row_a_seed_and_evaluation(tmp_path: Path) -> None:
    found = pb.run(
        "random", "ackley-2", seeds=[3, 5], rounds=2, initial=4, q=2, store=tmp_path / "store", data=tmp_path
    )
    assert list(found) == [*PLACE, "x1", "x2", "y", "best_y", "regret", "pit", "seconds"]
    assert set(found["method"]) == {"random"}
    assert set(found["task"]) == {"ackley-2"}
    for _, rows in found.groupby("seed"):
        assert rows["iteration"].tolist() == [0] * 4 + [1, 1, 2, 2]
        assert rows["evaluation"].tolist() == list(range(8))
        np.testing.assert_array_equal(rows["best_y"], np.maximum.accumulate(rows["y"]))
    assert found["seed"].unique().tolist() == [3, 5]
    again = pb.run("random", "ackley-2", seeds=[3], rounds=2, initial=4, q=2, store=tmp_path / "store", data=tmp_path)
    assert again.equals(found[found["seed"] == 3]), "what is in the store is not run again"


@pytest.mark.slow
def test_constraints_and_objectives(tmp_path: Path) -> None:
    places = {"store": tmp_path / "store", "data": tmp_path}
    constrained = pb.run(method_class="random", problem="constrained-gramacy", rounds=1, **places)  # type: ignore[arg-type]
    assert list(constrained)[7:] == ["y1", "y2", "y3", "violation", "best_f", "pit", "seconds"]
    two = pb.run(method_class="random", problem="branin-currin", rounds=1, **places)  # type: ignore[arg-type]
    assert list(two)[7:] == ["y1", "y2", "hypervolume", "pit", "seconds"]
    assert len(two) == 6


def test_an_entry_is_that_of_the_study(entries: MethodsAndTasks) -> None:
    spec = asked(entries, method="ei", task="ackley-2")
    assert spec.method == entries.methods["ei"].ref
    assert spec.problem == entries.tasks["ackley-2"].problem
    assert spec.budget == entries.tasks["ackley-2"].budget
    assert spec.task == "ackley-2"


def test_options_are_laid_over_those_of_an_entry(entries: MethodsAndTasks) -> None:
    base = entries.methods["ei"].ref.options
    spec = asked(entries, method="ei", task="ackley-2", options={"model": {"ard": False}}, q=3, design="sobol")
    assert spec.method.options == {**base, "model": {**base["model"], "ard": False}}
    assert (spec.budget.q, spec.budget.rounds) == (3, entries.tasks["ackley-2"].budget.rounds)
    assert spec.budget.initial.design == "sobol"


@given(data=st.data(), real=st.booleans(), by_entry=st.booleans())
@settings(max_examples=50)
def test_stand_ins_take_the_place_of_what_no_option_names(data: st.DataObject, real: bool, by_entry: bool) -> None:
    entries, stand_ins = entries_and_stand_ins(find_repository(), real)
    where = ["lasso-dna", "online-lda"] if not by_entry else ["lasso-dna", "lda", "atlas-qed"]
    name = data.draw(st.sampled_from(where))
    problem = entries.tasks[name].problem if by_entry else ProblemRef(name=name)
    ((option, usual),) = (
        (one.place[0], one.value)
        for one in declared(catalogue().find("problem", problem.name).options, problem.options)
        if one.mark == INPUT
    )
    named = data.draw(st.sampled_from([{}, {option: usual}, {option: "mine"}]))
    one = {"task": name} if by_entry else {"problem": name}
    spec = TrialRequest(method="random", problem_options=named, **one).spec(entries, stand_ins, 0)
    wanted = named.get(option, usual if real else stand_ins[usual])
    assert real or stand_ins[usual] != usual
    assert spec.problem.options.get(option, usual) == wanted


def test_options_of_another_design_are_not_kept(entries: MethodsAndTasks) -> None:
    assert entries.tasks["forrester-trap"].budget.initial.options
    assert asked(entries, method="ei", task="forrester-trap").budget == entries.tasks["forrester-trap"].budget
    assert asked(entries, method="ei", task="forrester-trap", design="uniform").budget.initial.options == {}


def test_a_class_on_a_problem_has_nothing_of_any_entry(entries: MethodsAndTasks) -> None:
    spec = asked(entries, method_class="ei", problem="ackley-2")
    assert (spec.method.name, spec.method.options, spec.task) == ("ei", {}, "ackley-2")
    assert (spec.budget.initial.size, spec.budget.rounds, spec.budget.q) == (5, 10, 1)
    assert asked(MethodsAndTasks(), method_class="ei", problem="ackley-2") == spec, "nor needs a repository"


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (
            {"method": "logei", "task": "ackley-2"},
            "'logei' is a registered class, .*--class logei .in Python, method_class=.logei",
        ),
        (
            {"method": "ei", "task": "branin"},
            "'branin' is a registered class, .*--problem branin .in Python, problem=.branin",
        ),
        ({"method_class": "ei-ml", "problem": "branin"}, "'ei-ml' is an entry of .*: --method ei-ml"),
        ({"method": "ei", "problem": "forrester-trap"}, "'forrester-trap' is an entry of .*: --task forrester-trap"),
        ({"method": "eii", "task": "ackley-2"}, "unknown method 'eii': did you mean 'ei'"),
        ({"method": "ei", "task": "akley-2"}, "unknown task 'akley-2': did you mean 'ackley-2'"),
        ({"task": "ackley-2"}, "either a method .* or a class"),
        ({"method": "ei", "method_class": "ei", "task": "ackley-2"}, "either a method .* or a class"),
        ({"method": "ei"}, "either a task .* or a problem"),
        ({"method": "ei", "task": "ackley-2", "options": {"jiter": 1}}, "unknown field 'jiter'"),
        ({"method": "ei", "task": "ackley-2", "rounds": -1}, "trial: rounds: Input should be greater"),
        ({"method": "ei", "task": "ackley-2", "options": "jitter"}, "options are a mapping of names"),
        ({"method": "ei", "task": "ackley-2", "problem_options": [("a", 1)]}, "options are a mapping of names"),
    ],
)
def test_mistakes_are_one_short_line(what: dict[str, Any], reason: str, entries: MethodsAndTasks) -> None:
    with pytest.raises(PlumblineError, match=reason) as error:
        asked(entries, **what)
    assert len(str(error.value)) < 200
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_seed_that_fails_is_a_warning_and_all_of_them_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plumbline.methods.baselines import RandomSearch

    ask, calls = RandomSearch.ask, []

    def fails_at_first(*arguments: Any) -> Any:
        calls.append(1)
        return ask(*arguments) if len(calls) > 1 else 1 / 0

    monkeypatch.setattr(RandomSearch, "ask", fails_at_first)
    places = {"store": tmp_path / "store", "data": tmp_path, "rounds": 1}
    with pytest.warns(UserWarning, match="seed 0 failed: ZeroDivisionError"):
        found = pb.run("random", "ackley-2", seeds=2, **places)  # type: ignore[arg-type]
    assert found["seed"].unique().tolist() == [1]
    with pytest.raises(PlumblineError, match="seed 0 failed"):
        pb.run("random", "ackley-2", seeds=1, **places)  # type: ignore[arg-type]
    with pytest.raises(PlumblineError, match="no seeds"):
        pb.run("random", "ackley-2", seeds=0)


@given(st.integers(1, 50), st.lists(st.integers(0, 2**31 - 1), min_size=1, unique=True))
def test_seeds_are_counted_or_listed(count: int, listed: list[int]) -> None:
    assert seed_numbers(count) == seed_numbers(np.int64(count)) == seed_numbers(np.array(count)) == list(range(count))  # type: ignore[arg-type]
    assert seed_numbers(listed) == seed_numbers(np.array(listed)) == seed_numbers(iter(listed)) == listed  # type: ignore[arg-type]
    with pytest.raises(PlumblineError, match="is there twice"):
        seed_numbers([*listed, listed[0]])


@pytest.mark.parametrize("seeds", [True, 1.0, "12", ["a"], [1.5], [0, True], None, [None], np.array([0.0, 1.0])])
def test_seeds_that_are_no_whole_numbers(seeds: Any) -> None:
    with pytest.raises(PlumblineError, match="seeds: give their number or a list of whole numbers"):
        seed_numbers(seeds)


def test_no_seeds() -> None:
    for seeds in (0, -1, []):
        with pytest.raises(PlumblineError, match="no seeds"):
            seed_numbers(seeds)


@pytest.mark.slow
@settings(max_examples=5)  # each counts to the limit twice
@given(st.integers(MAX_SEEDS + 1, 2**80))
def test_more_seeds_than_any_experiment_may_have(count: int) -> None:
    for seeds in (count, range(count), itertools.count()):
        with pytest.raises(PlumblineError, match=f"seeds: at most {MAX_SEEDS:,}$"):
            seed_numbers(seeds)


def test_every_blas_has_one_thread_while_a_trial_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threadpool_limits(2, user_api="blas"):
        with running.one_thread():
            assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}


@pytest.mark.slow
def test_a_run_hands_on_how_many_seeds_go_in_lockstep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from plumbline.methods.gp.single_outcome import GPMethod

    sizes: list[int] = []
    inner = GPMethod.ask_many.__func__  # type: ignore[attr-defined]

    def noting(cls: type[GPMethod], requests: list[Any]) -> Any:
        sizes.append(len(requests))
        return inner(cls, requests)

    monkeypatch.setattr(GPMethod, "ask_many", classmethod(noting))
    quick = {"search": {"restarts": 1, "raw_samples": 4, "maxiter": 2}}
    what: dict[str, Any] = {"problem": "branin", "options": quick, "seeds": 3, "rounds": 2}
    found = [
        pb.run(method_class="ei", **what, store=tmp_path / str(lockstep), data=tmp_path, lockstep=lockstep)
        for lockstep in (1, 2)
    ]
    assert sizes == [1] * 6 + [2, 2, 1, 1]
    pd.testing.assert_frame_equal(*(one.drop(columns="seconds", errors="ignore") for one in found))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_limit_on_the_seconds_of_a_call_is_checked(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"^timeout: seconds above 0"):
        pb.run("random", "ackley-2", rounds=1, store=tmp_path, timeout=seconds)


def test_a_call_that_takes_longer_fails_its_trial(register: Callable[..., None], tmp_path: Path) -> None:
    class Slow(Branin):
        def _evaluate_true(self, X: Tensor) -> Tensor:
            time.sleep(5)
            return super()._evaluate_true(X)

    register("problem", "slow", lambda *_: problem_of(Slow(negate=True)), "plumbline.problems.synthetic")
    with pytest.raises(PlumblineError, match=r"TimeoutError: no answer within 0\.2 s"):
        pb.run("random", problem="slow", rounds=1, store=tmp_path, timeout=0.2)

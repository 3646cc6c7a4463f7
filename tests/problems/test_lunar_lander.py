import gc
import json
import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from joblib import Parallel, delayed

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.problems import lunar_lander
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.problems.landing import current_lander, flight, flights, older_lander
from plumbline.problems.lunar_lander import LunarLander, LunarLanderOptions
from plumbline.registry.references import InitialDesign, MethodRef, ProblemRef
from plumbline.store.spec import Budget, TrialSpec
from plumbline.trials import run_trial

GOOD = [0.25, 0.5, 0.2, 0.275, 0.25, 0.5, 0.25, 0.25, 0.0, 0.25, 0.025, 0.025]
X = torch.tensor([GOOD, [0.5] * 12], dtype=torch.float64)
GAINS = (2 * X).tolist()


def problem(make: Callable[[], Any] | None = None, **options: Any) -> LunarLander:
    return LunarLander(parse(LunarLanderOptions, options, "test"), make)


def one_step(reward: Callable[[int], float], ended: bool = True) -> Callable[[], Any]:
    """Return a maker of landers with that reward at each step; its class is local, so that workers import no tests."""

    class Lander:
        def reset(self, seed: int) -> tuple[Any, Any]:
            self.seed = seed
            return np.zeros(8), {}

        def step(self, action: int) -> tuple[Any, float, bool, bool, Any]:
            return np.zeros(8), reward(self.seed), ended, False, {}

    return Lander


@pytest.mark.slow
def test_the_value_is_the_mean_over_the_terrains() -> None:
    expected = [np.mean(flights(current_lander, w, range(6))) for w in GAINS]
    np.testing.assert_allclose(problem(terrains=6)(X, noise=False).numpy(), expected, rtol=1e-12)


@pytest.mark.slow
def test_the_code_has_one_terrain_and_other_rewards() -> None:
    expected = [flight(older_lander(), w, 0) for w in GAINS]
    assert problem(variant="code")(X, noise=False).tolist() == expected
    assert problem(terrains=1)(X, noise=False).tolist() != expected


def test_many_terrains_of_the_code_are_refused() -> None:
    with pytest.raises(PlumblineError, match="code has one terrain"):
        problem(variant="code", terrains=50)


@pytest.mark.slow
def test_a_good_controller_lands_and_beats_others() -> None:
    good, middling = problem(terrains=20)(X, noise=False).tolist()
    assert good > 200 > 0 > middling


@pytest.mark.slow
def test_the_number_of_processes_makes_no_difference() -> None:
    alone = problem(terrains=7, processes=1)(X, noise=False)
    for processes in (3, 9):
        assert torch.equal(problem(terrains=7, processes=processes)(X, noise=False), alone)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True) if is_loky(child)}


def is_loky(child: psutil.Process) -> bool:
    try:
        return "Loky" in " ".join(child.cmdline())
    except psutil.NoSuchProcess:  # it ended after it was listed, and may be a zombie yet
        return False


def test_an_interrupt_ends_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would wait at its end for a flight that hangs."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    lander = problem(one_step(lambda seed: 1.0))
    before = children()
    monkeypatch.setattr(lunar_lander, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lander(X[:1], noise=False)
    assert not children() - before


@pytest.mark.slow
def test_a_step_that_never_returns_is_an_error_and_its_process_is_ended(tmp_path: Path) -> None:
    def hang(seed: int) -> float:
        (tmp_path / "begun").touch()
        re.match(r"(a+)+$", "a" * 64 + "b")  # in C, and for ages: no signal and no thread gets in between
        return 0.0

    def worst(seed: int) -> float:
        return hang(seed) if (tmp_path / "hang").exists() else 1.0

    lander = problem(one_step(worst))
    before = children()
    assert lander(X[:1], noise=False).tolist() == [1.0]
    patient = lander.options
    lander.options = patient.model_copy(update={"time_limit": 1.0})  # now that its process has started
    worker = children() - before
    assert len(worker) == 1
    (tmp_path / "hang").touch()
    started = time.monotonic()
    with pytest.raises(PlumblineError, match=r"'lunar-lander': .* longer than its `time_limit` of 1 s") as caught:
        lander(X[:1], noise=False)
    assert 1 < time.monotonic() - started < 30
    assert "\n" not in str(caught.value)
    assert (tmp_path / "begun").exists()
    assert not worker & children()
    (tmp_path / "hang").unlink()
    lander.options = patient
    assert lander(X[:1], noise=False).tolist() == [1.0], "the next evaluation has a worker again"


@pytest.mark.slow
def test_a_flight_that_never_ends_is_an_error() -> None:
    with pytest.raises(PlumblineError, match="time_limit"):
        problem(one_step(lambda seed: 0.0, ended=False), time_limit=1.0)(X[:1], noise=False)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_not_finite_is_an_error_that_names_the_terrain(bad: float) -> None:
    with pytest.raises(PlumblineError, match=rf"'lunar-lander': the reward over terrain 3 is {bad}, x = \[0.25"):
        problem(one_step(lambda seed: bad if seed == 3 else 1.0))(X[:1], noise=False)


def test_an_error_in_the_environment_comes_through() -> None:
    def broken(seed: int) -> float:
        raise ZeroDivisionError("the moon is broken")

    with pytest.raises(ZeroDivisionError, match="the moon is broken"):
        problem(one_step(broken))(X[:1], noise=False)


def test_a_worker_that_is_killed_is_an_accident_of_the_machine() -> None:
    def killed(seed: int) -> float:
        os.kill(os.getpid(), 9)
        return 0.0

    with pytest.raises(OSError, match="a worker of problem 'lunar-lander' was killed"):
        problem(one_step(killed))(X[:1], noise=False)


@pytest.mark.slow
def test_its_workers_are_its_own_and_go_with_it() -> None:
    """joblib has processes that it shares: ending those would break whoever comes next."""
    lander = problem(one_step(lambda seed: float(seed)))
    shared = Parallel(n_jobs=2)(delayed(math.sqrt)(i) for i in range(4))
    before = children()
    assert lander(X, noise=False).tolist() == [24.5, 24.5]
    its_own = children() - before
    assert its_own
    assert Parallel(n_jobs=2)(delayed(math.sqrt)(i) for i in range(4)) == shared
    del lander
    gc.collect()
    deadline = time.monotonic() + 20
    while its_own & children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not its_own & children()


def test_a_trial_that_takes_too_long_is_an_error_row(tmp_path: Path) -> None:
    spec = TrialSpec(
        problem=ProblemRef(name="lunar-lander", options={"time_limit": 0.001}),
        method=MethodRef(name="random"),
        seed=0,
        budget=Budget(initial=InitialDesign(design="uniform", size=3), rounds=2),
    )
    folder = run_trial(spec, tmp_path, tmp_path)
    assert folder.failed
    assert "`time_limit` of 0.001 s" in json.loads(folder.error_path.read_text())["error"]


def test_its_optimum_is_not_known() -> None:
    built = build_problem("lunar-lander", {}, Context(Path(), torch.Generator()))
    assert built.optimum is None
    assert built.optimisers is None
    assert built.bounds.tolist() == [[0.0] * 12, [1.0] * 12]

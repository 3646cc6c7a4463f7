"""A trial: the same bytes whatever interrupts it, the same start for every method, failures that are rows."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.test_functions import SyntheticTestFunction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from linear_operator.utils.errors import NotPSDError

from plumbline import trials
from plumbline.calibration.predictive import GaussianPredictive
from plumbline.history import History
from plumbline.methods.base import Domain, Method, Proposal
from plumbline.methods.gp import GPMethod
from plumbline.records import RECORD, read_records
from plumbline.specs import Chunk, TrialSpec, canonical_json
from plumbline.store import TrialFolder
from plumbline.trials import (
    Progress,
    Trial,
    best_so_far,
    describe,
    event_names,
    hypervolume_so_far,
    restore,
    run_trial,
    save,
)

Make = Callable[..., TrialSpec]
Register = Callable[..., None]
Rows = list[dict[str, Any]]
QUICK_CONFORMAL: dict[str, Any] = {
    "posterior": {"candidates": 16},
    "ratio": {"hidden": 8, "steps": 5},
    "search": {"chains": 2, "steps": 6, "burn_in": 2, "raw_samples": 8},
}
EARLIEST, LATEST = 0, 3
POINTS = ("before the query", "after the query", "before the checkpoint", "at its rename", "after the checkpoint")


def rows_of(folder: TrialFolder) -> Rows:
    return parquet.read_table(folder.records_path).to_pylist()


def bytes_of(folder: TrialFolder) -> bytes:
    return folder.records_path.read_bytes()


@contextmanager
def interrupted(iteration: int, point: str, error: BaseException) -> Iterator[list[str]]:
    """Raise `error` once, at `point` of round `iteration`; yields a list that is filled when it was raised."""
    raised: list[str] = []
    asking, evaluating, saving, replacing = Trial._round, Trial._evaluate, trials.save, Path.replace
    first = Trial._first

    def stop(here: str, now: int) -> None:
        if (here, now) == (point, iteration) and not raised:
            raised.append(here)
            raise error

    def start_first(self: Trial) -> Any:
        stop("before the query", 0)
        return first(self)

    def start_round(self: Trial, now: int) -> Any:
        stop("before the query", now)
        return asking(self, now)

    def evaluate(self: Trial, X: torch.Tensor) -> Any:
        stop("after the query", self.progress.rounds + 1)
        return evaluating(self, X)

    def keep(progress: Progress, folder: TrialFolder) -> None:
        stop("before the checkpoint", progress.rounds)

        def rename(self: Path, target: Path) -> Path:
            if target.name == "checkpoint.pt":
                stop("at its rename", progress.rounds)
            return replacing(self, target)

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Path, "replace", rename)
            saving(progress, folder)
        stop("after the checkpoint", progress.rounds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trial, "_first", start_first)
        patch.setattr(Trial, "_round", start_round)
        patch.setattr(Trial, "_evaluate", evaluate)
        patch.setattr(trials, "save", keep)
        yield raised


def cheap_trial(make: Make, method: str) -> TrialSpec:
    """A noisy trial of `LATEST` rounds, pictures and holdout included."""
    problem = {"name": "forrester", "options": {"noise_std": 0.5}}
    snapshots = {"rounds": [1, 3], "points": 5}
    return make(problem, method, rounds=LATEST, size=3, holdout=4, snapshots=snapshots)


@pytest.fixture(scope="module")
def uninterrupted(cheap_spec: Make, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, bytes]]:
    """Records and snapshots of trials that nothing interrupted, by method."""
    found = {}
    for method in ("random", "ei", "calibrated"):
        root = tmp_path_factory.mktemp(method)
        folder = run_trial(cheap_trial(cheap_spec, method), root, root)
        assert not folder.failed, folder.error_path.read_text()
        pictures = folder.snapshots_path.read_bytes() if method != "random" else b""
        found[method] = bytes_of(folder), pictures
    return found


@pytest.mark.parametrize("method", ["random", "ei"])
def test_the_same_trial_gives_the_same_bytes(
    method: str, cheap_spec: Make, uninterrupted: dict[str, tuple[bytes, bytes]], tmp_path: Path
) -> None:
    folder = run_trial(cheap_trial(cheap_spec, method), tmp_path, tmp_path)
    assert bytes_of(folder) == uninterrupted[method][0]
    assert not folder.checkpoint_path.exists()
    assert not list(tmp_path.rglob(".*.pt.*")), "a temporary file is left"


interruptions = st.lists(
    st.tuples(st.integers(EARLIEST, LATEST), st.sampled_from(POINTS)), min_size=1, max_size=3, unique=True
)


def check_interruptions(spec: TrialSpec, stops: list[tuple[int, str]], expected: tuple[bytes, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for number, (iteration, point) in enumerate(sorted(stops, key=lambda s: (s[0], POINTS.index(s[1])))):
            with interrupted(iteration, point, KeyboardInterrupt()) as raised, suppress(KeyboardInterrupt):
                run_trial(spec, root, root)
            assert raised or number, "the first interruption must happen"
        folder = run_trial(spec, root, root)
        assert bytes_of(folder) == expected[0]
        if expected[1]:
            assert folder.snapshots_path.read_bytes() == expected[1]
        timed = parquet.read_table(folder.timings_path)["iteration"].to_pylist()
        assert timed == list(range(LATEST + 1))
        assert not folder.failed
        assert not folder.checkpoint_path.exists()


PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)


@settings(PATIENT, max_examples=25)
@given(stops=interruptions)
@example(stops=[(0, point) for point in POINTS[:3]])
@example(stops=[(LATEST, "after the checkpoint")])
def test_resumed_equals_uninterrupted_random(
    stops: list[tuple[int, str]], cheap_spec: Make, uninterrupted: dict[str, tuple[bytes, bytes]]
) -> None:
    check_interruptions(cheap_trial(cheap_spec, "random"), stops, uninterrupted["random"])


@settings(PATIENT, max_examples=4)
@given(stops=interruptions)
@example(stops=[(2, "after the query"), (3, "at its rename")])
def test_resumed_equals_uninterrupted_ei(
    stops: list[tuple[int, str]], cheap_spec: Make, uninterrupted: dict[str, tuple[bytes, bytes]]
) -> None:
    check_interruptions(cheap_trial(cheap_spec, "ei"), stops, uninterrupted["ei"])


@settings(PATIENT, max_examples=3)
@given(stops=interruptions)
def test_resumed_equals_uninterrupted_calibrated(
    stops: list[tuple[int, str]], cheap_spec: Make, uninterrupted: dict[str, tuple[bytes, bytes]]
) -> None:
    check_interruptions(cheap_trial(cheap_spec, "calibrated"), stops, uninterrupted["calibrated"])


@pytest.mark.parametrize("name", ["timings.parquet", "provenance.json", "records.parquet"])
@pytest.mark.parametrize("after", [False, True])
def test_interrupted_while_results_are_written(
    name: str,
    after: bool,
    cheap_spec: Make,
    uninterrupted: dict[str, tuple[bytes, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replacing = Path.replace

    def rename(self: Path, target: Path) -> Path:
        moved = replacing(self, target) if after and target.name == name else None
        if target.name == name:
            raise KeyboardInterrupt
        return moved or replacing(self, target)

    spec = cheap_trial(cheap_spec, "random")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", rename)
        with pytest.raises(KeyboardInterrupt):
            run_trial(spec, tmp_path, tmp_path)
    folder = run_trial(spec, tmp_path, tmp_path)
    assert bytes_of(folder) == uninterrupted["random"][0]


class Stateful(Method):
    """Walks along the box; where it is going next is its state, not its history."""

    def __init__(self, domain: Domain, options: Any) -> None:
        super().__init__(domain, options)
        self.steps = torch.zeros(2, dtype=torch.float64)
        self.told = 0

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        self.steps = 0.5 * self.steps + torch.rand(2, generator=generator, dtype=torch.float64)
        low, high = self.domain.bounds
        return Proposal((low + (high - low) * self.steps / 2).expand(q, -1), notes={"told": float(self.told)})

    def tell(self, X: torch.Tensor, Y: torch.Tensor) -> None:
        self.told += len(X)

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps, "told": self.told}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            self.steps, self.told = state["steps"], state["told"]


@pytest.mark.parametrize("point", POINTS)
def test_the_state_of_a_method_is_kept(point: str, cheap_spec: Make, register: Register, tmp_path: Path) -> None:
    register("method", "stateful", Stateful, "plumbline.methods.sampling")
    spec = cheap_spec("branin", "stateful", rounds=4, options={}, q=2)
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    with interrupted(2, point, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path / "parts", tmp_path)
    parts = run_trial(spec, tmp_path / "parts", tmp_path)
    assert bytes_of(parts) == bytes_of(whole)
    assert dict(rows_of(parts)[-1]["notes"]) == {"told": 6.0}


def run_chunk(chunk: Chunk, store: Path, output: Path, env: dict[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "plumbline", "trials", "--chunk", chunk.model_dump_json()]
    folders = ["--store", str(store), "--data", str(store.parent / "no-data"), "--output", str(output)]
    return subprocess.Popen(command + folders, env=env, stderr=subprocess.PIPE, text=True, cwd=store.parent)


def test_kill_minus_nine(cheap_spec: Make, tmp_path: Path, one_core: dict[str, str]) -> None:
    spec = cheap_spec("ackley-3", "random", rounds=400)
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    store, output = tmp_path / "store", tmp_path / "out.parquet"
    job = run_chunk(Chunk(spec=spec, seeds=(0,)), store, output, one_core)
    assert job.stderr is not None
    for line in job.stderr:
        if "round 7/" in line:
            os.kill(job.pid, signal.SIGKILL)
            break
    assert job.wait() == -signal.SIGKILL
    job.stderr.close()
    folder = TrialFolder(store, whole.key)
    assert not folder.done
    assert not output.exists()
    assert restore(folder).rounds >= 7
    again = run_trial(spec, store, tmp_path)
    assert bytes_of(again) == bytes_of(whole)


def test_two_processes_on_one_trial(cheap_spec: Make, tmp_path: Path, one_core: dict[str, str]) -> None:
    chunk = Chunk(spec=cheap_spec("branin", "random", rounds=60), seeds=(0,))
    store = tmp_path / "store"
    outputs = [tmp_path / f"{i}.parquet" for i in range(2)]
    folder = TrialFolder(store, trials.trial_key(chunk.spec, tmp_path))
    with folder.lock():  # both are at the door when it opens
        jobs = [run_chunk(chunk, store, output, one_core) for output in outputs]
        with pytest.raises(subprocess.TimeoutExpired):
            jobs[0].wait(timeout=3)
    logs = [job.communicate(timeout=120)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], logs
    assert sorted(log.count("round ") for log in logs) == [0, 61], "one runs, the other finds it done"
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


class Constant(SyntheticTestFunction):
    """Zero everywhere, until `calls` say otherwise."""

    dim = 2
    continuous_inds = [0, 1]  # noqa: RUF012
    _bounds = [(0.0, 1.0), (0.0, 1.0)]  # noqa: RUF012
    _optimal_value = 0.0
    _check_grad_at_opt = False
    bad: float | Exception = 0.0
    after = 5
    count = 0

    def _evaluate_true(self, X: torch.Tensor) -> torch.Tensor:
        Constant.count += len(X)
        if Constant.count <= Constant.after:
            return torch.zeros(len(X), dtype=X.dtype)
        if isinstance(Constant.bad, Exception):
            raise Constant.bad
        return torch.full((len(X),), Constant.bad, dtype=X.dtype)


@pytest.fixture
def toy_problem(register: Register, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what registers the problem `toy`: `bad` from evaluation `after` on."""

    def make(bad: float | Exception, after: int) -> None:
        monkeypatch.setattr(Constant, "bad", bad)
        monkeypatch.setattr(Constant, "after", after)
        monkeypatch.setattr(Constant, "count", 0)
        register("problem", "toy", lambda options, context: Constant(), "plumbline.problems.synthetic")

    return make


def test_a_trial_that_raises_is_a_row(cheap_spec: Make, toy_problem: Callable[..., None], tmp_path: Path) -> None:
    toy_problem(ZeroDivisionError("the oracle\nis broken"), after=6)
    spec = cheap_spec("toy", "random", rounds=5)
    whole = run_trial(spec, tmp_path, tmp_path)
    assert whole.failed
    assert whole.done
    rows = rows_of(whole)
    assert [row["status"] for row in rows] == ["ok"] * 6 + ["error"]
    assert (rows[-1]["iteration"], rows[-1]["evaluation"], rows[-1]["x"]) == (3, 6, [])
    assert rows[-1]["error"].startswith("ZeroDivisionError: the oracle is broken")
    assert "\n" not in rows[-1]["error"]
    error = json.loads(whole.error_path.read_text())
    assert error["round"] == 3
    assert "in _evaluate_true" in error["traceback"]
    assert error["error"] == rows[-1]["error"]
    assert whole.provenance()["spec"]["problem"]["name"] == "toy"
    joined = whole.table(spec).to_pylist()
    assert joined[-1]["round_seconds"] is None
    assert joined[-2]["round_seconds"] > 0


def test_a_failed_seed_does_not_stop_its_chunk(
    cheap_spec: Make, register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plumbline import cli

    class FailsOnce(Method):
        asked = 0

        def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
            FailsOnce.asked += 1
            if FailsOnce.asked == 2:
                raise RuntimeError("only the first seed")
            return Proposal(self.domain.bounds[:1])

    register("method", "fails-once", FailsOnce, "plumbline.methods.sampling")
    chunk = Chunk(spec=cheap_spec("branin", "fails-once", options={}), seeds=(0, 1))
    output = tmp_path / "out.parquet"
    cli.trials(chunk.model_dump_json(), output, tmp_path / "store", tmp_path)
    frame = read_records(output)
    assert frame.groupby("seed")["status"].apply(list).to_dict() == {0: ["ok"] * 5 + ["error"], 1: ["ok"] * 7}


def test_a_trial_that_cannot_begin(cheap_spec: Make, tmp_path: Path) -> None:
    problem = {"name": "molecules", "options": {"dataset": "nothing", "target": "qed"}}
    spec = cheap_spec(problem, "random")
    folder = run_trial(spec, tmp_path, tmp_path)
    rows = folder.table(spec).to_pylist()
    assert len(rows) == 1
    assert (rows[0]["status"], rows[0]["iteration"]) == ("error", 0)
    assert "`plumbline features nothing` builds them" in rows[0]["error"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_an_objective_that_is_not_finite(
    value: float, cheap_spec: Make, toy_problem: Callable[..., None], tmp_path: Path
) -> None:
    toy_problem(value, after=5)
    folder = run_trial(cheap_spec("toy", "random", rounds=3), tmp_path, tmp_path)
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["ok"] * 5 + ["error"]
    message = rows[-1]["error"]
    assert "problem 'toy' returned" in message
    assert "at evaluation 5, x = [0." in message
    assert "must be finite" in message


@pytest.mark.parametrize(
    ("error", "remedy"),
    [(NotPSDError("not PSD\nat all"), "raise the noise floor"), (ModelFittingError("all fits failed"), "other priors")],
)
def test_numerical_failures_come_with_a_remedy(
    error: Exception, remedy: str, cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitting = GPMethod.fit

    def fit(self: GPMethod, history: History) -> Any:
        if len(history) == 4:
            raise error
        return fitting(self, history)

    monkeypatch.setattr(GPMethod, "fit", fit)
    folder = run_trial(cheap_spec("forrester", "ei", size=3), tmp_path, tmp_path)
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["ok"] * 4 + ["error"]
    assert type(error).__name__ in rows[-1]["error"]
    assert remedy in rows[-1]["error"]
    assert "\n" not in rows[-1]["error"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), MemoryError()])
def test_a_full_disk_fails_the_job_not_the_trial(
    error: BaseException,
    cheap_spec: Make,
    uninterrupted: dict[str, tuple[bytes, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = cheap_trial(cheap_spec, "random")
    writing = torch.save
    kept: list[bytes] = []

    def full(content: Any, path: Path) -> None:
        if len(content["timings"]) == 3:
            kept.append((path.parent / "checkpoint.pt").read_bytes())
            path.write_bytes(b"half a che")
            raise error
        writing(content, path)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        with pytest.raises(type(error)):
            run_trial(spec, tmp_path, tmp_path)
    folder = TrialFolder(tmp_path, trials.trial_key(spec, tmp_path))
    assert folder.checkpoint_path.read_bytes() == kept[0]
    assert not folder.done
    assert not folder.failed
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "checkpoint.pt", "spec.json"]
    assert bytes_of(run_trial(spec, tmp_path, tmp_path)) == uninterrupted["random"][0]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a checkpoint", None])
def test_a_corrupt_checkpoint(
    content: bytes | None, cheap_spec: Make, uninterrupted: dict[str, tuple[bytes, bytes]], tmp_path: Path
) -> None:
    spec = cheap_trial(cheap_spec, "random")
    with interrupted(3, "before the query", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path, tmp_path)
    folder = TrialFolder(tmp_path, trials.trial_key(spec, tmp_path))
    whole = folder.checkpoint_path.read_bytes()
    folder.checkpoint_path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.warns(UserWarning, match="cannot be read .* the trial starts over"):
        run_trial(spec, tmp_path, tmp_path)
    assert bytes_of(folder) == uninterrupted["random"][0]


def test_checkpoints_round_trip(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, "0" * 16)
    assert restore(folder) == Progress()
    assert Progress().rounds == -1
    progress = Progress([{"x": [0.1]}], [{"iteration": 4}], [], {"weights": {"a": 1, "b": [0.5]}})
    save(progress, folder)
    assert restore(folder) == progress
    assert restore(folder).rounds == 4


def start_of(spec: TrialSpec, root: Path) -> tuple[list[list[float]], list[float]]:
    """The initial design, and the noise of every evaluation."""
    rows = rows_of(run_trial(spec, root, root))
    noise = [row["y"][0] - row["f"][0] for row in rows]
    return [row["x"] for row in rows if row["iteration"] == 0], noise


def test_methods_are_paired_and_seeds_are_not(cheap_spec: Make, tmp_path: Path) -> None:
    noisy = {"name": "branin", "options": {"noise_std": 2.0}}
    design, noise = start_of(cheap_spec(noisy, "random", rounds=2, q=2), tmp_path)
    for method in ("sobol", "ei"):
        other_design, other_noise = start_of(cheap_spec(noisy, method, rounds=2, q=2), tmp_path)
        assert other_design == design
        assert other_noise == pytest.approx(noise, abs=1e-9)
    # One at a time or two at a time: evaluation i has the noise of evaluation i.
    _, singly = start_of(cheap_spec(noisy, "random", rounds=4, q=1), tmp_path)
    assert singly == pytest.approx(noise, abs=1e-9)
    other_design, other_noise = start_of(cheap_spec(noisy, "random", rounds=2, q=2, seed=1), tmp_path)
    assert not set(map(tuple, other_design)) & set(map(tuple, design))
    assert all(abs(a - b) > 1e-6 for a, b in zip(noise, other_noise, strict=True))
    assert len(set(noise)) == len(noise)


def test_labels_change_no_draw(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec({"name": "branin", "label": "here"}, "random", label="mine")
    plain = cheap_spec("branin", "random")
    first = run_trial(spec, tmp_path, tmp_path)
    second = run_trial(plain, tmp_path, tmp_path)
    assert first.path == second.path
    assert set(first.table(spec)["method"].to_pylist()) == {"mine"}
    assert set(second.table(plain)["problem"].to_pylist()) == {"branin"}


def test_diagnostics_are_those_of_the_model_before_the_observation(cheap_spec: Make, tmp_path: Path) -> None:
    noisy = {"name": "forrester", "options": {"noise_std": 0.3}}
    spec = cheap_spec(noisy, "ucb", rounds=3, size=4, alphas=[0.2, "1/sqrt(n)"], holdout=6)
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    trial = Trial(spec, TrialFolder(tmp_path / "again", "0" * 16), tmp_path)
    assert isinstance(trial.method, GPMethod)
    assert trial.holdout is not None
    for row in rows[4:]:
        before = [past for past in rows if past["iteration"] < row["iteration"]]
        X = torch.tensor([past["x"] for past in before], dtype=torch.float64)
        Y = torch.tensor([past["y"] for past in before], dtype=torch.float64)
        model = trial.method.fit(History(X, Y)).model
        posterior = model.posterior(torch.tensor([row["x"]], dtype=torch.float64), observation_noise=True)
        mean, sd = posterior.mean.item(), posterior.variance.sqrt().item()
        assert row["predicted_mean"] == pytest.approx(mean, abs=1e-8)
        assert row["predicted_sd"] == pytest.approx(sd, abs=1e-8)
        normal = torch.distributions.Normal(*torch.tensor([mean, sd], dtype=torch.float64))
        y = torch.tensor(row["y"][0], dtype=torch.float64)
        assert row["pit"] == pytest.approx(normal.cdf(y).item(), abs=1e-8)
        assert row["nll"] == pytest.approx(-normal.log_prob(y).item(), abs=1e-8)
        assert row["alpha"] == [0.2, pytest.approx(len(before) ** -0.5)]
        for alpha, width, covered in zip(row["alpha"], row["width"], row["covered"], strict=True):
            half = normal.icdf(torch.tensor(1 - alpha / 2, dtype=torch.float64)).item() - mean
            assert width == pytest.approx(2 * half, rel=1e-6)
            assert covered == float(abs(row["y"][0] - mean) <= half)
        assert len(row["holdout_coverage"]) == 2
        assert row["calibration_score"] >= 0
    assert all(row["pit"] is None and not row["alpha"] for row in rows[:4])


def test_bests_and_regrets(cheap_spec: Make, tmp_path: Path) -> None:
    noisy = {"name": "branin", "options": {"noise_std": 20.0}}
    rows = rows_of(run_trial(cheap_spec(noisy, "random", rounds=12, q=2), tmp_path, tmp_path))
    assert [row["evaluation"] for row in rows] == list(range(28))
    assert [row["iteration"] for row in rows] == [0] * 4 + [i for i in range(1, 13) for _ in range(2)]
    optimum = -0.397887
    for i, row in enumerate(rows):
        seen = rows[: i + 1]
        best = max(seen, key=lambda past: past["y"][0])
        assert row["best_y"] == best["y"][0]
        assert row["incumbent_f"] == best["f"][0]
        assert row["best_f"] == max(past["f"][0] for past in seen)
        assert row["instant_regret"] == pytest.approx(optimum - row["f"][0], abs=1e-5)
        assert row["regret"] == pytest.approx(optimum - row["best_f"], abs=1e-5)
        assert row["incumbent_regret"] == pytest.approx(optimum - row["incumbent_f"], abs=1e-5)
        assert row["incumbent_regret"] >= row["regret"] >= -1e-5
    for earlier, later in pairwise(rows):
        assert later["best_y"] >= earlier["best_y"]
        assert later["regret"] <= earlier["regret"]


def test_several_outcomes_have_no_best() -> None:
    assert all(value != value for value in best_so_far(None, [1.0, 2.0], [1.0, 2.0], 3.0).values())


def test_the_global_random_state_stays(cheap_spec: Make, tmp_path: Path) -> None:
    torch.manual_seed(1234)
    before = torch.get_rng_state()
    for method in ("random", "sobol", "ei"):
        run_trial(cheap_spec("forrester", method, rounds=1, size=3, holdout=3), tmp_path, tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_global_random_state_does_not_count(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("forrester", "ei", rounds=1, size=3)
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(bytes_of(run_trial(spec, tmp_path / str(seed), tmp_path)))
    assert found[0] == found[1]


def test_a_tabular_trial(cheap_spec: Make, molecules: Path, tmp_path: Path) -> None:
    options = {"dataset": "generated-molecules", "target": "qed", "pool": 20, "holdout_fraction": 0.25}
    spec = cheap_spec({"name": "molecules", "options": options}, "random", size=5, rounds=10, holdout=1)
    folder = run_trial(spec, tmp_path, molecules)
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["ok"] * 15
    assert len({tuple(row["x"]) for row in rows}) == 15, "a row of the table is asked for once"
    assert rows[-1]["regret"] == pytest.approx(0.0), "after the whole table the best was found"
    more = spec.model_copy(update={"budget": spec.budget.model_copy(update={"rounds": 11})})
    last = rows_of(run_trial(more, tmp_path, molecules))[-1]
    assert "every row of the table has been evaluated" in last["error"]


def test_a_finished_trial_is_not_run_again(cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = cheap_spec()
    before = bytes_of(run_trial(spec, tmp_path, tmp_path))
    monkeypatch.setattr(Trial, "run", None)
    assert bytes_of(run_trial(spec, tmp_path, tmp_path)) == before


def test_observers_are_told(cheap_spec: Make, tmp_path: Path) -> None:
    class Witness:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def start(self, key: str, spec: TrialSpec, done: int) -> None:
            self.seen.append(("start", done))

        def round(self, rows: Rows, seconds: dict[str, float]) -> None:
            self.seen.append(("round", rows[0]["iteration"], len(rows)))

        def end(self, error: str | None) -> None:
            self.seen.append(("end", error))

    spec, first, second = cheap_spec(rounds=2), Witness(), Witness()
    with interrupted(2, "after the query", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path, tmp_path, [first])
    run_trial(spec, tmp_path, tmp_path, [second])
    assert first.seen == [("start", 0), ("round", 0, 4), ("round", 1, 1)]
    assert second.seen == [("start", 1), ("round", 2, 1), ("end", None)]


def test_records_hold_what_the_schema_says(cheap_spec: Make, tmp_path: Path) -> None:
    folder = run_trial(cheap_spec("forrester", "calibrated", rounds=1, size=3), tmp_path, tmp_path)
    assert parquet.read_schema(folder.records_path).equals(RECORD)
    last = rows_of(folder)[-1]
    assert dict(last["notes"])["sd_scale"] > 0
    assert json.loads((folder.path / "spec.json").read_text()) == json.loads(
        canonical_json(folder.provenance()["spec"])
    )
    timings = parquet.read_table(folder.timings_path).to_pylist()
    assert timings[1]["round_seconds"] >= timings[1]["fit_seconds"] + timings[1]["acquire_seconds"]


def test_descriptions_are_one_line() -> None:
    assert describe(ValueError("a\n  b")).startswith("ValueError: a b (")


def test_advice_is_no_event() -> None:
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        warnings.warn("jitter", RuntimeWarning, stacklevel=1)
    assert event_names(caught) == ["RuntimeWarning"]


def test_a_failed_trial_goes_on_once_it_is_forgotten(
    cheap_spec: Make, toy_problem: Callable[..., None], tmp_path: Path
) -> None:
    toy_problem(ZeroDivisionError("for now"), after=6)
    spec = cheap_spec("toy", "random", rounds=5)
    failed = run_trial(spec, tmp_path, tmp_path)
    evaluated = Constant.count
    failed.forget()
    Constant.after = 10_000  # mended

    mended = run_trial(spec, tmp_path, tmp_path)

    assert not mended.failed
    assert [row["status"] for row in rows_of(mended)] == ["ok"] * len(rows_of(mended))
    assert Constant.count - evaluated < len(rows_of(mended))  # the rounds before the failure were not run again


def test_an_error_left_by_a_killed_attempt_is_cleared(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("branin", "random", rounds=1)
    folder = TrialFolder(tmp_path, trials.trial_key(spec, tmp_path))
    folder.path.mkdir()
    folder.write_json(folder.error_path, {"error": "killed before its records were written"})
    assert not run_trial(spec, tmp_path, tmp_path).failed


class OftenWarning(Method):
    """Makes torch warn of something that it says once a process."""

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        values = np.zeros(2)
        values.flags.writeable = False
        torch.from_numpy(values)
        return Proposal(self.domain.bounds.mean(dim=0).expand(q, -1))


def test_warnings_given_once_a_process_are_recorded_in_every_round(
    cheap_spec: Make, register: Register, tmp_path: Path
) -> None:
    register("method", "warning", OftenWarning, "plumbline.methods.sampling")
    spec = cheap_spec("branin", "warning", rounds=3, options={})
    events = [row["events"] for row in rows_of(run_trial(spec, tmp_path, tmp_path)) if row["iteration"]]
    assert events == [["UserWarning"]] * 3


class Remembering(Method):
    """Its sets hold every observation that it was not shown, or none of them; it notes what it was shown."""

    shown: list[torch.Tensor] = []  # noqa: RUF012
    asked: list[torch.Tensor] = []  # noqa: RUF012

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        U = torch.rand(q, 1, generator=generator, dtype=torch.float64)
        return Proposal(U, lambda X: GaussianPredictive(0 * X[:, 0], 0 * X[:, 0] + 1.0))

    def predictor(self, history: History) -> Any:
        Remembering.shown.append(history.X)

        def predict(X: torch.Tensor) -> GaussianPredictive:
            Remembering.asked.append(X)
            # The sets of every second point are wide enough.
            wide = torch.arange(len(X)) % 2 == 0
            return GaussianPredictive(0 * X[:, 0], torch.where(wide, 1e9, 1e-9).double())

        return predict


def test_coverage_on_a_share_of_the_data_is_of_a_model_of_the_rest(
    cheap_spec: Make, register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Remembering, "shown", [])
    monkeypatch.setattr(Remembering, "asked", [])
    register("method", "remembering", Remembering, "plumbline.methods.sampling")
    spec = cheap_spec("forrester", "remembering", options={}, size=6, rounds=4, holdout_fraction=0.4, alphas=[0.2, 0.5])
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    assert [row["status"] for row in rows] == ["ok"] * 10
    data = [row["x"] for row in rows]
    held = [round(0.4 * n) for n in range(6, 10)]
    assert [len(X) for X in Remembering.asked] == held == [2, 3, 3, 4]
    for i, (shown, asked) in enumerate(zip(Remembering.shown, Remembering.asked, strict=True)):
        assert sorted(shown.tolist() + asked.tolist()) == sorted(data[: 6 + i]), "the data are split in two"
        share = -(-len(asked) // 2) / len(asked)
        assert rows[6 + i]["holdout_coverage"] == pytest.approx([share, share])
    assert all(not row["holdout_coverage"] for row in rows[:6])
    again = rows_of(run_trial(spec, tmp_path / "again", tmp_path))
    assert again == rows
    assert all(torch.equal(a, b) for a, b in zip(Remembering.asked[:4], Remembering.asked[4:], strict=True))
    assert not torch.equal(Remembering.asked[1], Remembering.asked[2]), "the share is drawn anew each round"


@pytest.mark.parametrize("method", ["ucb", "cucb"])
def test_coverage_on_a_share_of_the_data_is_the_same_after_an_interruption(
    method: str, cheap_spec: Make, tmp_path: Path
) -> None:
    problem = {"name": "forrester", "options": {"noise_std": 0.5}}
    options = QUICK_CONFORMAL if method == "cucb" else None
    spec = cheap_spec(problem, method, options=options, size=6, rounds=2, holdout_fraction=0.3)
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    with interrupted(2, "after the query", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path / "parts", tmp_path)
    parts = run_trial(spec, tmp_path / "parts", tmp_path)
    assert bytes_of(parts) == bytes_of(whole)
    assert [len(row["holdout_coverage"] or []) for row in rows_of(whole)] == [0] * 6 + [4] * 2


def test_methods_without_a_model_have_no_coverage_on_the_data(cheap_spec: Make, tmp_path: Path) -> None:
    rows = rows_of(run_trial(cheap_spec("forrester", "random", holdout_fraction=0.5), tmp_path, tmp_path))
    assert [row["status"] for row in rows] == ["ok"] * 7
    assert not any(row["holdout_coverage"] for row in rows)


def test_two_holdouts_are_one_too_many(cheap_spec: Make) -> None:
    with pytest.raises(ValueError, match="which of the two is meant"):
        cheap_spec(holdout=4, holdout_fraction=0.2)
    with pytest.raises(ValueError, match="less than 1"):
        cheap_spec(holdout_fraction=1.0)


@pytest.mark.parametrize("method", ["random", "ehvi", "cnehvi"])
def test_hypervolume_of_two_outcomes_never_falls(method: str, cheap_spec: Make, tmp_path: Path) -> None:
    options = {**QUICK_CONFORMAL, "fronts": 2} if method == "cnehvi" else None
    spec = cheap_spec("branin-currin", method, options=options, size=6, rounds=3, q=2, holdout_fraction=0.2)
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    assert [row["status"] for row in rows] == ["ok"] * 12, rows[-1]["error"]
    volumes = [row["hypervolume"] for row in rows]
    assert all(later >= earlier >= 0 for earlier, later in pairwise(volumes))
    assert volumes[-1] > 0
    assert all(len(row["y"]) == len(row["f"]) == 2 for row in rows)
    for row in rows[6:]:
        assert row["predicted_mean"] is row["predicted_sd"] is row["pit"] is row["crps"] is None
        assert row["calibration_score"] is None
        assert (row["nll"] is None) == (method == "random")
        lengths = {len(row[name] or []) for name in ("covered", "width", "holdout_coverage")}
        assert lengths == {0 if method == "random" else 4}
    assert all(row["best_y"] != row["best_y"] for row in rows), "there is no best"


def test_hypervolumes_by_hand() -> None:
    ref_point = torch.tensor([0.0, -1.0], dtype=torch.float64)
    first, second, dominated, below = [2.0, 0.0], [1.0, 2.0], [0.5, 0.5], [-1.0, 9.0]
    assert hypervolume_so_far([below], ref_point) == {"hypervolume": 0.0}
    assert hypervolume_so_far([first], ref_point) == {"hypervolume": 2.0}
    # 2 x 1 and 1 x 3 overlap in 1 x 1.
    assert hypervolume_so_far([first, second], ref_point) == {"hypervolume": 4.0}
    assert hypervolume_so_far([first, dominated, below, second, first], ref_point) == {"hypervolume": 4.0}
    assert hypervolume_so_far([first], None) == {}


def test_one_outcome_has_no_hypervolume(cheap_spec: Make, tmp_path: Path) -> None:
    rows = rows_of(run_trial(cheap_spec(), tmp_path, tmp_path))
    assert all(row["hypervolume"] is None for row in rows)


def test_a_method_of_several_outcomes_on_one_is_a_failed_row(cheap_spec: Make, tmp_path: Path) -> None:
    rows = rows_of(run_trial(cheap_spec("branin", "ehvi"), tmp_path, tmp_path))
    assert rows[-1]["status"] == "error"
    assert "method 'ehvi' is for several objectives; this problem has objective" in rows[-1]["error"]
    assert "use calibrated, cei" in rows[-1]["error"]

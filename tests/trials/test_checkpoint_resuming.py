"""The same bytes whatever interrupts a trial."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import torch
from handy import (
    LATEST,
    POINTS,
    Make,
    Pattern,
    Register,
    Rows,
    bytes_of,
    cheap_trial,
    each,
    interrupted,
    rows_of,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plumbline.core.history import History
from plumbline.methods.base import Domain, Method, Proposal
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import trial_key
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.trials import run_trial
from plumbline.trials.checkpoint import Checkpoint

QUICK_CONFORMAL: dict[str, Any] = {
    "posterior": {"candidates": 16},
    "ratio": {"hidden": 8, "steps": 5},
    "search": {"chains": 2, "steps": 6, "burn_in": 2, "raw_samples": 8},
}
Expected = dict[str, tuple[bytes, bytes]]
ALWAYS = [True]


@pytest.fixture(scope="module")
def uninterrupted(cheap_spec: Make, tmp_path_factory: pytest.TempPathFactory) -> Expected:
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
@pytest.mark.parametrize("pattern", [[True], [False], [False, True]])
def test_the_same_trial_gives_the_same_bytes(
    method: str, pattern: list[bool], cheap_spec: Make, uninterrupted: Expected, tmp_path: Path
) -> None:
    spec = cheap_trial(cheap_spec, method)
    folder = run_trial(spec, tmp_path, tmp_path, ration=lambda: Pattern(pattern))
    assert bytes_of(folder) == uninterrupted[method][0]
    assert not folder.checkpoint_path.exists()
    assert not folder.log_path.exists()
    assert not list(tmp_path.rglob(".*.pt.*")), "a temporary file is left"


interruptions = st.lists(
    st.tuples(st.integers(0, LATEST), st.sampled_from(POINTS)), min_size=1, max_size=3, unique=True
)
patterns = st.lists(st.booleans(), min_size=1, max_size=4)


def check_interruptions(
    spec: TrialSpec, stops: list[tuple[int, str]], pattern: Sequence[bool], expected: tuple[bytes, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for number, (iteration, point) in enumerate(sorted(stops, key=lambda s: (s[0], POINTS.index(s[1])))):
            with interrupted(iteration, point, KeyboardInterrupt()) as raised, suppress(KeyboardInterrupt):
                run_trial(spec, root, root, ration=lambda: Pattern(pattern))
            assert raised or number or not all(pattern), "the first interruption must happen"
        folder = run_trial(spec, root, root, ration=lambda: Pattern(pattern))
        assert bytes_of(folder) == expected[0]
        if expected[1]:
            assert folder.snapshots_path.read_bytes() == expected[1]
        timed = parquet.read_table(folder.timings_path)["iteration"].to_pylist()
        assert timed == list(range(LATEST + 1))
        assert not folder.failed
        assert not folder.checkpoint_path.exists()
        assert not folder.log_path.exists()


PATIENT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@settings(PATIENT, max_examples=25)
@given(stops=interruptions, pattern=patterns)
@example(stops=[(0, point) for point in POINTS[:3]], pattern=ALWAYS)
@example(stops=[(LATEST, "after the save")], pattern=ALWAYS)
@example(stops=[(1, "at its rename"), (2, "at its rename"), (3, "at its rename")], pattern=ALWAYS)
@example(stops=[(0, "at its rename"), (3, "after the answer")], pattern=[True, False])
def test_resumed_equals_uninterrupted_random(
    stops: list[tuple[int, str]], pattern: list[bool], cheap_spec: Make, uninterrupted: Expected
) -> None:
    check_interruptions(cheap_trial(cheap_spec, "random"), stops, pattern, uninterrupted["random"])


@pytest.mark.slow
@settings(PATIENT, max_examples=4)
@given(stops=interruptions, pattern=patterns)
@example(stops=[(2, "after the answer"), (3, "at its rename")], pattern=ALWAYS)
def test_resumed_equals_uninterrupted_ei(
    stops: list[tuple[int, str]], pattern: list[bool], cheap_spec: Make, uninterrupted: Expected
) -> None:
    check_interruptions(cheap_trial(cheap_spec, "ei"), stops, pattern, uninterrupted["ei"])


@settings(PATIENT, max_examples=3)
@given(stops=interruptions, pattern=patterns)
def test_resumed_equals_uninterrupted_calibrated(
    stops: list[tuple[int, str]], pattern: list[bool], cheap_spec: Make, uninterrupted: Expected
) -> None:
    check_interruptions(cheap_trial(cheap_spec, "calibrated"), stops, pattern, uninterrupted["calibrated"])


@pytest.mark.parametrize("name", ["timings.parquet", "provenance.json", "records.parquet"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("pattern", [[True], [False]])
def test_interrupted_while_results_are_written(
    name: str,
    after: bool,
    pattern: list[bool],
    cheap_spec: Make,
    uninterrupted: Expected,
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
            run_trial(spec, tmp_path, tmp_path, ration=lambda: Pattern(pattern))
    folder = run_trial(spec, tmp_path, tmp_path)
    assert bytes_of(folder) == uninterrupted["random"][0]
    assert not folder.log_path.exists()


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
    register("method", "stateful", Stateful, "plumbline.methods.baselines")
    spec = cheap_spec("branin", "stateful", rounds=4, options={}, q=2)
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    with interrupted(2, point, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path / "parts", tmp_path, ration=each)
    parts = run_trial(spec, tmp_path / "parts", tmp_path, ration=each)
    assert bytes_of(parts) == bytes_of(whole)
    assert dict(rows_of(parts)[-1]["notes"]) == {"told": 6.0}


QUICK: dict[str, Any] = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}}
RELAY: dict[str, Any] = {**QUICK, "members": ["ei", "ucb"]}
ADAPTING: dict[str, dict[str, Any]] = {
    "hedge": {**QUICK, "members": ["ei", "ucb", "ts"]},
    "relay": RELAY,
    "roulette": RELAY,
    "kernel-selection": {"base": {"name": "ts", "options": QUICK}, "criterion": "random"},
    "shrinking-lengthscales": {"base": {"name": "relay", "options": RELAY}},
}


@pytest.mark.parametrize("method", ADAPTING)
def test_what_methods_adapt_is_kept(method: str, cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("branin", method, rounds=5, options=ADAPTING[method])
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    assert not whole.failed
    for iteration, point in ((2, "after the answer"), (4, "before the answer")):
        with interrupted(iteration, point, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
            run_trial(spec, tmp_path / "parts", tmp_path, ration=each)
    parts = run_trial(spec, tmp_path / "parts", tmp_path, ration=each)
    assert bytes_of(parts) == bytes_of(whole)
    assert {"member", "kernel", "lengthscale_divisor"} & dict(rows_of(parts)[-1]["notes"]).keys()


def run_chunk(chunk: Chunk, store: Path, output: Path, env: dict[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "plumbline", "trials", "--chunk", chunk.model_dump_json()]
    folders = ["--store", str(store), "--data", str(store.parent / "no-data"), "--output", str(output)]
    return subprocess.Popen(command + folders, env=env, stderr=subprocess.PIPE, text=True, cwd=store.parent)


@pytest.mark.slow
def test_kill_minus_nine(cheap_spec: Make, tmp_path: Path, one_core: dict[str, str]) -> None:
    spec = cheap_spec("ackley-3", "random", rounds=1500)
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    store, output = tmp_path / "store", tmp_path / "out.parquet"
    job = run_chunk(Chunk(spec=spec, seeds=(0,)), store, output, one_core)
    assert job.stderr is not None
    folder = TrialFolder(store, whole.key)
    for _ in job.stderr:
        if Checkpoint(folder, each()).restore()[0].iteration >= 1:
            os.kill(job.pid, signal.SIGKILL)
            break
    assert job.wait() == -signal.SIGKILL
    job.stderr.close()
    assert not folder.done
    assert not output.exists()
    again = run_trial(spec, store, tmp_path)
    assert bytes_of(again) == bytes_of(whole)


@pytest.mark.slow
def test_two_processes_on_one_trial(cheap_spec: Make, tmp_path: Path, one_core: dict[str, str]) -> None:
    chunk = Chunk(spec=cheap_spec("branin", "random", rounds=60), seeds=(0,))
    store = tmp_path / "store"
    outputs = [tmp_path / f"{i}.parquet" for i in range(2)]
    folder = TrialFolder(store, trial_key(chunk.spec, tmp_path))
    with folder.lock():  # both are at the door when it opens
        jobs = [run_chunk(chunk, store, output, one_core) for output in outputs]
        first = [job.stderr.readline() for job in jobs if job.stderr]
        assert all("waiting for" in line for line in first), first
    logs = [job.communicate(timeout=120)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], logs
    assert sorted(log.count(": round 60/60 ") for log in logs) == [0, 1], "one runs, the other finds it done"
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), MemoryError()])
def test_a_full_disk_fails_the_job_not_the_trial(
    error: BaseException, cheap_spec: Make, uninterrupted: Expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = cheap_trial(cheap_spec, "random")
    writing = Path.write_bytes
    kept: list[bytes] = []
    saves = iter(range(LATEST + 1))

    def full(path: Path, content: bytes) -> int:
        if path.name.startswith(".checkpoint.pt") and next(saves) == 2:
            kept.append((path.parent / "checkpoint.pt").read_bytes())
            writing(path, b"half a che")
            raise error
        return writing(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(type(error)):
            run_trial(spec, tmp_path, tmp_path, ration=each)
    folder = TrialFolder(tmp_path, trial_key(spec, tmp_path))
    assert folder.checkpoint_path.read_bytes() == kept[0]
    assert not folder.done
    assert not folder.failed
    names = sorted(path.name for path in folder.path.iterdir())
    assert names == [".lock", "checkpoint.pt", "log.arrow", "spec.json"]
    assert bytes_of(run_trial(spec, tmp_path, tmp_path)) == uninterrupted["random"][0]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a checkpoint", None])
def test_a_corrupt_checkpoint(content: bytes | None, cheap_spec: Make, uninterrupted: Expected, tmp_path: Path) -> None:
    spec = cheap_trial(cheap_spec, "random")
    with interrupted(3, "before the question", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path, tmp_path, ration=each)
    folder = TrialFolder(tmp_path, trial_key(spec, tmp_path))
    whole = folder.checkpoint_path.read_bytes()
    folder.checkpoint_path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.warns(UserWarning, match="cannot be read .* the trial starts over"):
        run_trial(spec, tmp_path, tmp_path, ration=each)
    assert bytes_of(folder) == uninterrupted["random"][0]


@pytest.mark.parametrize("damage", ["torn", "short", "gone", "other"])
def test_a_damaged_log(damage: str, cheap_spec: Make, uninterrupted: Expected, tmp_path: Path) -> None:
    spec = cheap_trial(cheap_spec, "random")
    with interrupted(3, "before the question", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path, tmp_path, ration=each)
    folder = TrialFolder(tmp_path, trial_key(spec, tmp_path))
    whole = folder.log_path.read_bytes()
    ruin = {"torn": whole + whole[200:333], "short": whole[:-8], "other": bytes(len(whole))}
    if damage == "gone":
        folder.log_path.unlink()
    else:
        folder.log_path.write_bytes(ruin[damage])
    if damage == "torn":  # rows that were being appended do not count
        log, _ = Checkpoint(folder, each()).restore()
        assert log.iteration == 2
    else:
        with pytest.warns(UserWarning, match="cannot be read .* the trial starts over"):
            run_trial(spec, tmp_path, tmp_path)
    assert bytes_of(run_trial(spec, tmp_path, tmp_path)) == uninterrupted["random"][0]


@pytest.mark.parametrize("method", ["ucb", "cucb"])
def test_coverage_on_a_share_of_the_data_is_the_same_after_an_interruption(
    method: str, cheap_spec: Make, tmp_path: Path
) -> None:
    problem = {"name": "forrester", "options": {"noise_std": 0.5}}
    options = QUICK_CONFORMAL if method == "cucb" else None
    spec = cheap_spec(problem, method, options=options, size=6, rounds=2, holdout_fraction=0.3)
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    with interrupted(2, "after the answer", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path / "parts", tmp_path, ration=each)
    parts = run_trial(spec, tmp_path / "parts", tmp_path)
    assert bytes_of(parts) == bytes_of(whole)
    assert [len(row["holdout_coverage"] or []) for row in rows_of(whole)] == [0] * 6 + [4] * 2


def check_interrupted_once(spec: TrialSpec, tmp_path: Path) -> Rows:
    """Compare a trial that was interrupted in its second round with one that was not, and return its rows."""
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    assert not whole.failed, whole.error_path.read_text()
    with interrupted(2, "after the answer", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path / "parts", tmp_path, ration=each)
    torch.randn(3)
    assert bytes_of(run_trial(spec, tmp_path / "parts", tmp_path)) == bytes_of(whole)
    return rows_of(whole)


QUICK = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}, "mc_samples": 8}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ts", "kg", "kg-sgd", "mes", "pes", "jes"])
def test_draws_of_whole_functions_are_the_same_after_an_interruption(
    method: str, cheap_spec: Make, tmp_path: Path
) -> None:
    problem = {"name": "forrester", "options": {"noise_std": 0.5}}
    check_interrupted_once(cheap_spec(problem, method, options=QUICK, size=4, rounds=3), tmp_path)


@pytest.mark.slow
def test_a_guards_coins_are_the_same_after_an_interruption(cheap_spec: Make, tmp_path: Path) -> None:
    problem = {"name": "forrester", "options": {"noise_std": 0.5}}
    options = {"base": {"name": "jes", "options": QUICK}, "gamma": 0.5}
    rows = check_interrupted_once(cheap_spec(problem, "exploit", options=options, size=4, rounds=6), tmp_path)
    assert {dict(row["notes"])["exploited"] for row in rows[4:]} == {0.0, 1.0}

"""What is saved while a trial runs, and when."""

import io
import math
from pathlib import Path

import pytest
import torch
from handy import each

from plumbline.core.files import write_sealed
from plumbline.store.folder import TrialFolder
from plumbline.trials.checkpoint import Checkpoint, Ration
from plumbline.trials.log import Log, Step

KEY = "0" * 16
NOW = {"fit_seconds": 0.0, "acquire_seconds": 0.0, "evaluate_seconds": 0.0, "round_seconds": 0.5}


def step(iteration: int, q: int = 2) -> Step:
    X = torch.rand(q, 3, dtype=torch.float64)
    return Step(iteration, X, X[:, :1], 2 * X[:, :1], events=["Jitter"], notes={"scale": 1.5})


def put(log: Log, *steps: Step) -> Log:
    for one in steps:
        log.append(one, NOW)
    return log


class Clock:
    """Seconds that pass when the test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_save_waits_until_the_last_one_is_paid_for() -> None:
    clock = Clock()
    ration = Ration(0.02, clock)
    assert ration.due(0.0), "nothing was spent yet"
    with ration.saving():
        clock.now += 1.0
    clock.now += 1000.0  # of other trials in lockstep
    assert not ration.due(49.0)
    assert ration.due(1.1)
    with ration.saving():
        clock.now += 0.001
    assert ration.due(0.06), "slow rounds are saved each"


def test_saves_that_cost_nothing_or_do_not_count_are_always_due() -> None:
    clock = Clock()
    ration = Ration(math.inf, clock)
    with ration.saving():
        clock.now += 5.0
    assert ration.due(1e-9)


def test_round_trip(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, KEY)
    folder.path.mkdir()
    log, state = Checkpoint(folder, each()).restore()
    assert (len(log), log.iteration, state) == (0, -1, {})
    checkpoint = Checkpoint(folder, each())
    put(log, step(0, 4), step(1))
    log.snapshots.append((1, torch.ones(2, 7)))
    checkpoint.save(log, {"weights": {"a": 1, "b": [0.5]}})
    put(log, step(2))
    checkpoint.save(log, {"weights": torch.ones(3)})
    again, state = Checkpoint(folder, each()).restore()
    assert (len(again), again.iteration) == (8, 2)
    assert torch.equal(state["weights"], torch.ones(3))
    assert torch.equal(again.X, log.X)
    assert torch.equal(again.Y, log.Y)
    assert again.columns().equals(log.columns())
    assert again.drain() == [], "what is on disk is not new"
    assert torch.equal(again.snapshots[0][1], log.snapshots[0][1])


def test_the_log_only_grows(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, KEY)
    folder.path.mkdir()
    checkpoint, log = Checkpoint(folder, each()), Log()
    sizes, before = [], b""
    for iteration in range(6):
        checkpoint.save(put(log, step(iteration)), {})
        now = folder.log_path.read_bytes()
        assert now.startswith(before)
        sizes.append(len(now) - len(before))
        before = now
    assert len(set(sizes[1:])) == 1, "a round costs as much as another"
    assert folder.checkpoint_path.stat().st_size < 4000


def test_it_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, KEY)
    folder.path.mkdir()
    checkpoint, log = Checkpoint(folder, each()), Log()
    checkpoint.save(put(log, step(0)), {})
    kept = folder.log_path.read_bytes()
    folder.log_path.write_bytes(kept + b"half a batch")
    second = Checkpoint(folder, each())
    log, _ = second.restore()
    assert folder.log_path.read_bytes() == kept
    second.save(put(log, step(1), step(2)), {})
    assert len(Checkpoint(folder, each()).restore()[0]) == 6


@pytest.mark.parametrize(
    "old", [{"rows": [], "timings": [], "snapshots": [], "method_state": {}}, {"version": 99}, [1]]
)
def test_another_layout_is_said_in_one_line(tmp_path: Path, old: object) -> None:
    folder = TrialFolder(tmp_path, KEY)
    folder.path.mkdir()
    stream = io.BytesIO()
    torch.save(old, stream)
    write_sealed(folder.checkpoint_path, stream.getvalue())
    with pytest.warns(UserWarning, match=r"layout (1|99), not 3\), kept as .*: the trial starts over") as caught:
        log, state = Checkpoint(folder, each()).restore()
    assert "\n" not in str(caught[0].message)
    assert (len(log), state) == (0, {})


def test_a_log_of_another_trial_does_not_count(tmp_path: Path) -> None:
    one, two = TrialFolder(tmp_path, KEY), TrialFolder(tmp_path, "1" * 16)
    for folder, steps in ((one, [step(0), step(1)]), (two, [step(0), step(3)])):
        folder.path.mkdir()
        Checkpoint(folder, each()).save(put(Log(), *steps), {})
    one.log_path.write_bytes(two.log_path.read_bytes())
    with pytest.warns(
        UserWarning, match=r"log\.arrow cannot be read \(its checksum is not the one in the checkpoint\)"
    ):
        Checkpoint(one, each()).restore()


def test_a_lack_of_memory_does_not_start_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = TrialFolder(tmp_path, KEY)
    folder.path.mkdir()
    Checkpoint(folder, each()).save(put(Log(), step(0)), {})

    def full(*arguments: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Log, "extend", full)
        with pytest.raises(MemoryError):
            Checkpoint(folder, each()).restore()
    assert len(Checkpoint(folder, each()).restore()[0]) == 2, "another attempt goes on"

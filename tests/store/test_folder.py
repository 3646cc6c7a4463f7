"""A trial's place in the store."""

import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pytest
from filelock import FileLock, Timeout

from plumbline.core.errors import PlumblineError
from plumbline.store import records
from plumbline.store.folder import TrialFolder
from plumbline.store.records import POINTLESS, RECORD, SECONDS
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial

KEY = "0123456789abcdef"


def hold(root: Path, held: Any) -> None:
    with TrialFolder(root, KEY).lock():
        held.set()
        time.sleep(60)


def put_records(folder: TrialFolder, error: str | None = None) -> None:
    row = {
        "key": KEY,
        "task": "t",
        "method": "m",
        "seed": 0,
        "iteration": 0,
        "evaluation": 0,
        "x": [],
        "y": [],
        "f": [],
    }
    status = "ok" if error is None else "error"
    records.write_table(folder.records_path, records.to_table([row | {"status": status, "error": error}]))


@pytest.mark.parametrize("content", [None, "", "{}", '{"error": "no lu'])
def test_records_say_that_a_trial_failed(tmp_path: Path, content: str | None) -> None:
    """Where error.json is missing or damaged."""
    folder = TrialFolder(tmp_path, KEY)
    put_records(folder, "ValueError: no luck")
    if content is not None:
        folder.error_path.write_text(content)
    folder.checkpoint_path.touch()
    assert folder.failed
    assert folder.reason() == "ValueError: no luck"
    folder.clear()
    assert folder.checkpoint_path.exists(), "another attempt goes on from there"
    folder.records_path.unlink()
    assert folder.failed == (content is not None)
    with pytest.raises(PlumblineError, match=r"error\.json.*`plumbline failures --store .* --forget` clears it"):
        folder.reason()


def test_done_and_failed(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, KEY)
    assert (folder.done, folder.failed) == (False, False)
    folder.write_json(folder.error_path, {"error": "x"})
    assert (folder.done, folder.failed) == (False, True)
    put_records(folder)
    assert folder.done
    folder.checkpoint_path.touch()
    folder.forget()
    assert (folder.done, folder.failed) == (False, False)
    assert folder.checkpoint_path.exists()
    folder.forget()


def test_what_is_there_while_a_trial_runs_goes_when_it_has_ended_well(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, KEY)
    folder.path.mkdir()
    running = (folder.checkpoint_path, folder.log_path)
    for path in running:
        path.touch()
    folder.clear()
    assert all(path.exists() for path in running), "it runs"
    put_records(folder, "no luck")
    folder.clear()
    assert all(path.exists() for path in running), "another attempt goes on from there"
    put_records(folder)
    folder.error_path.touch()  # a stale one
    assert not folder.failed
    folder.clear()
    assert not any(path.exists() for path in running)
    folder.clear()


KILLED = """
import os, sys
from pathlib import Path
from plumbline.core.files import atomic

with atomic(Path(sys.argv[1])) as part:
    part.write_text("half")
    os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_save_left_goes_when_the_trial_runs_again(tmp_path: Path, kind: signal.Signals) -> None:
    folder = TrialFolder(tmp_path, KEY)
    killed = subprocess.run([sys.executable, "-c", KILLED, folder.records_path, str(int(kind))], check=False)
    assert killed.returncode == -kind
    assert len(list(folder.path.iterdir())) == 1
    with folder.lock():
        folder.clear()
        assert {path.name for path in folder.path.iterdir()} == {".lock", ".lock.owner"}


def test_json_is_sorted_and_ends_with_a_line(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, KEY)
    folder.write_json(folder.provenance_path, {"b": 1, "a": [1]})
    text = folder.provenance_path.read_text()
    assert text.index('"a"') < text.index('"b"')
    assert text.endswith("}\n")
    assert folder.provenance() == {"a": [1], "b": 1}


def test_a_lock_keeps_others_out_and_is_released(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, KEY)
    with folder.lock(), pytest.raises(Timeout), FileLock(folder.path / ".lock", timeout=0.05):
        pass
    with pytest.raises(KeyError), folder.lock():
        raise KeyError
    with FileLock(folder.path / ".lock", timeout=0.05):
        pass


def test_a_killed_process_lets_go(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    held = context.Event()
    process = context.Process(target=hold, args=(tmp_path, held))
    process.start()
    assert held.wait(20)
    with pytest.raises(Timeout), FileLock(tmp_path / KEY / ".lock", timeout=0.05):
        pass
    process.kill()
    process.join()
    with FileLock(tmp_path / KEY / ".lock", timeout=5):
        pass


def test_records_come_under_the_labels_that_are_asked_for(cheap_spec: Callable[..., TrialSpec], tmp_path: Path) -> None:
    spec = cheap_spec(rounds=1)
    folder = run_trial(spec, tmp_path, tmp_path)
    named = cheap_spec(task="a-hill", label="dice", rounds=1)
    table = folder.table(named)
    assert set(table["task"].to_pylist()) == {"a-hill"}
    assert set(table["method"].to_pylist()) == {"dice"}
    assert table["round_seconds"].null_count == 0
    assert table.drop_columns(["task", "method"]).equals(folder.table(spec).drop_columns(["task", "method"]))
    assert table.schema.field("method").type == arrow.string()


def test_points_are_read_where_they_are_drawn(cheap_spec: Callable[..., TrialSpec], tmp_path: Path) -> None:
    plain = cheap_spec("forrester", rounds=1)
    folder = run_trial(plain, tmp_path, tmp_path)
    assert folder.table(plain).column_names == [*POINTLESS, *SECONDS]
    with_points = folder.table(plain, points=True)
    assert with_points.column_names == [*RECORD.names, *SECONDS]
    assert all(len(x) == 1 for x in with_points["x"].to_pylist())
    pictured = cheap_spec("forrester", rounds=1, snapshots={"rounds": [1]})
    folder = run_trial(pictured, tmp_path, tmp_path)
    assert folder.table(pictured).column_names == [*RECORD.names, *SECONDS]
    assert "x" not in folder.table(pictured, points=False).column_names

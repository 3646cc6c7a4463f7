"""Trials in several processes are those of one, and one that ends its process is a failed trial."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.registry.references import MethodRef
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial
from plumbline.trials.processes import run_alone, run_in_processes

ENDS = """
import ctypes
import os
import signal

import numpy as np


class Ends:
    def __init__(self):
        self.told = 0

    def tell(self, x, y):
        self.told += np.size(y)

    def ask(self):
        if self.told > 4:
            {call}
        return [0.5, 0.5]
"""
"""An optimiser that ends its process in its second round."""


def ending(spec: TrialSpec, folder: Path, call: str) -> TrialSpec:
    """Return the trial of an optimiser that ends its process by `call`."""
    module = f"ends_{sum(call.encode())}"  # each its own, since Python keeps what it imports
    (folder / f"{module}.py").write_text(ENDS.format(call=call))
    return spec.model_copy(update={"method": MethodRef(name="ask-tell", options={"optimiser": f"{module}:Ends"})})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("ctypes.string_at(0)", r"its process ended: SIGSEGV\(-11\) \(.*ends_\d+.py, line 18\)"),
        ("os.abort()", r"its process ended: SIGABRT\(-6\) \(.*ends_\d+.py, line 18\)"),
        ("os._exit(3)", r"its process ended: EXIT\(3\)"),
    ],
)
def test_a_trial_that_ends_its_process_fails_and_the_others_go_on(
    cheap_spec: Callable[..., TrialSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, said: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(tmp_path)
    sound = [cheap_spec(method="random", seed=seed) for seed in range(4)]
    ends = ending(cheap_spec(method="random"), tmp_path, call)
    specs = [sound[0], ends, *sound[1:], ends.model_copy(update={"seed": 9})]
    folders = list(run_in_processes(specs, tmp_path / "store", tmp_path, 2))
    assert [folder.failed for folder in folders] == [False, True, False, False, False, True]
    for folder in (folders[1], folders[-1]):
        assert re.search(said, folder.reason())
    alone = run_trial(sound[0], tmp_path / "alone", tmp_path)
    assert folders[0].records_path.read_bytes() == alone.records_path.read_bytes()


@pytest.mark.slow
def test_a_process_that_the_machine_kills_is_one_line(
    cheap_spec: Callable[..., TrialSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(tmp_path)
    spec = ending(cheap_spec(method="random"), tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(PlumblineError, match="a process was killed: if the memory is full"):
        run_alone(spec, tmp_path / "store", tmp_path)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


STARTS = """
import os, signal, time
from joblib.externals.loky import ProcessPoolExecutor
from plumbline.trials.processes import begin

if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # what nohup runs ignores it
    executor = ProcessPoolExecutor(1, initializer=begin, initargs=(os.getpid(),))
    print(executor.submit(os.getpid).result(), flush=True)
    if {busy}:
        executor.submit(time.sleep, 60)
    time.sleep(60)
"""
"""A main process that starts another, prints its number, and waits."""


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_a_process_ends_when_the_main_one_is_killed(number: signal.Signals, busy: bool, tmp_path: Path) -> None:
    script = tmp_path / "starts.py"
    script.write_text(STARTS.format(busy=busy))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as main:
        assert main.stdout is not None
        worker = int(main.stdout.readline())
        main.send_signal(number)
        main.wait(10)
        end = time.monotonic() + 10
        while Path(f"/proc/{worker}").exists() and time.monotonic() < end:
            time.sleep(0.1)
        assert not Path(f"/proc/{worker}").exists()

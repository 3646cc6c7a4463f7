"""Trials in several processes, one a trial at a time."""

import faulthandler
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from plumbline.core.errors import PlumblineError
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import trial_key
from plumbline.store.spec import TrialSpec
from plumbline.trials.runner import record_crash, run_trial
from plumbline.trials.timeouts import timeout_of_trials

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The environment of a process: with as many threads in each as there are cores, all would wait for each other."""

CHECK = 1.0
"""Seconds between two looks at whether the main process is still there."""


def run_in_processes(
    specs: Sequence[TrialSpec], store: Path, data: Path, processes: int, timeout: float | None = None
) -> Iterator[TrialFolder]:
    """Run or resume trials in several processes, and yield their folders in the order of the specs.

    The processes are new, so that they run the code as it is in the files, and end with the iteration. A trial whose
    code ends its process (a segmentation fault, `os._exit`) fails, and the others go on.

    Args:
        specs: of the trials.
        store: folder of all trials.
        data: folder of built features.
        processes: their number.
        timeout: seconds that a call of a method's or problem's code may take.

    Raises:
        PlumblineError: the machine killed a process in which one trial ran alone.
    """
    alone: dict[int, TrialFolder] = {}
    number = 0
    while number < len(specs):
        executor = ProcessPoolExecutor(
            min(processes, len(specs)), env=ONE_THREAD, initializer=begin, initargs=(os.getpid(),)
        )
        started = {
            i: executor.submit(run_within, timeout, specs[i], store, data)
            for i in range(number, len(specs))
            if i not in alone
        }
        try:
            while number < len(specs):
                yield alone[number] if number in alone else started[number].result()
                number += 1
        except BrokenProcessPool:
            # Trials start in their order, so that one of the first unfinished ones ended its process.
            broken = [i for i, future in started.items() if not future.done() or future.exception()]
        finally:
            executor.shutdown(kill_workers=True)
        if number < len(specs):
            alone |= {i: run_alone(specs[i], store, data, timeout) for i in broken[:processes]}


def run_alone(spec: TrialSpec, store: Path, data: Path, timeout: float | None = None) -> TrialFolder:
    """Run or resume a trial in a process of its own; if it ends its process, record that it failed.

    Raises:
        PlumblineError: the machine killed the process.
    """
    with TemporaryDirectory() as scratch:
        stack = Path(scratch, "stack")
        executor = ProcessPoolExecutor(1, env=ONE_THREAD, initializer=begin, initargs=(os.getpid(), stack))
        try:
            return executor.submit(run_within, timeout, spec, store, data).result()
        except BrokenProcessPool as error:
            codes = re.findall(r"\{(.+)\}", str(error))
            if not codes or "SIGKILL" in codes[0] or "SIGTERM" in codes[0]:
                raise PlumblineError(
                    "a process was killed: if the memory is full, run fewer of them; the same command goes on"
                ) from error
            return record_crash(spec, store, data, f"its process ended: {codes[0]}", stack.read_text())
        finally:
            executor.shutdown(kill_workers=True)


def begin(main: int, stack: Path | None = None) -> None:
    """Prepare a process: it leaves Ctrl-C to the main one, ends with it, and prints no Python stack at a crash.

    Args:
        main: the number of the main process.
        stack: the file that the stack is written to at a crash; None where it is not needed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(main,), daemon=True).start()
    faulthandler.disable()  # loky enables it
    if stack is not None:
        faulthandler.enable(stack.open("w"))


def end_with(main: int) -> None:
    """End this process once the process `main`, which started it, has ended: a killed one cannot end its workers."""
    while os.getppid() == main:
        time.sleep(CHECK)
    os._exit(1)


def run_within(timeout: float | None, spec: TrialSpec, store: Path, data: Path) -> TrialFolder:
    """Run or resume one trial; each call of a method's or problem's code may take `timeout` seconds.

    A trial that failed by a shorter timeout runs again.
    """
    with timeout_of_trials(timeout, [TrialFolder(store, trial_key(spec, data))]):
        return run_trial(spec, store, data)

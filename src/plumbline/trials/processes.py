"""Trials in several processes, one a trial at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from plumbline.core.errors import PlumblineError
from plumbline.core.plugins import call_timeout
from plumbline.store.folder import TrialFolder
from plumbline.store.spec import TrialSpec
from plumbline.trials.runner import run_trial

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The environment of a process: with as many threads in each as there are cores, all would wait for each other."""


def run_in_processes(
    specs: Sequence[TrialSpec], store: Path, data: Path, processes: int, timeout: float | None = None
) -> Iterator[TrialFolder]:
    """Run or resume trials in several processes, and yield their folders in the order of the specs.

    The processes are new, so that they run the code that is on file, and end with the iteration.

    Args:
        specs: of the trials.
        store: folder of all trials.
        data: folder of built features.
        processes: their number.
        timeout: seconds that a call of a method's or problem's code may take.

    Raises:
        PlumblineError: the machine killed a process.
    """
    executor = ProcessPoolExecutor(min(processes, len(specs)), env=ONE_THREAD)
    try:
        for started in [executor.submit(run_within, timeout, spec, store, data) for spec in specs]:
            yield started.result()
    except BrokenProcessPool as error:
        raise PlumblineError(
            "a process was killed: if the memory is full, run fewer of them; the same command goes on"
        ) from error
    finally:
        executor.shutdown(kill_workers=True)


def run_within(timeout: float | None, spec: TrialSpec, store: Path, data: Path) -> TrialFolder:
    """Run or resume one trial; each call of a method's or problem's code may take `timeout` seconds."""
    with call_timeout(timeout):
        return run_trial(spec, store, data)

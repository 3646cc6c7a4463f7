"""The runner: runs or resumes trials in the store, one after another or several in lockstep."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import torch

from plumbline.core.ambient import kept_state
from plumbline.core.culprits import place_in_stack
from plumbline.core.errors import PlumblineError
from plumbline.core.machine import Signals, noticing_signals
from plumbline.core.streams import kept_streams
from plumbline.methods.ask import CPU
from plumbline.methods.base import lockstep_size
from plumbline.problems.base import SharedCache
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import own_modules, trial_key
from plumbline.store.observers import Observer
from plumbline.store.spec import TrialSpec
from plumbline.trials.checkpoint import Ration
from plumbline.trials.rounds import run_sessions
from plumbline.trials.session import TrialSession, Watch

T = TypeVar("T")


def parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return `items` in parts of `size`, the last one perhaps smaller."""
    return [items[first : first + size] for first in range(0, len(items), size)]


def run_trial(
    spec: TrialSpec,
    store: Path,
    data: Path,
    observers: Sequence[Observer] = (),
    device: torch.device = CPU,
    ration: Callable[[], Ration] = Ration,
) -> TrialFolder:
    """Run or resume one trial unless it is done; see `run_trials`."""
    return run_trials([spec], store, data, lambda: observers, device, ration)[0]


ONE_AT_A_TIME = threading.RLock()
"""Held while trials run: threads take turns."""


def run_trials(
    specs: Sequence[TrialSpec],
    store: Path,
    data: Path,
    watch: Watch = tuple,
    device: torch.device = CPU,
    ration: Callable[[], Ration] = Ration,
    lockstep: int = 1,
) -> list[TrialFolder]:
    """Run or resume the seeds of one method on one task that are not done.

    An error of a method or problem ends its own trial with an error record. Errors of the machine (a full disk, no
    memory of a GPU) are raised, and the checkpoints stay for the next attempt. Seeds of a method that takes steps
    jointly may run in lockstep, which changes their seconds but no other number.

    Args:
        specs: specs of the trials.
        store: folder of all trials.
        data: folder of built features.
        watch: makes the observers of each trial.
        device: device for the methods' computations.
        ration: makes the limit on the saves of each trial.
        lockstep: greatest number of seeds in lockstep, where the method's own `lockstep_size` is not greater.

    Returns:
        The folder of each trial, with its records in place.

    Raises:
        KeyboardInterrupt: a signal came.
    """
    # Random streams, warnings and numpy's errors are of the process: trials of two threads would spoil each other's.
    with ONE_AT_A_TIME, kept_streams(), noticing_signals() as signals:
        return _run_groups(specs, store, data, watch, device, ration, lockstep, signals)


def record_crash(spec: TrialSpec, store: Path, data: Path, message: str, stack: str) -> TrialFolder:
    """Write the results of a trial whose process crashed: what its last checkpoint has, and the error.

    Args:
        spec: spec of the trial.
        store: folder of all trials.
        data: folder of built features.
        message: of the error.
        stack: Python's stack at the crash, as `faulthandler` writes it; may be empty.
    """
    folder = TrialFolder(store, trial_key(spec, data))
    place = place_in_stack(stack)
    error = PlumblineError(f"{message} ({place})" if place else message)
    error.add_note(stack)
    with folder.lock():
        if folder.sound():  # another process has ended it since
            return folder
        session = TrialSession(spec, folder, data, tuple, CPU, Ration(), SharedCache(), 1, None)
        session.log, _ = session.checkpoint.restore()
        session.fail(error)
    return folder


def _run_groups(
    specs: Sequence[TrialSpec],
    store: Path,
    data: Path,
    watch: Watch,
    device: torch.device,
    ration: Callable[[], Ration],
    lockstep: int,
    signals: Signals,
) -> list[TrialFolder]:
    folders = [TrialFolder(store, trial_key(spec, data)) for spec in specs]
    shared = SharedCache()
    together = max((lockstep_size(spec.method.name, spec.method.options, lockstep) for spec in specs), default=1)
    for group in parts(list(zip(specs, folders, strict=True)), together):
        wanted = {folder.key: (spec, folder) for spec, folder in group}
        # What a user's own module sets as it is loaded is meant for its trials, and for no later ones.
        with kept_state(own_modules(group[0][0])), ExitStack() as held:
            # In one order everywhere, so that two jobs that share trials cannot deadlock.
            for key in sorted(wanted):
                held.enter_context(wanted[key][1].lock())
            for _, folder in wanted.values():
                folder.sound()  # else it is run anew
                folder.clear()  # leftovers of a trial killed after its records were written
            run_sessions(
                [
                    TrialSession(*one, data, watch, device, ration(), shared, together, signals)
                    for one in wanted.values()
                    if not one[1].done
                ]
            )
    return folders

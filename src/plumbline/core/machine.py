"""Errors and signals of the machine: they end a job, which another attempt resumes, and not the trial."""

import errno
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from plumbline.core.culprits import culprit_of

OF_MACHINE = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
        errno.ENOMEM,
        errno.EAGAIN,
        errno.EMFILE,
        errno.ENFILE,
        errno.ESTALE,
    )
)
"""Error numbers of the machine, wherever they are raised: disk, memory, processes and open files."""

Signals = list[signal.Signals] | None
"""Signals that came during a job; None where that cannot be told."""


def ends_job(error: BaseException, signals: Signals) -> bool:
    """Whether an error ends the job, which another attempt resumes, and not the trial.

    Signals, memory of a GPU, full disks and killed workers are the machine's. What code of a plug-in raises otherwise
    is its own: `sys.exit`, KeyboardInterrupt without a signal, MemoryError, and an OSError without such a number.
    """
    if signals or isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    if signals is None and isinstance(error, KeyboardInterrupt):
        return True
    if not culprit_of(error):
        return not isinstance(error, Exception) or isinstance(error, OSError | MemoryError)
    return isinstance(error, ChildProcessError) or (isinstance(error, OSError) and error.errno in OF_MACHINE)


@contextmanager
def noticing_signals() -> Iterator[Signals]:
    """Yield the signals so far that interrupt the block; they raise KeyboardInterrupt as ever.

    Code of a plug-in may raise KeyboardInterrupt without one. Threads other than the first cannot tell: None.
    """
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    noticed: list[signal.Signals] = []

    def noticing(handler: Callable[..., object]) -> Callable[..., object]:
        def note(number: int, frame: object) -> None:
            noticed.append(signal.Signals(number))
            handler(number, frame)

        return note

    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in usual.items():
        if callable(handler):
            signal.signal(number, noticing(handler))
    try:
        yield noticed
    finally:
        for number, handler in usual.items():
            if callable(handler):
                signal.signal(number, handler)

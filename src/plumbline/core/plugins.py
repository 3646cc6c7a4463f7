"""The boundary around the code of methods, problems and designs: whose error it is, and what is put back after it."""

import errno
import math
import os
import random
import re
import signal
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from pathlib import Path

import numpy as np
import torch

from plumbline.core.errors import PlumblineError

PACKAGE = Path(__file__).parents[1]
LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))

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

FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
"""A frame of the stack that Python writes when it crashes."""

LONGEST = 1e9
"""Seconds, some thirty years, that a timer can hold everywhere."""

_TIMEOUT: ContextVar[float | None] = ContextVar("timeout", default=None)
"""Seconds that a call of plug-in code may take."""


def seed_streams(seed: int) -> None:
    """Seed the global streams of torch, NumPy and Python: what code draws from them depends on nothing that ran before.

    `kept_streams` puts them back, once a job: to keep NumPy's and Python's takes a tenth of a cheap round.
    """
    # Not `torch.manual_seed`: it stores every call for each kind of device that is absent.
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the stream that libraries draw from
    random.seed(seed)


@contextmanager
def kept_streams() -> Iterator[None]:
    """Put the global streams of torch, NumPy and Python back after the block."""
    of_torch, of_numpy, of_python = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        torch.set_rng_state(of_torch)
        np.random.set_state(of_numpy)  # noqa: NPY002
        random.setstate(of_python)


@contextmanager
def plugin_code(culprit: str) -> Iterator[None]:
    """Run code of `culprit`, such as "method 'ei'", in the block.

    What it raises is charged to it, unless code inside was charged already. The working directory is put back.

    Raises:
        TimeoutError: the block takes longer than `call_timeout` allows.
    """
    directory = os.getcwd()
    try:
        with _alarm(_TIMEOUT.get()):
            yield
    except BaseException as error:
        if not culprit_of(error):
            error.__dict__["culprit"] = culprit
        raise
    finally:
        if os.getcwd() != directory:
            os.chdir(directory)


@contextmanager
def call_timeout(seconds: float | None) -> Iterator[None]:
    """Let each block of `plugin_code` in this block take at most so many seconds; None or infinite: no limit.

    Python is interrupted, and so are sleeping and waiting, but not a loop in compiled code.

    Raises:
        PlumblineError: the seconds are not above 0, or more than a timer holds.
    """
    if seconds is not None and not (0 < seconds <= LONGEST or seconds == math.inf):
        raise PlumblineError(f"timeout: seconds above 0, at most {LONGEST:g}, or inf for no limit (got {seconds})")
    token = _TIMEOUT.set(None if seconds == math.inf else seconds)
    try:
        yield
    finally:
        _TIMEOUT.reset(token)


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """Raise TimeoutError in the block after so many seconds, and again after as many for code that catches it.

    There is one timer in a process, and only the first thread is interrupted: code inside of other code counts as part
    of it, and other threads have no limit.
    """
    running = threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]
    if seconds is None or running:
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise TimeoutError(f"no answer within {seconds:g} s")

    usual = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)


def culprit_of(error: BaseException) -> str:
    """Return who the error is charged to; empty for nobody."""
    culprit: str = error.__dict__.get("culprit", "")
    return culprit


def place_of(error: BaseException) -> str:
    """Return the file and line of the user's code that raised `error`; empty where there is none."""
    return innermost((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__))


def place_in_stack(stack: str) -> str:
    """Return the file and line of the user's code in the stack that Python writes when it crashes; empty where none.

    Args:
        stack: what `faulthandler` wrote; its innermost frame is the first.
    """
    current = stack.partition("Current thread ")[2].partition("\n\n")[0]
    return innermost((file, int(line)) for file, line in reversed(FRAME.findall(current)))


def innermost(frames: Iterable[tuple[str, int]]) -> str:
    """Return file and line of the last frame outside of this package and of libraries, else outside of libraries.

    Empty where there is none.

    Args:
        frames: file and line of each, the innermost last.
    """
    frames = [one for one in frames if not one[0].startswith(("<", *LIBRARIES)) and "site-packages" not in one[0]]
    outside = [one for one in frames if not Path(one[0]).is_relative_to(PACKAGE)]
    if not frames:
        return ""
    file, line = (outside or frames)[-1]
    shown = Path(file) if outside else Path(file).relative_to(PACKAGE.parent)
    return f"{shown}, line {line}"


def is_of_machine(error: BaseException, signals: Signals) -> bool:
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


def refuse_odd_numbers(whose: str, what: str, numbers: object) -> None:
    """Raise PlumblineError unless `numbers` maps names to finite numbers."""
    if not isinstance(numbers, Mapping):
        raise PlumblineError(f"{whose} returned `{what}` of type {type(numbers).__name__}: a dictionary is wanted")
    for key, value in numbers.items():
        if not isinstance(key, str) or not isinstance(value, Real) or not math.isfinite(value):
            raise PlumblineError(f"{whose} returned `{what}` with {key!r}: {value!r}; finite floats by name are wanted")


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

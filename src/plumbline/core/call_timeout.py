"""A limit on the time that a call of the code of a method, problem or design takes."""

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from plumbline.core.errors import PlumblineError

LONGEST = 1e9
"""Seconds, some thirty years, that a timer can hold everywhere."""

AGAIN = 0.1
"""Least seconds between two interruptions of a call, so that what follows it is not interrupted too."""

_TIMEOUT: ContextVar[float | None] = ContextVar("timeout", default=None)
"""Seconds that a call of plug-in code may take."""


@contextmanager
def call_timeout(seconds: float | None) -> Iterator[None]:
    """Let each call of such code in this block take at most so many seconds; None or infinite: no limit.

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
def limited() -> Iterator[None]:
    """Raise TimeoutError in the block after the seconds of `call_timeout`, and again after as many if it is caught.

    There is one timer in a process, and only the first thread is interrupted: code inside of other code counts as part
    of it, and other threads have no limit.
    """
    seconds = _TIMEOUT.get()
    running = threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]
    if seconds is None or running:
        yield
        return

    over = threading.Event()

    def ring(number: int, frame: object) -> None:
        if not over.is_set():
            raise TimeoutError(f"no answer within {seconds:g} s")

    usual = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, max(seconds, AGAIN))
            yield
        finally:  # a ring may come as the call ends: it is the last one for a while
            over.set()
    finally:
        over.set()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)

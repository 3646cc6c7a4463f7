"""Errors and signals of the machine are told from those of the code of methods and problems."""

import errno
import signal
import threading

import pytest
import torch

from plumbline.core.culprits import plugin_code
from plumbline.core.machine import ends_job, noticing_signals


@pytest.mark.parametrize(
    ("error", "charged", "alone"),
    [
        (ValueError(), False, False),
        (SystemExit(0), False, True),
        (KeyboardInterrupt(), False, True),
        (MemoryError(), False, True),
        (OSError("text"), False, True),
        (TimeoutError(), False, True),
        (OSError(errno.ENOSPC, "full"), True, True),
        (OSError(errno.ENOENT, "no file", "x"), False, True),
        (ChildProcessError("killed"), True, True),
        (torch.cuda.OutOfMemoryError(), True, True),
    ],
)
def test_what_is_the_machines(error: BaseException, charged: bool, alone: bool) -> None:
    assert ends_job(error, []) is alone
    with pytest.raises(type(error)), plugin_code("method 'x'"):
        raise error
    assert ends_job(error, []) is charged
    assert ends_job(error, [signal.SIGINT])
    assert ends_job(error, None) is (charged or isinstance(error, KeyboardInterrupt))


def test_signals_are_noticed_and_raise_as_ever() -> None:
    before = signal.getsignal(signal.SIGINT)
    with noticing_signals() as signals:
        assert signals == []
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert signals == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_cannot_tell() -> None:
    seen: list[object] = []

    def look() -> None:
        with noticing_signals() as signals:
            seen.append(signals)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [None]

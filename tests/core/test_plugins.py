"""The boundary around the code of methods and problems: whose error it is, and what is put back."""

import errno
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.plugins import (
    LONGEST,
    call_timeout,
    culprit_of,
    is_of_machine,
    kept_streams,
    noticing_signals,
    place_of,
    plugin_code,
    seed_streams,
)


def caught(error: BaseException, *culprits: str) -> BaseException:
    """Return an error that leaves the code of some, the innermost last."""
    try:
        if not culprits:
            raise error
        with plugin_code(culprits[0]):
            raise caught(error, *culprits[1:])
    except BaseException as raised:
        return raised


def test_the_innermost_is_charged() -> None:
    assert culprit_of(caught(ValueError(), "problem 'a'", "method 'b'")) == "method 'b'"
    assert culprit_of(caught(ValueError())) == ""


def test_the_place_is_the_users() -> None:
    assert place_of(caught(ValueError())).startswith(f"{Path(__file__)}, line ")
    assert place_of(ValueError()) == ""
    with pytest.raises(TypeError) as raised:
        torch.nn.functional.softmax(torch.ones(2), dim="x")  # type: ignore[arg-type]
    assert place_of(raised.value).startswith(f"{Path(__file__)}, line ")


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
    assert is_of_machine(error, []) is alone
    assert is_of_machine(caught(error, "method 'x'"), []) is charged
    assert is_of_machine(error, [signal.SIGINT])
    assert is_of_machine(error, None) is (charged or isinstance(error, KeyboardInterrupt))


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


def test_a_call_that_takes_too_long_is_charged_to_its_code() -> None:
    usual = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s") as raised:
        sleep_in(0.05, "method 'a'")
    assert culprit_of(raised.value) == "method 'a'"
    assert not is_of_machine(raised.value, [])
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is usual


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), -float("inf"), 1e300])
def test_a_timeout_that_no_timer_holds(seconds: float) -> None:
    with pytest.raises(PlumblineError, match="timeout: seconds above 0"), call_timeout(seconds):
        pass


def test_the_longest_timeout_is_held() -> None:
    sleep_in(LONGEST, "method 'a'", seconds=0)


def test_an_infinite_timeout_is_none() -> None:
    with call_timeout(float("inf")), plugin_code("method 'a'"):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def sleep_in(timeout: float | None, *culprits: str, seconds: float = 5) -> None:
    """Sleep in the code of some, the innermost last."""
    with call_timeout(timeout), ExitStack() as stack:
        for culprit in culprits:
            stack.enter_context(plugin_code(culprit))
        time.sleep(seconds)


def test_a_call_that_catches_the_interruption_is_interrupted_again() -> None:
    caught = 0
    with call_timeout(0.05), plugin_code("method 'a'"):
        while caught < 3:
            try:
                time.sleep(5)
            except TimeoutError:
                caught += 1


def test_the_time_of_inner_code_is_that_of_the_outer() -> None:
    def call_often() -> None:
        with plugin_code("problem 'a'"):
            for _ in range(100):
                sleep_in(0.2, "method 'b'", seconds=0.05)

    with call_timeout(0.2), pytest.raises(TimeoutError) as raised:
        call_often()
    assert culprit_of(raised.value) == "method 'b'"


def test_there_is_no_limit_outside_of_its_block_nor_in_other_threads() -> None:
    with call_timeout(0.01):
        sleep_in(None, "method 'a'", seconds=0.05)
    with plugin_code("method 'a'"):
        time.sleep(0.05)
    with ThreadPoolExecutor() as threads:
        assert threads.submit(sleep_in, 0.01, "method 'a'", seconds=0.05).result() is None


def test_the_working_directory_is_put_back(tmp_path: Path) -> None:
    before = Path.cwd()
    with plugin_code("method 'x'"):
        os.chdir(tmp_path)
    assert Path.cwd() == before


def test_streams_are_seeded_and_put_back() -> None:
    def draw() -> tuple[float, float, float]:
        return float(torch.rand(())), np.random.randn(), random.gauss()  # noqa: NPY002

    np.random.randn()  # noqa: NPY002 - the second of a pair is kept for later
    with kept_streams():
        after = draw()
    with kept_streams():
        seed_streams(3)
        first = draw()
        seed_streams(3)
        assert draw() == first
    assert draw() == after

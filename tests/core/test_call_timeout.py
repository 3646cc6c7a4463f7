"""A call of the code of methods and problems that takes too long is interrupted, and charged to it."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from plumbline.core.call_timeout import LONGEST, call_timeout
from plumbline.core.culprits import culprit_of, plugin_code
from plumbline.core.errors import PlumblineError
from plumbline.core.machine import ends_job


def test_a_call_that_takes_too_long_is_charged_to_its_code() -> None:
    usual = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s") as raised:
        sleep_in(0.05, "method 'a'")
    assert culprit_of(raised.value) == "method 'a'"
    assert not ends_job(raised.value, [])
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

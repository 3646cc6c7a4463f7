"""Two pieces of work timed in turn, so that a noisy machine disturbs both alike."""

from collections.abc import Callable
from statistics import median
from time import perf_counter


def paired_ratio(
    work: Callable[[], object],
    reference: Callable[[], object],
    repeats: int = 7,
    clock: Callable[[], float] = perf_counter,
) -> float:
    """Return the median over repeats of the time of `work` over that of `reference`, measured one after the other.

    By the clock on the wall, or by `process_time`, which leaves out what other processes take of a core.
    """
    work()
    reference()
    ratios = []
    for _ in range(repeats):
        times = []
        for piece in (work, reference):
            started = clock()
            piece()
            times.append(clock() - started)
        ratios.append(times[0] / times[1])
    return median(ratios)

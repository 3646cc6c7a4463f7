"""The number of threads that a job computes on."""

import os
import re

from plumbline.core.errors import PlumblineError

THREADS, MOST_THREADS = "OMP_NUM_THREADS", 1024
"""The variable that asks for threads, and the most that it may ask for."""


def threads_asked() -> int:
    """The threads that OMP_NUM_THREADS asks for, 1 where it is not set.

    OpenMP allows a number for each level of nested parallel regions, as in `4,2`; the first one counts here.

    Raises:
        PlumblineError: a value that OpenMP does not allow.
    """
    text = os.environ.get(THREADS)
    if text is None:
        return 1
    levels = [level.strip() for level in text.split(",")]
    if not all(re.fullmatch("0*[1-9][0-9]{0,3}", level) and int(level) <= MOST_THREADS for level in levels):
        raise PlumblineError(
            f"{THREADS} is {text!r}: give a number of threads from 1 to {MOST_THREADS}, as in {THREADS}=1, "
            f"or one for each level, as in {THREADS}=4,2; or unset it"
        )
    return int(levels[0])

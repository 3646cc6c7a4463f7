"""The limit on the seconds of a call, and trials that failed by a shorter one."""

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from plumbline.core.call_timeout import call_timeout
from plumbline.core.errors import PlumblineError
from plumbline.store.folder import TrialFolder

OUT_OF_TIME = re.compile(r"TimeoutError: no answer within (\d+(?:\.\d+)?(?:e[+-]\d+)?) s\b")
"""How the reason of a failure by `plumbline.core.call_timeout.call_timeout` begins."""


@contextmanager
def timeout_of_trials(seconds: float | None, folders: Iterable[TrialFolder]) -> Iterator[None]:
    """Let each call of a method's or problem's code in the block take at most so many seconds; None: no limit.

    The failures of these trials by a shorter limit are forgotten, so that they continue from their checkpoints.

    Raises:
        PlumblineError: the seconds are not above 0, or more than a timer holds.
    """
    with call_timeout(seconds):
        for folder in folders:
            if folder.error_path.is_file():
                # Results that cannot be read are set aside when the trial runs.
                with folder.lock(), suppress(PlumblineError):
                    if folder.failed and _ran_out_of_less(folder, seconds):
                        folder.forget()
        yield


def _ran_out_of_less(folder: TrialFolder, seconds: float | None) -> bool:
    found = OUT_OF_TIME.match(folder.reason())
    return found is not None and float(found[1]) < (math.inf if seconds is None else seconds)

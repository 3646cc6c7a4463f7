"""Whose error it is: the boundary around the code of methods, problems and designs, and the user's line in it."""

import os
import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from plumbline.core.call_timeout import limited

PACKAGE = Path(__file__).parents[1]
LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))

FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
"""A frame of the stack that Python writes when it crashes."""


@contextmanager
def plugin_code(culprit: str) -> Iterator[None]:
    """Run code of `culprit`, such as "method 'ei'", in the block.

    What it raises is charged to it, unless code inside was charged already. The working directory is put back.

    Raises:
        TimeoutError: the block takes longer than `call_timeout` allows.
    """
    directory = os.getcwd()
    try:
        with limited():
            yield
    except BaseException as error:
        if not culprit_of(error):
            error.__dict__["culprit"] = culprit
        raise
    finally:
        if os.getcwd() != directory:
            os.chdir(directory)


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

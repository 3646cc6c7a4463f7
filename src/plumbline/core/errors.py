"""The error meant for users: one line with the cause and the remedy."""

import errno
import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path


class PlumblineError(Exception):
    """A user's mistake or a failure outside the code, in one line; the command line prints it without a traceback."""


LISTED = 24
"""Names that an error lists in full; of more it gives the nearest one and the command that lists them all."""


def unknown(
    kind: str, name: str, allowed: Iterable[str], listing: str = "", are: str = "are known", besides: Iterable[str] = ()
) -> PlumblineError:
    """Return the error for a `name` that is not among `allowed`; it suggests the nearest allowed name.

    Case makes no difference to what is near.

    Args:
        kind: what the name should be, in words.
        name: as it was written.
        allowed: the names that there are.
        listing: the command that lists all of them and no others, for when there are too many for one line.
        are: what is true of them, in words that follow their number.
        besides: further names that are allowed, which the listing has under others.
    """
    names = sorted(allowed)
    if not names:
        return PlumblineError(f"unknown {kind} {shown(name)}: there is none")
    every = sorted({*names, *besides})
    near = _near(name, every)
    hint = f"did you mean {near[0]!r}? " if near else ""
    if len(names) <= LISTED:
        return PlumblineError(f"unknown {kind} {shown(name)}: {hint}allowed: {', '.join(every)}")
    told = f": `{listing}` lists them" if listing else ""
    some = "" if near else f"{', '.join(names[:3])} ... "
    return PlumblineError(f"unknown {kind} {shown(name)}: {hint}{some}{len(names)} {are}{told}")


def _near(name: str, names: Sequence[str]) -> list[str]:
    """Return the nearest name first: the most similar one, or else the shortest that `name` is a part of."""
    typed, lower = str(name).casefold(), {one.casefold(): one for one in names}
    found = get_close_matches(typed, lower, n=1) or sorted((one for one in lower if typed and typed in one), key=len)
    return [lower[one] for one in found]


def shown(value: object, longest: int = 60) -> str:
    """Return a value as an error has it: on one line, cut where it is long, words in quotes, and numbers as digits.

    NumPy's numbers look like Python's, inside of lists too: `nan`, and not `np.float64(nan)`.
    """
    import numpy as np  # here: few errors need it

    plain = value.tolist() if isinstance(value, np.ndarray) else value
    with np.printoptions(legacy="1.25"):
        text = " ".join((repr(plain) if isinstance(plain, str) else str(plain)).split())
    return text if len(text) <= longest else f"{text[:longest]} ..."


def kind_of(value: object) -> str:
    """Return what a value is that something else was wanted for, after "returned": `None`, `a str`, `an int`."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def describe_os_error(error: OSError, elsewhere: str = "") -> str:
    """Describe an error of the operating system in one line, with its usual remedy if there is one.

    Args:
        error: of the operating system.
        elsewhere: how the user says where else to write, for where writing is not permitted; empty if unknown.
    """
    where = f" ({error.filename})" if error.filename is not None else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"disk full{where}: free some space and run the same command again; completed work is kept"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        if error.errno != errno.EROFS and _is_unreadable(error.filename):
            return f"no permission to read{where}: it may not be read by this user; check its owner and its mode"
        return f"no permission to write{where}: {', or '.join(filter(None, ['check its owner', elsewhere]))}"
    return f"{error.strerror or str(error) or type(error).__name__}{where}"


def _is_unreadable(path: object) -> bool:
    """Whether a path may not be read, or a folder above not be entered; an error does not say why a file was opened."""
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    asked = Path(os.fsdecode(path))
    closed = any(os.path.isdir(folder) and not os.access(folder, os.X_OK) for folder in asked.parents)
    return closed or (os.path.exists(asked) and not os.access(asked, os.R_OK))


def absent_module(name: str) -> str:
    """Return what to say of a module that cannot be imported; if it is in the working directory, how it can be.

    Of a module in a package, the package was found: its place is not what is wrong.
    """
    here = Path(f"{name}.py").is_file() or Path(name).is_dir()
    hint = ": it is in this folder, so set PYTHONPATH=." if here else ""
    return f"there is no module {name!r} on Python's path{hint}"

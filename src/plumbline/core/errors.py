"""The error meant for users: one line with the cause and the remedy."""

import errno
from collections.abc import Iterable
from difflib import get_close_matches


class PlumblineError(Exception):
    """A user's mistake or a failure outside the code, in one line; the command line prints it without a traceback."""


LISTED = 24
"""Names that an error lists in full; of more it gives the nearest one and the command that lists them all."""


def unknown(kind: str, name: str, allowed: Iterable[str], listing: str = "") -> PlumblineError:
    """Return the error for a `name` that is not among `allowed`; it suggests the nearest allowed name.

    Args:
        kind: what the name should be, in words.
        name: as it was written.
        allowed: the names that there are.
        listing: the command that lists them, for when there are too many for one line.
    """
    names = sorted(allowed)
    many = len(names) > LISTED
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    if not many:
        return PlumblineError(f"unknown {kind} {name!r}: {hint}allowed: {', '.join(names)}")
    told = f": `{listing}` lists them" if listing else ""
    some = "" if near else f"{', '.join(names[:3])} ... "
    return PlumblineError(f"unknown {kind} {name!r}: {hint}{some}{len(names)} are known{told}")


def describe_os_error(error: OSError) -> str:
    """Return a one-line description of an operating-system error, with its usual remedy if there is one."""
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"disk full{where}: free some space and run the same command again; completed work is kept"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission to write{where}: check its owner, or choose another `results` folder in the config"
    return f"{error.strerror or error}{where}"

"""The one error that users are meant to read: a line that names the thing and the remedy."""

import errno
from collections.abc import Iterable
from difflib import get_close_matches


class PlumblineError(Exception):
    """A mistake or an accident outside the code, told in one line; the command line prints it without a traceback."""


def unknown(kind: str, name: str, allowed: Iterable[str]) -> PlumblineError:
    """Return the error for a `name` that is none of the `allowed`, with the nearest one suggested."""
    names = sorted(allowed)
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return PlumblineError(f"unknown {kind} {name!r}: {hint}allowed: {', '.join(names)}")


def describe_os_error(error: OSError) -> str:
    """Return one line for an operating-system error, with the remedy where there is a usual one."""
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"disk full{where}: free some space and run the same command again; what was computed is kept"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission to write{where}: check the owner of the folder or choose another `results` in the config"
    return f"{error.strerror or error}{where}"

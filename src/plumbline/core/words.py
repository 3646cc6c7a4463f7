"""Words of messages: numbers of things, and names that commas separate."""

from collections.abc import Iterable

from plumbline.core.errors import PlumblineError, shown


def counted(number: int, noun: str) -> str:
    """Return a number of things, as in `1 round` and `2 rounds`; the plural of `noun` takes an s."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def names_of(names: str | Iterable[str], what: str) -> list[str]:
    """Return names that are given one by one, or in a text with commas between them; none of an empty text.

    Args:
        names: as they were given.
        what: the argument or the option that they are given by.

    Raises:
        PlumblineError: a name is empty, or something is no name.
    """
    names = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else names
    if not (isinstance(names, Iterable) and all(isinstance(name, str) for name in names)):
        raise PlumblineError(f"{what}: names are wanted, in a list or separated by commas (got {shown(names)})")
    found = [name.strip() for name in names.split(",")] if isinstance(names, str) and names else list(names)
    if not all(found):
        raise PlumblineError(f"{what} {str(names)[:60]!r}: commas separate names")
    return found

"""Versions of installed libraries, by the names of their distributions."""

import importlib.metadata
from collections.abc import Iterable
from functools import cache


@cache
def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution; None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def absent(distributions: Iterable[str]) -> list[str]:
    """Return those of the distributions that are not installed."""
    return [one for one in distributions if installed_version(one) is None]

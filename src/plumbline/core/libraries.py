"""Versions of installed libraries, by the names of their distributions."""

import importlib.metadata
from collections.abc import Iterable, Mapping
from functools import cache


@cache
def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution; None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def distribution_of(module: str) -> str | None:
    """Return the distribution that a top-level module is part of; None where none says so."""
    if installed_version(module) is not None:
        return module
    return next(iter(_distributions().get(module, ())), None)


@cache
def _distributions() -> Mapping[str, list[str]]:
    """The distributions by their top-level modules: this reads the files of all, for those with other names alone."""
    return importlib.metadata.packages_distributions()


def absent(distributions: Iterable[str]) -> list[str]:
    """Return those of the distributions that are not installed."""
    return [one for one in distributions if installed_version(one) is None]

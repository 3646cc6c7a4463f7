"""Surrogates of one Gaussian process, or of one for each outcome."""

from collections.abc import Callable

from plumbline.models.gp.process import GP

Surrogate = GP | list[GP]
"""A process, or one an outcome."""


def processes_of(surrogate: Surrogate) -> list[GP]:
    """Return the processes of a surrogate, one an outcome."""
    return surrogate if isinstance(surrogate, list) else [surrogate]


def changed(surrogate: Surrogate, change: Callable[[GP], GP]) -> Surrogate:
    """Return a surrogate with each of its processes changed."""
    return [change(one) for one in surrogate] if isinstance(surrogate, list) else change(surrogate)

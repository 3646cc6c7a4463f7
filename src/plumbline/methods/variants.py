"""Methods as their paper has them, or as their published code does."""

from typing import Literal, TypeVar

DepartureT = TypeVar("DepartureT", bound=str)

Variant = Literal["paper", "code"] | tuple[DepartureT, ...]
"""`paper`; `code`, the published code where it departs from the text; or some of its departures."""


def departures_of(variant: Variant[DepartureT], every: tuple[DepartureT, ...]) -> frozenset[DepartureT]:
    """Return what a method does as the published code does it.

    Args:
        variant: that is asked for.
        every: departure that there is.
    """
    if isinstance(variant, str):
        return frozenset(every if variant == "code" else ())
    return frozenset(variant)

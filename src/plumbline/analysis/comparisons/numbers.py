"""Numbers as tables show them, on a screen and on pages."""

from collections.abc import Callable, Iterable
from math import isinf, isnan

NOTHING = "–"
"""In the place of a number that there is not."""

LONGEST = 1e6
"""From here on numbers have a power of ten; below, all digits before the point."""


def significant(value: float, digits: int) -> str:
    """Return a number with so many significant digits, a dash where there is none: `0.0123`, `176,300`.

    Zero has no sign.
    """
    if isnan(value):
        return NOTHING
    text = f"{value + 0.0:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text and abs(float(text)) < LONGEST else text


def short(value: float) -> str:
    """Return a number with three digits, a dash where there is none."""
    return significant(value, 3)


def interval(low: float, high: float) -> str:
    """Return an interval in brackets, nothing where there is none, and a dash in brackets where an end is open."""
    if isnan(low):
        return ""
    return f"[{NOTHING}]" if is_open(low, high) else f"[{short(low)}, {short(high)}]"


WHY_OPEN = "too few values for an interval, or all values equal"
"""Why an interval has an open end."""


def intervals_in_words(ends: Iterable[tuple[float, float]]) -> str:
    """Return the line of a legend on these intervals, which says what an open one means where there is one."""
    return "intervals: 95%" + f"; [{NOTHING}]: {WHY_OPEN}" * any(is_open(*one) for one in ends)


NO_INTERVAL = "no interval"
"""In words, in the place of one that is open at both ends."""


def ends_in_words(low: float, high: float, written: Callable[[float], str] = short) -> str:
    """Return the ends of an interval in words: `1 to 2`, `above 1`, `below 2`, or `NO_INTERVAL`."""
    if isnan(low) or isnan(high) or (isinf(low) and isinf(high)):
        return NO_INTERVAL
    if isinf(high):
        return f"above {written(low)}"
    return f"below {written(high)}" if isinf(low) else f"{written(low)} to {written(high)}"


def is_open(low: float, high: float) -> bool:
    """Whether an end of an interval is open."""
    return isinf(low) or isinf(high)


def probability(p: float, least: float = 1e-3) -> str:
    """Return a p-value with two digits, as papers print it: `.042`, or `<.001` below `least`; a dash without one."""
    if isnan(p):
        return NOTHING
    bound = f"{least:f}".rstrip("0")
    return f"<{bound.removeprefix('0')}" if p < least else significant(p, 2).removeprefix("0") or "0"

"""Numbers of comparisons, as tables on a screen show them."""

from math import isinf, isnan


def short(value: float) -> str:
    """Return a number with three digits, a dash where there is none."""
    return "–" if isnan(value) else f"{value:.3g}"


def interval(low: float, high: float) -> str:
    """Return an interval in brackets, nothing where there is none, and a dash in brackets where an end is open."""
    if isnan(low):
        return ""
    return "[–]" if is_open(low, high) else f"[{low:.3g}, {high:.3g}]"


OPEN = "[–]: too few seeds for an interval"
"""What an interval with an open end means."""


def is_open(low: float, high: float) -> bool:
    """Whether an end of an interval is open."""
    return isinf(low) or isinf(high)


def probability(p: float) -> str:
    """Return a p-value with two digits, a dash where there is none."""
    return "–" if isnan(p) else f"{p:.2g}" if p >= 1e-3 else "<.001"

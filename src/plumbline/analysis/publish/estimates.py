"""Numbers with their intervals, and how pages write them."""

import math
import re
from dataclasses import dataclass, replace
from typing import SupportsFloat

from plumbline.analysis.comparisons.numbers import ends_in_words


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval; NaN where there is none.

    Attributes:
        value, low, high: the estimate and the ends of its interval.
        median: over the seeds.
        share: of the seeds: on the claimed side of a test, or where the first of two methods has the higher value.
        seeds: how many.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    median: float = math.nan
    share: float = math.nan
    seeds: int = 0

    def __float__(self) -> float:
        return self.value

    def __neg__(self) -> "Estimate":
        """The same difference the other way round; the share of the seeds stays."""
        return replace(self, value=-self.value, low=-self.high, high=-self.low, median=-self.median)

    def __sub__(self, shift: float) -> "Estimate":
        """The distance to `shift`: of a ratio, the excess over one."""
        parts = {name: getattr(self, name) - shift for name in ("value", "low", "high", "median")}
        return replace(self, **parts)


def rounded(value: SupportsFloat, digits: int) -> str:
    """A number to `digits` decimals, without the zero before its point: `-.05`."""
    text = f"{round(float(value), digits) + 0.0:,.{digits}f}"
    return re.sub(r"^(-?)0\.", r"\1.", text)


def interval(estimate: Estimate, digits: int) -> str:
    """The ends of a 95% interval: `.51 to 1.75`."""
    return ends_in_words(estimate.low, estimate.high, lambda end: rounded(end, digits))


def with_interval(estimate: Estimate, digits: int) -> str:
    """An estimate and its interval: `1.11 (.51 to 1.75)`."""
    return f"{rounded(estimate.value, digits)} ({interval(estimate, digits)})"


def percent(value: SupportsFloat, digits: int = 0) -> str:
    """A share in percent: `84%`."""
    return f"{rounded(100 * float(value), digits)}%"


def percent_interval(estimate: Estimate, digits: int = 0) -> str:
    """The ends of an interval of a share, in percent: `75% to 91%`."""
    return ends_in_words(estimate.low, estimate.high, lambda end: percent(end, digits))

"""Whether a difference between two methods is due to the search for their queries or to their utilities.

The rule of docs/results/eulbo-protocol.md, for the same seeds with two searches.
"""

from typing import NamedTuple

from plumbline.analysis.publish.estimates import Estimate


class TwoSearches(NamedTuple):
    """A difference between two methods under two searches, seed by seed.

    Attributes:
        own: the difference with the search that the methods have by themselves.
        shared: with one search for all.
        change: the former minus the latter.
    """

    own: Estimate
    shared: Estimate
    change: Estimate

    @property
    def cause(self) -> str:
        """What the difference is due to: `search`, `utility`, `search and utility`, or `open`."""
        side = _side(self.own)
        if not side:
            return "open"
        less_than_half = self.shared.value * side < self.own.value * side / 2
        causes = {
            "search": _side(self.change) == side and less_than_half,
            "utility": _side(self.shared) == side,
        }
        return " and ".join(name for name, holds in causes.items() if holds) or "open"


def _side(estimate: Estimate) -> int:
    """Return 1 or -1 where the interval is above or below zero, 0 where it has zero in it."""
    return (estimate.low > 0) - (estimate.high < 0)

"""Joint searches of conformal methods by several seeds, whose chains walk together.

The numbers of a seed do not depend on the others, to the last bit.
"""

from collections.abc import Sequence
from typing import Any

from plumbline.methods.composed import Choice
from plumbline.methods.conformal.walks import walked
from plumbline.methods.gp.in_lockstep import of_one_size
from plumbline.methods.lockstep import Turn
from plumbline.spaces.box import Box

AT_ONCE = 16
"""Greatest number of searches whose chains walk together: more take more memory, and no less time each."""


def searches(turns: Sequence[Turn]) -> list[Choice[Any] | None]:
    """Return the choice of each search; None for one to be taken alone: outside of boxes, of batches, or where the
    acquisition function has no form in arrays."""
    started = {}
    for row, turn in enumerate(turns):
        utility, _, round = turn.arguments
        if type(round.space) is Box and round.q == 1 and utility.single_points() is not None:
            with turn.isolated():
                started[row] = turn.method.start_walk(utility, round)
    found: list[Choice[Any] | None] = [None] * len(turns)
    for rows in of_one_size({row: len(turns[row].arguments[-1].data) for row in started}, AT_ONCE):
        for row, end in zip(rows, walked([started[row] for row in rows]), strict=True):
            with turns[row].isolated():
                found[row] = turns[row].method.end_walk(end, turns[row].arguments[1])
    return found

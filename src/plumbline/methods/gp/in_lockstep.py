"""Joint steps of several seeds of a method with one exact GP: their fits, and the climbs of their searches.

The numbers of a seed do not depend on the others, to the last bit: only the evaluation of likelihoods and acquisition
functions is shared, data set by data set. A step that would warn is taken alone, so that its own round has the event.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from plumbline.methods.ask import event_names, every_warning
from plumbline.methods.composed import Choice
from plumbline.methods.lockstep import Turn
from plumbline.models.gp.fit import ELEMENTS
from plumbline.spaces.box import ends_of_each


def fits(turns: Sequence[Turn]) -> list[Any | None]:
    """Return the surrogate of each round by `fit_each` of its method, fitted together where data sets have one size.

    None for one to be fitted alone.
    """
    found: list[Any | None] = [None] * len(turns)
    data = [turn.arguments[0].data for turn in turns]
    for rows in of_one_size({row: len(one) for row, one in enumerate(data)}):
        X, Y = torch.stack([data[row].X for row in rows]), torch.stack([data[row].Y for row in rows])
        with warnings.catch_warnings(record=True) as caught, every_warning():
            surrogates = turns[0].method.fit_each(X, Y, without_warning=True)
        if event_names(caught):  # nobody knows whose they are
            continue
        for row, surrogate in zip(rows, surrogates, strict=True):
            found[row] = surrogate
    return found


def searches(turns: Sequence[Turn]) -> list[Choice[Any] | None]:
    """Return the choice of each search, its climbs taken together with the others'; None outside of boxes."""
    started = {}
    for row, turn in enumerate(turns):
        with turn.isolated():
            started[row] = turn.method.start_search(*turn.arguments)
    found: list[Choice[Any] | None] = [None] * len(turns)
    sizes = {row: len(turns[row].arguments[-1].data) for row, climbs in started.items() if climbs is not None}
    for rows in of_one_size(sizes):
        each = ends_of_each([started[row] for row in rows], turns[0].method.options.search)
        for row, ends in zip(rows, each, strict=True):
            utility, surrogate, _ = turns[row].arguments
            found[row] = Choice(ends[0], utility, surrogate, ends=ends)
    return found


def of_one_size(sizes: Mapping[int, int], most: int | None = None) -> list[list[int]]:
    """Return the numbers of data sets in groups of one size, whose covariances together fit the processor's cache.

    Args:
        sizes: the number of observations of each.
        most: greatest size of a group; None for no other limit.
    """
    parts = []
    for size in sorted(set(sizes.values())):
        rows, step = [row for row, other in sizes.items() if other == size], max(1, ELEMENTS // size**2)
        step = step if most is None else min(step, most)
        parts += [rows[first : first + step] for first in range(0, len(rows), step)]
    return parts

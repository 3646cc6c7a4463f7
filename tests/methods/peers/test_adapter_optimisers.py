"""Optimisers of libraries that are kept from round to round, as the benchmarks keep them."""

import math
from typing import Any

import numpy as np
import pytest
from peers_cases import CASES, installed, on_a_hill
from situations import box

from plumbline.methods.peers.adapter import OptimiserMethod, quiet

KEPT = [(name, options) for name, options in CASES if name not in ("botorch-loop", "cma-es", "ask-tell")]


LABELS = ["-".join([name, *map(str, options.values())]) for name, options in KEPT]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), KEPT, ids=LABELS)
def test_values_are_those_of_the_points_asked_for_in_their_order(name: str, options: dict[str, Any]) -> None:
    method, history = installed(name, options, box()), on_a_hill(11)
    assert isinstance(method, OptimiserMethod)
    with quiet():
        optimiser = method.optimiser(0, 1)
        for x, y in zip(history.X.numpy(), history.Y[:, 0].tolist(), strict=True):
            optimiser.tell(x, y)
        first = optimiser.ask(1)
        optimiser.tell(first[0], -1.0)
        second = optimiser.ask(1)
        optimiser.tell(second[0], math.nan)
        third = optimiser.ask(1)
    X = np.concatenate([first, second, third])
    assert X.shape == (3, 2)
    assert not np.array_equal(first, second)

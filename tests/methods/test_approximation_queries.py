"""Queries of the EULBO, which are moved in the unit cube, are points of the problem's own box."""

import pytest
import torch

from plumbline.history import History
from plumbline.methods.approximation import EulboImprovement, EulboMethodOptions
from plumbline.methods.base import Domain
from plumbline.methods.composed import Choice
from plumbline.models.minibatches import TrainingOptions
from plumbline.spaces.box import Box

ROVER = (-2 / 60, 4 / 60)
"""A box in which low + width is more than high, by one unit in the last place."""


@pytest.mark.parametrize("low_high", [ROVER, (0.0, 1.0), (-8.0, 8.0)])
@pytest.mark.parametrize("corner", [0.0, 1.0])
def test_a_query_in_a_corner_of_the_cube_is_inside_of_the_box(low_high: tuple[float, float], corner: float) -> None:
    bounds = torch.tensor(low_high, dtype=torch.float64).unsqueeze(-1).expand(2, 3).contiguous()
    options = EulboMethodOptions(inducing=2, training=TrainingOptions(epochs=1))
    method = EulboImprovement(Domain(Box(bounds)), options)
    X = Box(bounds).draw(6, History(bounds[:0], bounds[:0, :1]), torch.Generator().manual_seed(0))
    history = History(X, X.sum(-1, keepdim=True))
    round = method.turn_round(history, 1, torch.Generator().manual_seed(1))
    process = method.fit(history)
    choice = Choice(X[:1], method.utility(process, round), process)
    asked = method.refined(process, torch.full((1, 3), corner, dtype=torch.float64), choice, round).X
    assert bool((asked >= bounds[0]).all())
    assert bool((asked <= bounds[1]).all())
    torch.testing.assert_close(asked, bounds[int(corner)].unsqueeze(0))

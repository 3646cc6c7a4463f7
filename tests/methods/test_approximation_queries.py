"""Queries of the sparse methods where rounding, or a departure of the published code, puts them at risk."""

import pytest
import torch

from plumbline.history import History
from plumbline.methods.approximation import EulboImprovement, EulboMethodOptions, PlacedImprovement, SparseOptions
from plumbline.methods.base import Domain
from plumbline.methods.composed import Choice
from plumbline.models.minibatches import TrainingOptions
from plumbline.models.process_model import ProcessModel
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


def test_a_stale_factor_leaves_a_variance_that_can_be_searched() -> None:
    """Where points are in another order than what belongs to them, less than nothing may be left: it is raised."""
    bounds = torch.tensor([[0.0] * 6, [1.0] * 6], dtype=torch.float64)
    X = Box(bounds).draw(100, History(bounds[:0], bounds[:0, :1]), torch.Generator().manual_seed(0))
    history = History(X, torch.sin(5 * X).sum(-1, keepdim=True), 100)
    options = SparseOptions(variant=("frozen-inducing",), training=TrainingOptions(epochs=10))
    process = PlacedImprovement(Domain(Box(bounds)), options).fit(history)
    assert process.stale is not None
    points = Box(bounds).draw(2000, history, torch.Generator().manual_seed(1)).unsqueeze(-2)
    A, B = process.seen(points)
    left = process.parameters.outputscale + (B[..., :-1, :].square() - A.square()).sum(-2)
    assert float(left.min()) < 0, "else this tests nothing"
    assert float(ProcessModel(process).posterior(points).variance.min().detach()) > 0

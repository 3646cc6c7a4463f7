"""What every space does: draws, says what is left, cuts itself to a region, finds where a utility peaks."""

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.models import SingleTaskGP
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.spaces.base import Space, checked_points
from plumbline.spaces.blocks import Blocks
from plumbline.spaces.box import Box
from plumbline.spaces.search import MultiStart, SearchOptions, inside
from plumbline.spaces.stepped import Stepped
from plumbline.spaces.table import Table

QUICK = SearchOptions(restarts=2, raw_samples=16, maxiter=20)


def generator(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def history(X: Tensor, initial: int = 0) -> History:
    return History(X, X.sum(dim=-1, keepdim=True), initial)


@pytest.fixture(params=["box", "stepped", "table", "blocks"])
def space(request: pytest.FixtureRequest, bounds: Tensor) -> Space:
    rows = Box(bounds).draw(12, history(bounds[:0]), generator(1))
    middle = bounds.mean(dim=0)
    return {
        "box": Box(bounds),
        "stepped": Stepped(bounds, torch.tensor([0.0, 0.5], dtype=torch.float64)),
        "table": Table(bounds, rows),
        "blocks": Blocks(bounds, ((0,), (1,)), middle, 9),
    }[request.param]


def test_draws_lie_in_it_and_come_from_the_generator_alone(space: Space) -> None:
    nothing = history(space.bounds[:0])
    X = space.draw(5, nothing, generator())
    assert X.shape == (5, 2)
    assert inside(X, space.bounds).all()
    assert torch.equal(X, space.draw(5, nothing, generator()))
    assert not torch.equal(X, space.draw(5, nothing, generator(1)))


def test_the_peak_of_a_settled_space_is_in_it(space: Space, model: SingleTaskGP) -> None:
    settled = space.settle(history(space.bounds[:0]), generator())
    X = settled.maximise(UpperConfidenceBound(model, 4.0), MultiStart(1, QUICK, 3))
    assert X.shape == (1, 2)
    assert inside(X, space.bounds).all()
    if isinstance(settled, Table):
        assert (settled.rows == X).all(dim=-1).any()
        rest = settled.without(X)
        assert rest.size == settled.size - 1
        assert not (rest.rows == X).all(dim=-1).any()
    else:
        assert settled.without(X).size == float("inf")


def test_a_region_cuts_it(space: Space) -> None:
    low, high = space.bounds
    region = torch.stack([low, low + 0.6 * (high - low)])
    cut = space.within(region, history(space.bounds[:0]), 1)
    settled = cut.settle(history(space.bounds[:0]), generator())
    X = settled.rows if isinstance(settled, Table) else settled.draw(5, history(space.bounds[:0]), generator())
    assert inside(X, region).all()
    assert type(cut) is type(space)


def test_nearest_points_may_be_asked_for(space: Space) -> None:
    X = Box(space.bounds).draw(4, history(space.bounds[:0]), generator(2))
    near = space.nearest(X, history(space.bounds[:0]))
    assert near.shape == (4, 2)
    assert len(torch.unique(near, dim=0)) == 4
    if not space.finite and not isinstance(space, Stepped):
        assert torch.equal(near, X)


def test_points_beyond_a_bound_by_rounding_are_on_it() -> None:
    space = Box(torch.tensor([[0.0, -5.0], [1.0, 10.0]], dtype=torch.float64))
    X = torch.tensor([[1.0 + 1e-12, -5.0 - 1e-9], [0.5, 10.0]], dtype=torch.float64)
    assert checked_points("somebody", X, space).tolist() == [[1.0, -5.0], [0.5, 10.0]]
    assert X[0, 0] > 1, "it is a copy"
    with pytest.raises(PlumblineError, match="input 2 must lie in its bounds"):
        checked_points("somebody", X - 1e-3, space)

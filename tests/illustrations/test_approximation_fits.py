"""Fits with few inducing points: the exact query is that of an exact model, and distances are to it."""

import pytest
import torch
from botorch.acquisition import ExpectedImprovement

from plumbline.illustrations.approximation_fits import (
    BOUNDS,
    EXACT,
    HILL,
    NOISE_STD,
    SHORE,
    WAVES,
    FitsOptions,
    draw,
    fits,
)
from plumbline.illustrations.base import grid
from plumbline.methods.sparse.eulbo import EulboMethodOptions
from plumbline.methods.sparse.soft_improvement import NODES
from plumbline.models.gp.fit import fit_process
from plumbline.models.svgp.minibatches import TrainingOptions

pytestmark = pytest.mark.filterwarnings("ignore")
LONG = TrainingOptions(batch=64, epochs=300, failures=50)


def chance(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_most_data_are_left_and_the_hill_is_right() -> None:
    function, history = draw(chance(0))
    left = history.X.squeeze(-1) < SHORE
    assert (int(left.sum()), int((~left).sum())) == (WAVES, HILL)
    x = grid(1001)
    assert x[function(x).argmax()] == pytest.approx(function.peak, abs=0.03)
    noise = history.Y - function(history.X)
    assert float(noise.std()) == pytest.approx(NOISE_STD, rel=0.4)


def test_the_exact_query_is_where_the_improvement_of_an_exact_process_is_greatest() -> None:
    options = FitsOptions(method=EulboMethodOptions(inducing=4, training=TrainingOptions(epochs=1)))
    _, history = draw(chance(3))
    x = grid(101)
    (found,) = fits([history], options, x, chance(4))
    model = fit_process(history.X, history.Y, BOUNDS, EXACT).model
    with torch.no_grad():
        improvement = ExpectedImprovement(model, history.Y.max())(x.view(-1, 1, 1))
    assert float(found.exact_query) == float(x[improvement.argmax()])


@pytest.mark.slow
def test_as_many_inducing_points_as_data_ask_where_the_exact_process_does() -> None:
    """Else the distances would say nothing of the approximation."""
    options = FitsOptions(
        method=EulboMethodOptions(inducing=24, training=TrainingOptions(batch=64, epochs=500, failures=100))
    )
    _, history = draw(chance(1))
    (found,) = fits([history], options, grid(101), chance(5))
    assert abs(float(found.elbo_query - found.exact_query)) <= 0.03


@pytest.mark.slow
def test_a_query_alone_leaves_the_process_as_the_elbo_left_it() -> None:
    kept = FitsOptions(method=EulboMethodOptions(inducing=4, training=LONG, refines="nothing"))
    _, history = draw(chance(2))
    (found,) = fits([history], kept, grid(101), chance(6))
    assert torch.equal(found.elbo.row, found.eulbo.row)
    assert torch.equal(found.alone_query, found.eulbo_query)
    moving = FitsOptions(method=EulboMethodOptions(inducing=4, training=LONG))
    (found,) = fits([history], moving, grid(101), chance(6))
    assert not torch.equal(found.elbo.row, found.eulbo.row)


def test_the_quadrature_has_as_many_nodes_as_table_1() -> None:
    """The one setting of the table that is no option."""
    assert NODES == 20

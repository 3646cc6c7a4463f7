"""CMA-ES: its generations, replayed from the history."""

import numpy as np
import pytest
import torch
from peers_cases import hill, on_a_hill, skip_if_absent
from situations import ask, box

from plumbline.core.history import History
from plumbline.methods.base import build_method
from plumbline.methods.peers.cma_es import CMAESOptions, replayed

U = np.random.default_rng(0).uniform(size=(30, 3))
COST = ((U - 0.4) ** 2).sum(axis=1)


@pytest.fixture(autouse=True)
def _installed() -> None:
    skip_if_absent("cma-es")


def test_it_begins_at_the_best_point_of_the_initial_design() -> None:
    strategy = replayed(U, COST, 30, 0, CMAESOptions())
    np.testing.assert_array_equal(strategy.mean, U[COST.argmin()])
    assert strategy.population_size == 4 + int(3 * np.log(3))


def test_it_begins_in_the_middle_where_every_initial_evaluation_failed() -> None:
    np.testing.assert_array_equal(replayed(U[:2], np.full(2, np.inf), 2, 0, CMAESOptions()).mean, [0.5, 0.5, 0.5])


def test_complete_generations_are_told_and_the_rest_waits() -> None:
    for told, generations in (9, 0), (10, 1), (15, 1), (16, 2):
        strategy = replayed(U[: told + 4], COST[: told + 4], 4 + 4, 0, CMAESOptions(population_size=6))
        assert strategy.generation == generations, told


def test_replayed_it_is_the_strategy_that_went_through_the_rounds() -> None:
    """A strategy that is kept, asks and is told; only its own random numbers are others."""
    from cmaes import CMA

    unit = np.tile([0.0, 1.0], (3, 1))
    kept = CMA(U[COST[:5].argmin()], 1 / 6, unit, seed=1)
    points, costs = list(U[:5]), list(COST[:5])
    for _ in range(4):
        asked = [kept.ask() for _ in range(kept.population_size)]
        cost = [float(((x - 0.4) ** 2).sum()) for x in asked]
        kept.tell(list(zip(asked, cost, strict=True)))
        points += asked
        costs += cost
    found = replayed(np.array(points), np.array(costs), 5, 1, CMAESOptions())
    assert found.generation == 4
    for name in ("_mean", "_sigma", "_C", "_pc", "_p_sigma"):
        np.testing.assert_allclose(getattr(found, name), getattr(kept, name), rtol=1e-12, atol=1e-15)


def test_a_failed_evaluation_is_the_worst_of_its_generation() -> None:
    bad, failed = COST.copy(), COST.copy()
    bad[7], failed[7] = 1e6, np.inf
    one, other = (replayed(U, cost, 5, 0, CMAESOptions()) for cost in (bad, failed))
    np.testing.assert_array_equal(one.mean, other.mean)
    assert not np.array_equal(one.mean, replayed(U, COST, 5, 0, CMAESOptions()).mean)


def test_it_finds_the_top_of_a_hill() -> None:
    method, history = build_method("cma-es", {}, box().domain), on_a_hill(5)
    for seed in range(30):
        X = ask(method, history, 6, seed).X
        history = history.join(X, hill(X))
    assert history.Y[-6:].median() > -1e-3


def test_points_on_the_bounds_are_in_the_unit_cube() -> None:
    """Rounding must not put the mean outside, which the package refuses."""
    bounds = box().domain.bounds
    X = bounds.repeat(3, 1) * torch.tensor(1.0, dtype=torch.float64)
    proposal = ask(build_method("cma-es", {}, box().domain), History(X, hill(X), 6), 2)
    assert ((bounds[0] <= proposal.X) & (bounds[1] >= proposal.X)).all()

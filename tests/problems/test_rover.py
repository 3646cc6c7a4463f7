import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import splev, splprep

from plumbline.problems.rover import EDGES, GOAL, MIDDLES, PARAMETERS, SIDE, START, Rover, blocked, cost, way

LOW, HIGH = -2 / 60, 4 / 60
I = np.arange(60)  # noqa: E741
STRAIGHT = np.full((30, 2), 0.03)


def steps(seed: int, n: int = 30) -> np.ndarray:
    return np.random.default_rng(seed).uniform(LOW, HIGH, (n, 2))


def value(x: np.ndarray) -> float:
    return float(Rover()(torch.from_numpy(x.ravel()), noise=False))


def by_fitpack(steps: np.ndarray) -> np.ndarray:
    points = np.cumsum([START, *steps], axis=0)
    points = points[np.r_[True, (np.diff(points, axis=0) != 0).any(axis=1)]]
    spline, _ = splprep(points.T, k=min(3, len(points) - 1), s=0)
    return np.stack(splev(PARAMETERS, spline), axis=1)


@given(seed=st.integers(0, 10_000), stops=st.sets(st.integers(0, 29), max_size=28))
@settings(max_examples=80)
def test_the_way_is_that_of_splprep_wherever_the_rover_stops(seed: int, stops: set[int]) -> None:
    asked = steps(seed)
    asked[list(stops)] = 0.0
    np.testing.assert_allclose(way(asked), by_fitpack(asked), rtol=0, atol=1e-10)


def test_the_way_goes_through_every_point_and_not_straight() -> None:
    asked = steps(0, 6)
    points = np.cumsum([START, *asked], axis=0)
    path = way(asked)
    assert all(np.linalg.norm(path - point, axis=1).min() < 1e-3 for point in points)
    np.testing.assert_allclose(path[[0, -1]], points[[0, -1]], atol=1e-14)
    length = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
    assert length > np.linalg.norm(asked, axis=1).sum() * 1.001


def test_a_rover_that_stays_pays_for_its_distance_alone() -> None:
    assert value(np.zeros((30, 2))) == pytest.approx(5 - 100 * 1.8)


@pytest.mark.parametrize("moves", [1, 2])
def test_a_line_or_a_parabola_through_fewer_points_than_a_cubic_needs(moves: int) -> None:
    asked = np.zeros((30, 2))
    asked[5] = (0.06, 0.02)
    asked[9] = (0.01, 0.05) if moves == 2 else 0
    path = way(asked)
    end = np.add(START, asked.sum(axis=0))
    np.testing.assert_allclose(path[-1], end)
    bend = np.diff(path, n=moves + 1, axis=0)
    np.testing.assert_allclose(bend, 0.0, atol=1e-12)


def test_the_straight_line_pays_for_its_length_and_for_four_obstacles() -> None:
    path = way(STRAIGHT)
    along = np.hypot(0.9, 0.9)
    np.testing.assert_allclose(path[:, 0], path[:, 1])
    np.testing.assert_allclose(path[-1], GOAL)
    expected = 5 - 0.05 * along - 20 * 4 * SIDE * math.sqrt(2)
    assert value(STRAIGHT) == pytest.approx(expected, abs=20 * 8 * along / 999)


def test_obstacles_are_34_squares_and_the_outside() -> None:
    squares = list(product(MIDDLES, MIDDLES))[1:-1]
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(-0.1, 1.1, (4000, 2)), rng.choice(EDGES, (500, 2)), squares])
    inside = [any((x - 0.04 <= p < x + 0.04) and (y - 0.04 <= q < y + 0.04) for x, y in squares) for p, q in points]
    outside = [not (0 <= p < 1 and 0 <= q < 1) for p, q in points]
    assert len(squares) == 34
    assert blocked(points).tolist() == np.logical_or(inside, outside).tolist()


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((0.16, 0.2), True),
        ((0.2 - SIDE / 2, 0.2 - SIDE / 2), True),
        ((0.2 + SIDE / 2, 0.2), False),
        ((0.0, 0.1), False),
        ((1.0, 0.9), True),
        (START, False),
        (GOAL, False),
        ((0.0, 0.0), False),
        ((0.99, 0.99), False),
        ((0.02, 0.99), True),
        ((0.5, -1e-9), True),
    ],
)
def test_edges_and_corners(point: tuple[float, float], expected: bool) -> None:
    assert blocked(np.array([point])).item() is expected


def test_a_point_in_an_obstacle_and_outside_pays_once() -> None:
    assert cost(np.array([[1.01, 0.4], [1.02, 0.4]])) == pytest.approx(0.01 * 20.05 + 100 * (0.07 + 0.55))


@pytest.mark.parametrize(
    ("x", "reward"),
    [
        (0.03 + 0.025 * np.sin(I), -7.740921686842849),
        (0.03 + 0.025 * np.sin(I / 5), -5.659795812478489),
        (np.where(I % 2 == 0, 0.066, -0.033) * np.cos(I) ** 2, -167.48788470055186),
        (np.full(60, 0.03), -4.033066168060611),
    ],
)
def test_rewards_are_those_of_the_published_code(x: np.ndarray, reward: float) -> None:
    """Its code was run once on these points, in float64."""
    assert value(x) == pytest.approx(reward, abs=2e-6)


SMALL = st.sampled_from([0.0, 1e-300, -1e-18, 1e-17, 1e-16, 1e-12, 1e-6])


@pytest.mark.slow
@given(x=st.lists(st.one_of(SMALL, st.floats(LOW, HIGH)), min_size=60, max_size=60))
@settings(max_examples=150)
def test_every_reward_is_finite_and_below_that_of_the_straight_line_without_obstacles(x: list[float]) -> None:
    reward = value(np.array(x).clip(LOW, HIGH))
    assert math.isfinite(reward)
    assert reward <= 5 - 0.05 * 0.9 * math.sqrt(2)

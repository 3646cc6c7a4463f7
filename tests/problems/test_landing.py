import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.problems.landing import (
    LANDED,
    LEFT,
    LOST,
    MAIN,
    NOTHING,
    PUSH,
    RIGHT,
    OlderLander,
    StrongPush,
    current_lander,
    flight,
    flights,
    older_lander,
    steer,
)

GOOD = [0.5, 1.0, 0.4, 0.55, 0.5, 1.0, 0.5, 0.5, 0.0, 0.5, 0.05, 0.05]
"""Gains that land on most terrains."""

J = np.arange(12)


def test_no_process_that_flies_imports_torch() -> None:
    check = "import sys, plumbline.problems.landing; print({'torch', 'gymnasium'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", check], text=True).strip() == "set()"


class TestSteer:
    AIR = (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """Above the pad and upright, at rest."""

    def at(self, **changes: float) -> tuple[float, ...]:
        names = ("x", "y", "vx", "vy", "angle", "spin", "left", "right")
        return tuple((dict(zip(names, self.AIR, strict=True)) | changes).values())

    @pytest.mark.parametrize(
        ("changes", "action"),
        [
            ({}, NOTHING),
            ({"vy": -1.08}, NOTHING),  # lift = -.5 + .54, within the threshold of .05
            ({"vy": -1.2}, MAIN),
            ({"angle": 0.2}, RIGHT),  # turn = -.1 < -.05
            ({"angle": -0.2}, LEFT),
            ({"angle": 0.08}, NOTHING),  # within the threshold
            ({"spin": 0.2}, RIGHT),
            ({"x": 0.9}, LEFT),  # the wanted angle is .4, not .45: turn = .2
            ({"vx": -0.9}, RIGHT),
            ({"x": 0.3, "y": -0.6}, MAIN),  # lift = (.165 + .6) .5 = .38 > turn = .075
            ({"left": 1.0, "angle": 1.0, "y": 0.0}, NOTHING),  # on a leg angles do not count
            ({"right": 1.0, "vy": -0.2, "y": 0.0}, MAIN),
        ],
    )
    def test_cases_by_hand(self, changes: dict[str, float], action: int) -> None:
        assert steer(self.at(**changes), GOOD) == action

    def test_the_wanted_angle_is_clipped(self) -> None:
        gains = [*GOOD[:11], 0.21]
        assert steer(self.at(x=0.5), gains) == NOTHING  # turn = .125
        assert steer(self.at(x=0.99, vx=5.0), gains) == NOTHING  # .2, were it not for the clip far above .21
        assert steer(self.at(x=-0.99, vx=-5.0), gains) == NOTHING

    def test_on_the_ground_a_turn_may_be_asked_for(self) -> None:
        assert steer(self.at(left=1.0), [*GOOD[:8], 0.3, *GOOD[9:]]) == LEFT

    @given(
        state=st.lists(st.floats(-2, 2), min_size=6, max_size=6),
        gains=st.lists(st.floats(0, 2), min_size=12, max_size=12),
    )
    def test_a_mirrored_lander_fires_the_other_side(self, state: list[float], gains: list[float]) -> None:
        x, y, vx, vy, angle, spin = state
        mirrored = steer((-x, y, -vx, vy, -angle, -spin, 0.0, 0.0), gains)
        other = {NOTHING: NOTHING, MAIN: MAIN, LEFT: RIGHT, RIGHT: LEFT}
        assert mirrored == other[steer((*state, 0.0, 0.0), gains)]


def test_a_strong_push_changes_no_other_draw() -> None:
    usual, strong = np.random.default_rng(3), StrongPush(3, 1_000.0)
    for low, high, size in [(0.0, 6.7, (12,)), (-1_000.0, 1_000.0, None), (-1.0, 1.0, None)]:
        expected = usual.uniform(low, high, size) * (PUSH / 1_000 if high == 1_000 else 1)
        np.testing.assert_allclose(strong.uniform(low, high, size), expected, rtol=1e-12)


class Scripted:
    """A lander whose flight is a list of (reward, ended, late), awake to its end or not."""

    def __init__(self, script: list[tuple[float, bool, bool]], awake: bool = True) -> None:
        self.script, self.unwrapped = list(script), self
        self.lander = type("Body", (), {"awake": awake})
        self.np_random: Any = None

    def reset(self, seed: int | None = None) -> tuple[Any, Any]:
        return np.zeros(8), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, Any]:
        reward, ended, late = self.script.pop(0)
        return np.zeros(8), reward, ended, late, {}


@pytest.mark.parametrize(
    ("last", "awake", "total"),
    [
        ((-100.0, True, False), True, 3 + LOST),
        ((0.5, False, True), True, 3 + LOST),
        ((100.0, True, False), False, 3 + LANDED),
    ],
)
def test_the_older_lander_has_its_own_last_reward(last: tuple[float, bool, bool], awake: bool, total: float) -> None:
    script = [(1.0, False, False), (2.0, False, False), last]
    assert flight(OlderLander(Scripted(script, awake)), GOOD, 0) == total
    assert flight(Scripted(script, awake), GOOD, 0) == 3 + last[0]


def test_a_flight_is_the_sum_of_its_rewards() -> None:
    lander = current_lander()
    state, _ = lander.reset(seed=4)
    rewards: list[float] = []
    over = False
    while not over:
        state, reward, ended, late, _ = lander.step(steer(state.tolist(), GOOD))
        rewards.append(reward)
        over = ended or late
    assert flight(current_lander(), GOOD, 4) == pytest.approx(sum(rewards))
    assert len(rewards) > 100
    assert rewards[-1] == 100


def test_flights_do_not_depend_on_what_was_flown_before() -> None:
    together = flights(current_lander, GOOD, range(5))
    assert together == [flight(current_lander(), GOOD, terrain) for terrain in range(5)]
    assert together[::-1] == flights(current_lander, GOOD, range(5)[::-1])
    assert len(set(together)) == 5


@pytest.mark.parametrize(
    ("x", "reward"),
    [
        ([0.25, 0.5, 0.2, 0.275, 0.25, 0.5, 0.25, 0.25, 0.0, 0.25, 0.025, 0.025], 287.80501189166694),
        ([0.25, 0.5, 0.2, 0.275, 0.25, 0.5, 0.01, 0.25, 0.0, 0.25, 0.025, 0.025], 235.57531526664934),
        ([0.08, 0.3, 0.2, 0.41, 0.29, 0.58, 0.18, 0.3, 0.0, 0.2, 0.0, 0.0], -157.48294496245893),  # too late
        (0.5 + 0.5 * np.sin(J), -509.46797467074066),
        (0.5 + 0.5 * np.cos(J), -323.6852688892352),
    ],
)
def test_flights_of_the_older_lander_are_those_of_the_published_code(x: Any, reward: float) -> None:
    """Its environment was run once on these inputs."""
    assert flight(older_lander(), (2 * np.array(x)).tolist(), 0) == pytest.approx(reward, rel=1e-6)

"""Flights of gymnasium's lunar lander under a heuristic controller.

A lander is a gymnasium environment: `reset(seed=)` and `step(action)`. Only the functions that make one import
gymnasium. The module does not import torch, so that worker processes start fast.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Lander = Any
"""An environment with eight numbers as state and four actions."""

MakeLander = Callable[[], Lander]

NOTHING, LEFT, MAIN, RIGHT = range(4)
"""Actions: the engine to fire."""

PUSH = 1_500.0
"""Greatest push at launch, along either axis, in the older environment; gymnasium's is 1,000."""

LOST, LANDED = -250.0, 50.0
"""The older environment's last reward: of a flight that does not end at rest, and of one that does."""


def current_lander() -> Lander:
    """Return gymnasium's `LunarLander-v3`: -100 for a crash or leaving, 100 at rest, and an end after 1,000 steps."""
    import gymnasium

    return gymnasium.make("LunarLander-v3", disable_env_checker=True)


def older_lander() -> Lander:
    """Return the lander of the published code of approximation-aware BO; see `OlderLander`."""
    return OlderLander(current_lander())


class StrongPush:
    """Random generator with a stronger push at launch; its other draws are those of `numpy.random.default_rng`."""

    def __init__(self, seed: int, usual: float) -> None:
        """Create the generator.

        Args:
            seed: seed of the draws.
            usual: the bound that identifies the draws of the push.
        """
        self._chance = np.random.default_rng(seed)
        self._usual = usual

    def uniform(self, low: float, high: float, size: Any = None) -> Any:
        """Return uniform draws between `low` and `high`, or between the stronger bounds for the push."""
        factor = PUSH / self._usual if high == self._usual else 1.0
        return self._chance.uniform(factor * low, factor * high, size)


class OlderLander:
    """gymnasium's lander with the push and the rewards of an older environment.

    The last reward is -250 for a crash, for leaving and for the thousandth step, and 50 at rest; the push is up to
    1,500. The physics are the same.
    """

    def __init__(self, lander: Lander) -> None:
        self._lander = lander

    def reset(self, seed: int) -> tuple[Any, Any]:
        """Begin a flight over the terrain of `seed`; return the state and unused information."""
        from gymnasium.envs.box2d.lunar_lander import INITIAL_RANDOM

        self._lander.unwrapped.np_random = StrongPush(seed, INITIAL_RANDOM)
        return self._lander.reset()

    def step(self, action: int) -> tuple[Any, float, bool, bool, Any]:
        """Advance by a fiftieth of a second; return state, reward, whether it has ended, and whether it timed out."""
        state, reward, ended, late, more = self._lander.step(action)
        if ended or late:
            reward = LOST if self._lander.unwrapped.lander.awake else LANDED
        return state, reward, ended, late, more


def steer(state: Sequence[float], w: Sequence[float]) -> int:
    """Return the engine that the heuristic fires: gymnasium's example with variable numbers (Eriksson et al., 2019).

    Args:
        state: x, y, their velocities, angle, its velocity, whether the left and the right leg touch the ground.
        w: twelve gains and thresholds.
    """
    x, y, vx, vy, angle, spin, left, right = state
    wanted_angle = min(max(x * w[0] + vx * w[1], -w[2]), w[2])
    turn = (wanted_angle - angle) * w[4] - spin * w[5]
    lift = (w[3] * abs(x) - y) * w[6] - vy * w[7]
    if left or right:
        turn, lift = w[8], -vy * w[9]
    if lift > abs(turn) and lift > w[10]:
        return MAIN
    if turn < -w[11]:
        return RIGHT
    return LEFT if turn > w[11] else NOTHING


def flight(lander: Lander, w: Sequence[float], terrain: int) -> float:
    """Return the sum of rewards of a flight steered by `w` over the terrain of a seed."""
    state, _ = lander.reset(seed=terrain)
    total, over = 0.0, False
    while not over:
        state, reward, ended, late, _ = lander.step(steer(state.tolist(), w))
        total += reward
        over = ended or late
    return float(total)


def flights(make: MakeLander, w: Sequence[float], terrains: Sequence[int]) -> list[float]:
    """Return the sum of rewards over each terrain, flown in turn."""
    lander = make()
    return [flight(lander, w, terrain) for terrain in terrains]

"""What is compared, and on what: a contender is asked for a point and told its value, to be maximised over a box."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from plumbline.api.running import TrialRequest
from plumbline.core.errors import PlumblineError
from plumbline.core.streams import seed_streams
from plumbline.methods.base import Domain
from plumbline.problems.base import Problem
from plumbline.problems.evaluation import values
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.trials.trial import Trial

Array = NDArray[np.float64]

OUTSIDE = 1e-9
"""How far beyond the box a query may lie, as a share of the box: libraries map to the unit cube and back."""


class Peer(Protocol):
    """An optimiser in the middle of its run."""

    def ask(self) -> Array:
        """Return the point to evaluate next, `d`, in the box."""
        ...

    def tell(self, x: Array, y: float) -> None:
        """Receive the value `y` at `x` (`d`), whether asked for or not."""
        ...


@dataclass(frozen=True)
class Instance:
    """A noise-free problem with a seed and an evaluated initial design: all that contenders share.

    Attributes:
        problem: name of the problem.
        seed: of design and contenders.
        identity: name of the problem in plumbline's random streams.
        domain: box and outcome.
        optimum: greatest value.
        value: function of a point, `d`.
        X: initial design, `n x d`.
        y: its values, `n`.
    """

    problem: str
    seed: int
    identity: str
    domain: Domain
    optimum: float
    value: Callable[[Array], float]
    X: Array
    y: Array

    @property
    def bounds(self) -> Array:
        """The box, `2 x d`."""
        return self.domain.bounds.numpy()

    def first(self, n: int) -> "Instance":
        """Return the instance with the first `n` points of the initial design."""
        return replace(self, X=self.X[:n], y=self.y[:n])

    def inside(self, x: Array) -> Array:
        """Return a query, `d`, as a point of the box.

        Raises:
            PlumblineError: it lies outside by more than rounding.
        """
        low, high = self.bounds
        if not np.all((x >= low - OUTSIDE * (high - low)) & (x <= high + OUTSIDE * (high - low))):
            raise PlumblineError(f"a query on {self.problem} is outside of its box: {x.tolist()}")
        return np.clip(x, low, high)


@dataclass(frozen=True)
class Contender:
    """A method of plumbline or of a library.

    Attributes:
        name: in tables and files.
        versions: of what its results depend on.
        build: makes a peer that knows the box and the seed, and no data.
        ours: whether it is plumbline's.
    """

    name: str
    versions: str
    build: Callable[[Instance], Peer]
    ours: bool = False

    def start(self, instance: Instance) -> Peer:
        """Return a peer that was told the initial design; what it draws from global streams is seeded too."""
        seed_streams(instance.seed)
        peer = self.build(instance)
        for x, y in zip(instance.X, instance.y, strict=True):
            peer.tell(x, float(y))
        return peer


def draw_instance(problem: str, seed: int, n: int) -> Instance:
    """Return a problem with the initial design of `n` Sobol points that plumbline's trials of this seed have.

    Raises:
        PlumblineError: no such problem, or one with noise, several outcomes or an unknown optimum.
    """
    request = TrialRequest(method_class="random", problem=problem, initial=n, design="sobol", rounds=1)
    trial = Trial(request.spec(MethodsAndTasks(), {}, seed), Path())
    refuse_unsuitable(trial.problem, problem)
    step = trial.begin()

    def value(x: Array) -> float:
        return float(values(trial.problem, torch.from_numpy(np.array([x], dtype=np.float64)))[0, 0])

    optimum = trial.metadata.optimum
    return Instance(problem, seed, trial.identity, trial.domain, optimum, value, step.X.numpy(), step.Y[:, 0].numpy())


def refuse_unsuitable(problem: Problem, name: str) -> None:
    """Raise PlumblineError unless a problem is one noise-free objective with a known optimum."""
    if not problem.noise_free or len(problem.outcomes) > 1 or problem.optimum is None:
        raise PlumblineError(f"{name}: peers are compared on one noise-free objective whose optimum is known")

"""A lander's controller, judged by its mean reward over terrains; Eriksson et al. (2019), approximation-aware BO.

Flights are always flown by worker processes, one of them where the job has one core: a process that hangs can be ended,
a simulator that hangs inside its own step cannot. What comes out does not depend on how many there are.
"""

import math
from collections.abc import Sequence
from concurrent.futures import wait
from typing import Literal, Self

import torch
from botorch.test_functions import SyntheticTestFunction
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.problems.base import Context, problems
from plumbline.problems.landing import MakeLander, current_lander, flights, older_lander

NAME = "lunar-lander"

GAIN = 2.0
"""What the inputs are multiplied by to be gains and thresholds of the controller."""

IDLE = 60.0
"""Seconds after which a worker without work ends; another one starts in half a second."""

ENVIRONMENT = {"SDL_VIDEODRIVER": "dummy", "OMP_NUM_THREADS": "1"}
"""Of the workers: no window, and one thread."""


class LunarLanderOptions(Options):
    """Options of the lunar lander.

    Attributes:
        variant: `text`, the mean over fixed random terrains in gymnasium's environment, or `code`, what the published
            code computes: its environment seeds itself with 0 at every launch, so that all fifty terrains are one, and
            is older than gymnasium's (see `plumbline.problems.landing.OlderLander`).
        terrains: their number; the i-th has seed i, counted from 0. The push at launch and the engines' noise are fixed
            by the same seed.
        time_limit: seconds that the flights of one evaluation may take, before it is an error.
        processes: workers; null for as many as the job has threads, which is better said by the cores of a task's
            `resources`: options name a trial's random streams, and its results would not be those of another number.
    """

    variant: Literal["text", "code"] = "text"
    terrains: PositiveInt = 50
    time_limit: PositiveFloat = 120.0
    processes: PositiveInt | None = None

    @model_validator(mode="after")
    def _one_terrain(self) -> Self:
        if self.variant == "code" and "terrains" in self.model_fields_set and self.terrains != 1:
            raise ValueError("variant: code has one terrain, however often it is flown over: leave out `terrains`")
        return self

    @property
    def seeds(self) -> range:
        """The seeds of the terrains."""
        return range(1 if self.variant == "code" else self.terrains)


class LunarLander(SyntheticTestFunction):
    """The mean reward of a controller over fixed terrains; to be maximised. The greatest value is not known.

    `x` in the unit cube is half of the twelve gains and thresholds of `plumbline.problems.landing.steer`.
    """

    dim = 12
    continuous_inds = list(range(dim))  # noqa: RUF012 - BoTorch's class attributes
    _bounds = [(0.0, 1.0)] * dim
    _is_minimization_by_default = False

    def __init__(self, options: LunarLanderOptions, make: MakeLander | None = None) -> None:
        """Make the problem.

        Args:
            options: of it.
            make: returns an environment in a worker; None for that of the variant.
        """
        super().__init__()
        self.options = options
        self._make = make or (older_lander if options.variant == "code" else current_lander)
        self._workers: ProcessPoolExecutor | None = None

    @property
    def optimizers(self) -> Tensor:
        """Raise NotImplementedError: nobody knows the best controller."""
        raise NotImplementedError("The best controller of the lander is not known.")

    def rewards(self, x: Sequence[float]) -> list[float]:
        """Return the sum of rewards over each terrain at `x` (`12`).

        Raises:
            PlumblineError: the flights take longer than the limit, or a reward is not finite.
            ChildProcessError: a worker was killed, an accident of the machine.
        """
        seeds = self.options.seeds
        workers = min(self.options.processes or torch.get_num_threads(), len(seeds))
        w = [GAIN * one for one in x]
        if self._workers is None:
            # Its own ones: those that joblib shares cannot be ended without harm to others.
            self._workers = ProcessPoolExecutor(workers, timeout=IDLE, env=ENVIRONMENT)
        shares = [self._workers.submit(flights, self._make, w, seeds[first::workers]) for first in range(workers)]
        if wait(shares, self.options.time_limit).not_done:
            self._end_workers()
            raise PlumblineError(
                f"problem {NAME!r}: an evaluation took longer than its `time_limit` of {self.options.time_limit:g} s, "
                f"x = {list(x)}: raise it if flights are only slow"
            )
        rewards = [math.nan] * len(seeds)
        for first, share in enumerate(shares):
            try:
                rewards[first::workers] = share.result()
            except BrokenProcessPool as error:
                self._end_workers()
                raise ChildProcessError(f"a worker of problem {NAME!r} was killed: is the memory full?") from error
        for seed, reward in zip(seeds, rewards, strict=True):
            if not math.isfinite(reward):
                raise PlumblineError(f"problem {NAME!r}: the reward over terrain {seed} is {reward}, x = {list(x)}")
        return rewards

    def _end_workers(self) -> None:
        if self._workers is not None:
            self._workers.shutdown(kill_workers=True)
            self._workers = None

    def _evaluate_true(self, X: Tensor) -> Tensor:
        rows = X.reshape(-1, self.dim).double().tolist()
        means = [math.fsum(self.rewards(x)) / len(self.options.seeds) for x in rows]
        return torch.tensor(means, dtype=torch.float64).reshape(X.shape[:-1]).to(X)


@problems.register(NAME, LunarLanderOptions)
def lunar_lander(options: LunarLanderOptions, _: Context) -> SyntheticTestFunction:
    """12-d, gains of a controller that lands on the moon, over fifty terrains."""
    return LunarLander(options)

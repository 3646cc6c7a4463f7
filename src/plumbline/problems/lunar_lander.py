"""The controller of a lunar lander, scored by its mean reward over terrains; Eriksson et al. (2019), AABO.

Worker processes simulate all flights, even if the job has one core: we can end a process that hangs, but not a
simulator that hangs inside its own step. Results do not depend on the number of workers.
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
"""Factor from the inputs to the gains and thresholds of the controller."""

IDLE = 60.0
"""Seconds after which an idle worker ends; a new one starts in half a second."""

ENVIRONMENT = {"SDL_VIDEODRIVER": "dummy", "OMP_NUM_THREADS": "1"}
"""Environment variables of the workers: no window, and one thread."""


class LunarLanderOptions(Options):
    """Options of the lunar lander.

    Attributes:
        variant: `text` for the mean over fixed random terrains in gymnasium's environment, or `code` for the published
            code. Its environment seeds itself with 0 at every launch, so that all fifty terrains are one, and is older
            than gymnasium's (see `plumbline.problems.landing.OlderLander`).
        terrains: number of terrains. Seed i, counted from 0, fixes the i-th terrain, its push at launch and the
            engines' noise.
        time_limit: greatest number of seconds for the flights of one evaluation, beyond which it is an error.
        processes: number of workers; null for the job's number of threads, which the cores of a task's `resources` set
            better. Options name a trial's random streams, so another number of workers would give other results.
    """

    variant: Literal["text", "code"] = "text"
    terrains: PositiveInt = 50
    time_limit: PositiveFloat = 120.0
    processes: PositiveInt | None = None

    @model_validator(mode="after")
    def _one_terrain(self) -> Self:
        if self.variant == "code" and "terrains" in self.model_fields_set and self.terrains != 1:
            raise ValueError("variant: code has one terrain: leave out `terrains`")
        return self

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of the terrains."""
        return range(1 if self.variant == "code" else self.terrains)


class LunarLander(SyntheticTestFunction):
    """The mean reward of a controller over fixed terrains; to be maximised. The greatest value is unknown.

    `x` in the unit cube is half of the twelve gains and thresholds of `plumbline.problems.landing.steer`.
    """

    dim = 12
    continuous_inds = list(range(dim))  # noqa: RUF012 - BoTorch's class attributes
    _bounds = [(0.0, 1.0)] * dim
    _is_minimization_by_default = False

    def __init__(self, options: LunarLanderOptions, make: MakeLander | None = None) -> None:
        """Create the problem.

        Args:
            options: options of the problem.
            make: returns an environment in a worker; None for that of the variant.
        """
        super().__init__()
        self.options = options
        self._make = make or (older_lander if options.variant == "code" else current_lander)
        self._workers: ProcessPoolExecutor | None = None

    @property
    def optimizers(self) -> Tensor:
        """Raise NotImplementedError: the best controller is unknown."""
        raise NotImplementedError("The best controller of the lander is not known.")

    def rewards(self, x: Sequence[float]) -> list[float]:
        """Return the sum of rewards over each terrain at `x` (`12`).

        Raises:
            PlumblineError: the flights take longer than the limit, or a reward is not finite.
            ChildProcessError: the machine killed a worker.
        """
        seeds = self.options.seeds
        workers = min(self.options.processes or torch.get_num_threads(), len(seeds))
        w = [GAIN * one for one in x]
        if self._workers is None:
            # Own workers: ending those that joblib shares would harm others.
            self._workers = ProcessPoolExecutor(workers, timeout=IDLE, env=ENVIRONMENT)
        shares = [self._workers.submit(flights, self._make, w, seeds[first::workers]) for first in range(workers)]
        try:
            late = wait(shares, self.options.time_limit).not_done
        except BaseException:  # a time limit of the trial, or Ctrl-C: Python would wait for the flights at its end
            self._end_workers()
            raise
        if late:
            self._end_workers()
            raise PlumblineError(
                f"problem {NAME!r}: an evaluation took longer than its `time_limit` of {self.options.time_limit:g} s, "
                f"x = {list(x)}: raise it if flights are merely slow"
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

"""Optuna's samplers of one objective."""

import math
import warnings
from typing import Any, ClassVar, Literal

import numpy as np

from plumbline.core.options import Options
from plumbline.methods.base import methods
from plumbline.methods.peers.adapter import Array, Optimiser, OptimiserMethod, names

Sampler = Literal["tpe", "gp"]


class OptunaOptions(Options):
    """Options of Optuna.

    Attributes:
        sampler: `tpe`, a tree-structured Parzen estimator and Optuna's default, or `gp`, a Gaussian process. Both draw
            at random until ten trials are complete, those of the initial design included.
    """

    sampler: Sampler = "tpe"


class OptunaStudy(Optimiser):
    """A study in memory.

    Args:
        bounds: `2 x d`.
        seed: of the sampler.
        sampler: with its defaults.
    """

    def __init__(self, bounds: Array, seed: int, sampler: Sampler = "tpe") -> None:
        import optuna

        build = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}[sampler]
        self.box: dict[str, optuna.distributions.BaseDistribution] = {
            name: optuna.distributions.FloatDistribution(*side)
            for name, side in zip(names(bounds), bounds.T.tolist(), strict=True)
        }
        with warnings.catch_warnings(category=optuna.exceptions.ExperimentalWarning, action="ignore"):
            self.study = optuna.create_study(direction="maximize", sampler=build(seed=seed))
        self.asked: list[Any] = []

    def ask(self, q: int) -> Array:
        """Ask for `q` trials; each sampler takes note of those that are running."""
        new = [self.study.ask(self.box) for _ in range(q)]
        self.asked += new
        return np.array([[trial.params[name] for name in self.box] for trial in new])

    def tell(self, x: Array, y: float) -> None:
        """Finish the first trial that was asked for, else add one; a failed one has the state FAIL."""
        from optuna.trial import TrialState, create_trial

        failed = math.isnan(y)
        state, value = (TrialState.FAIL, None) if failed else (TrialState.COMPLETE, y)
        if self.asked:
            self.study.tell(self.asked.pop(0), value, state)
        else:
            params = dict(zip(self.box, x.tolist(), strict=True))
            self.study.add_trial(create_trial(state=state, value=value, params=params, distributions=dict(self.box)))


@methods.register("optuna", OptunaOptions)
class Optuna(OptimiserMethod):
    """Optuna's tree-structured Parzen estimator, or its Gaussian process.

    A failed evaluation is a failed trial, which both samplers leave out.
    """

    libraries: ClassVar[tuple[str, ...]] = ("optuna",)
    options: OptunaOptions

    def optimiser(self, seed: int, q: int) -> Optimiser:
        """Return a study without trials."""
        return OptunaStudy(self.sides, seed, self.options.sampler)

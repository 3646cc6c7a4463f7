"""SMAC's facade for black boxes."""

import math
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from plumbline.core.options import Options
from plumbline.methods.base import methods
from plumbline.methods.peers.adapter import Array, Optimiser, OptimiserMethod, names

ENDLESS = 1_000_000
"""Trials of a scenario, which wants a number."""


class SmacFacade(Optimiser):
    """The facade with its defaults, no initial design, and its files in a folder of its own.

    Args:
        bounds: `2 x d`.
        seed: of the scenario.
    """

    def __init__(self, bounds: Array, seed: int) -> None:
        from ConfigSpace import ConfigurationSpace, Float
        from smac import BlackBoxFacade, Scenario

        self.names = names(bounds)
        self.space = ConfigurationSpace(seed=seed)
        self.space.add(*(Float(name, tuple(side)) for name, side in zip(self.names, bounds.T.tolist(), strict=True)))
        self.folder = tempfile.TemporaryDirectory(prefix="smac-")
        scenario = Scenario(
            self.space, deterministic=True, n_trials=ENDLESS, seed=seed, output_directory=Path(self.folder.name)
        )
        self.facade = BlackBoxFacade(
            scenario,
            lambda config, seed: 0.0,  # never called: values are told
            initial_design=BlackBoxFacade.get_initial_design(scenario, n_configs=0),
            logging_level=False,
            overwrite=True,
        )
        self.asked: list[Any] = []

    def ask(self, q: int) -> Array:
        """Ask the facade for `q` trials."""
        new = [self.facade.ask() for _ in range(q)]
        self.asked += new
        return np.array([[trial.config[name] for name in self.names] for trial in new], dtype=np.float64)

    def tell(self, x: Array, y: float) -> None:
        """Tell the value, to be minimised, of the first trial that was asked for, else of a new one.

        A failed one stays untold: the cost of a crashed trial, infinite by default, is more than the model can take.
        """
        from ConfigSpace import Configuration
        from smac.runhistory.dataclasses import TrialInfo, TrialValue

        if self.asked:
            trial = self.asked.pop(0)
        else:  # trials of a deterministic scenario have seed 0
            trial = TrialInfo(Configuration(self.space, values=dict(zip(self.names, x.tolist(), strict=True))), seed=0)
        if not math.isnan(y):
            self.facade.tell(trial, TrialValue(cost=-y), save=False)

    def close(self) -> None:
        """Remove the folder."""
        self.folder.cleanup()


@methods.register("smac", Options)
class Smac(OptimiserMethod):
    """SMAC's facade for black boxes: a Gaussian process with expected improvement.

    Failed evaluations are left out.
    """

    libraries: ClassVar[tuple[str, ...]] = ("smac", "scikit-learn")

    def optimiser(self, seed: int, q: int) -> Optimiser:
        """Return a facade without trials."""
        return SmacFacade(self.sides, seed)

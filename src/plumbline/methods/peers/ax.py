"""Ax, with the generation strategy of its client."""

import math
from typing import ClassVar

import numpy as np

from plumbline.core.options import Options
from plumbline.methods.base import methods
from plumbline.methods.peers.adapter import Array, Optimiser, OptimiserMethod, names


class AxClient(Optimiser):
    """Ax's client with the strategy `fast`, its default, and no initial points of its own.

    Args:
        bounds: `2 x d`.
        seed: of the client.
    """

    def __init__(self, bounds: Array, seed: int) -> None:
        from ax.api.client import Client
        from ax.api.configs import RangeParameterConfig

        self.names = names(bounds)
        self.client = Client(random_seed=seed)
        self.client.configure_experiment(
            parameters=[
                RangeParameterConfig(name=name, bounds=tuple(side), parameter_type="float")
                for name, side in zip(self.names, bounds.T.tolist(), strict=True)
            ]
        )
        self.client.configure_optimization(objective="y")
        self.client.configure_generation_strategy(method="fast", initialization_budget=0, initialize_with_center=False)
        self.asked: list[int] = []

    def ask(self, q: int) -> Array:
        """Ask the client for `q` trials; it takes note of those that are running."""
        new = self.client.get_next_trials(max_trials=q)
        self.asked += new
        return np.array([[parameters[name] for name in self.names] for parameters in new.values()], dtype=np.float64)

    def tell(self, x: Array, y: float) -> None:
        """Complete the first trial that was asked for, else attach one; mark it as failed where it failed."""
        parameters = dict(zip(self.names, x.tolist(), strict=True))
        trial = self.asked.pop(0) if self.asked else self.client.attach_trial(parameters)
        if math.isnan(y):
            self.client.mark_trial_failed(trial)
        else:
            self.client.complete_trial(trial, raw_data={"y": y})


@methods.register("ax", Options)
class Ax(OptimiserMethod):
    """Ax's client with its default generation strategy: a Gaussian process and log expected improvement of BoTorch.

    A failed evaluation is a failed trial, which the model leaves out.
    """

    libraries: ClassVar[tuple[str, ...]] = ("ax-platform", "botorch")

    def optimiser(self, seed: int, q: int) -> Optimiser:
        """Return a client without trials."""
        return AxClient(self.sides, seed)

"""The package bayesian-optimization."""

import math
from typing import ClassVar

import numpy as np

from plumbline.core.options import Options
from plumbline.methods.base import methods
from plumbline.methods.peers.adapter import Array, Optimiser, OptimiserMethod, names


class BayesOpt(Optimiser):
    """The package's optimiser with its default, an upper confidence bound.

    Args:
        bounds: `2 x d`.
        seed: of model and search.
        batches: whether several points are asked for at a time, by the package's constant liar.
    """

    def __init__(self, bounds: Array, seed: int, batches: bool = False) -> None:
        from bayes_opt import BayesianOptimization
        from bayes_opt.acquisition import ConstantLiar, UpperConfidenceBound

        self.box = dict(zip(names(bounds), map(tuple, bounds.T.tolist()), strict=True))
        self.optimizer = BayesianOptimization(
            None,
            self.box,
            acquisition_function=ConstantLiar(UpperConfidenceBound()) if batches else None,
            random_state=seed,
            verbose=0,
            allow_duplicate_points=True,
        )

    def ask(self, q: int) -> Array:
        """Fit the model and maximise the bound."""
        found = [self.optimizer.suggest() for _ in range(q)]
        return np.array([[point[name] for name in self.box] for point in found])

    def tell(self, x: Array, y: float) -> None:
        """Register the value; the package has no failed evaluations."""
        if not math.isnan(y):
            self.optimizer.register(dict(zip(self.box, x.tolist(), strict=True)), y)


@methods.register("bayesian-optimization", Options)
class BayesianOptimizationMethod(OptimiserMethod):
    """The package bayesian-optimization with its default: a Gaussian process with an upper confidence bound.

    Batches are by its constant liar.
    Failed evaluations are left out.
    """

    libraries: ClassVar[tuple[str, ...]] = ("bayesian-optimization", "scikit-learn")

    def optimiser(self, seed: int, q: int) -> Optimiser:
        """Return an optimiser without data."""
        return BayesOpt(self.sides, seed, batches=q > 1)

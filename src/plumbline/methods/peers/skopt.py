"""Scikit-optimize: the optimiser behind its `gp_minimize`."""

import math
from typing import Any, ClassVar, Literal

import numpy as np

from plumbline.core.options import Options
from plumbline.methods.base import methods
from plumbline.methods.peers.adapter import Array, Optimiser, OptimiserMethod

Acquisition = Literal["gp_hedge", "EI", "LCB", "PI"]


class SkoptOptions(Options):
    """Options of scikit-optimize.

    Attributes:
        acquisition: the acquisition function; `gp_hedge`, the library's default, is a portfolio of the other three.
    """

    acquisition: Acquisition = "gp_hedge"


class SkoptOptimizer(Optimiser):
    """The `Optimizer` of `gp_minimize` with its Gaussian process and search, and no initial points of its own.

    Args:
        bounds: `2 x d`.
        seed: of model and search.
        acquisition: the acquisition function.
    """

    def __init__(self, bounds: Array, seed: int, acquisition: Acquisition = "gp_hedge") -> None:
        from skopt import Optimizer
        from skopt.utils import cook_estimator, normalize_dimensions

        space = normalize_dimensions([tuple(side) for side in bounds.T.tolist()])
        self.optimizer = Optimizer(
            space,
            cook_estimator("GP", space=space, random_state=seed, noise="gaussian"),
            n_initial_points=0,
            acq_func=acquisition,
            acq_optimizer="lbfgs",
            acq_optimizer_kwargs={"n_points": 10_000, "n_restarts_optimizer": 5},
            random_state=seed,
        )
        self.untold: list[tuple[list[float], float]] = []

    def tell(self, x: Array, y: float) -> None:
        """Keep the value, to be minimised, for the next round; the library has no failed evaluations."""
        if not math.isnan(y):
            self.untold.append((x.tolist(), -y))

    def ask(self, q: int) -> Array:
        """Tell what is new, which fits the model and searches, and ask; batches are by the library's constant liar."""
        if self.untold:
            X, cost = zip(*self.untold, strict=True)
            self.optimizer.tell(list(X), list(cost))
            self.untold.clear()
        return np.array(self.optimizer.ask(q) if q > 1 else [self.optimizer.ask()])

    def memory(self) -> dict[str, Any]:
        """Return the gains of the portfolio's members, and their candidates in the unit cube, whose gains come next."""
        if self.optimizer.acq_func != "gp_hedge":
            return {}
        candidates = [np.ravel(x).tolist() for x in self.optimizer.next_xs_]
        return {"gains": np.asarray(self.optimizer.gains_).tolist(), "candidates": candidates}

    def remember(self, memory: dict[str, Any]) -> None:
        """Go on with the gains of the portfolio's members."""
        if memory:
            self.optimizer.gains_ = np.array(memory["gains"])
            self.optimizer.next_xs_ = [np.array(x) for x in memory["candidates"]]


@methods.register("skopt", SkoptOptions)
class Skopt(OptimiserMethod):
    """Scikit-optimize's `gp_minimize`: a Gaussian process with a portfolio of acquisition functions, or with one.

    Failed evaluations are left out.
    """

    libraries: ClassVar[tuple[str, ...]] = ("scikit-optimize", "scikit-learn")
    options: SkoptOptions

    def optimiser(self, seed: int, q: int) -> Optimiser:
        """Return an `Optimizer` without data."""
        return SkoptOptimizer(self.sides, seed, self.options.acquisition)

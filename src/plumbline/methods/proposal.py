"""A proposal: what a method asks for in a round."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from plumbline.forecasts.predictive import SetPredictive

Predictor = Callable[[Tensor], SetPredictive]
"""Maps `n x d` points to the predictive distribution of observations there."""


@dataclass(frozen=True)
class Proposal:
    """What a method asks for.

    Attributes:
        X: `q x d` points to evaluate.
        predict: maps `n x d` points to the predictive distribution of observations there, before any is made; None
            for methods without a model.
        acquisition: maps `n x d` points to the utility that was maximised, `n`; None for methods without one.
        seconds: wall time of the parts, `fit` and `acquire`.
        notes: numbers worth a column of a log (the scale of a recalibration, say).
        observed: `q x m` booleans, which outcomes of which point are asked for; None for all. The others are NaN.
        ends: `r x q x d`, where each climb or chain of the search ended, `X` first; None for methods that do not
            search from many starts.
    """

    X: Tensor
    predict: Predictor | None = None
    acquisition: Callable[[Tensor], Tensor] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, float] = field(default_factory=dict)
    observed: Tensor | None = None
    ends: Tensor | None = None

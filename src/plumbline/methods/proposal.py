"""A proposal: the points that a method requests in a round."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from plumbline.forecasts.predictive import SetPredictive

Predictor = Callable[[Tensor], SetPredictive]
"""Maps `n x d` points to the predictive distribution of observations there."""


@dataclass(frozen=True)
class Proposal:
    """The points that a method requests, with forecasts and notes.

    Attributes:
        X: `q x d` points to evaluate.
        predict: maps `n x d` points to the predictive distribution of observations there, before any is made; None
            for methods without a model.
        acquisition: maps `n x d` points to the acquisition values, `n`; None for methods without such a function.
        seconds: wall time of the parts, `fit` and `acquire`.
        notes: numbers for the log (the scale of a recalibration, say).
        observed: `q x m` booleans, the requested outcomes of each point; None for all. The others are NaN.
        ends: `r x q x d`, the end of each climb or chain of the search, `X` first; None for methods that do not
            search from many starts.
    """

    X: Tensor
    predict: Predictor | None = None
    acquisition: Callable[[Tensor], Tensor] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, float] = field(default_factory=dict)
    observed: Tensor | None = None
    ends: Tensor | None = None

"""By which forecast the coverage of an observation is judged: by that made before, or as published code has it."""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from plumbline.models.exact_process import ExactProcess

Judging = Literal["before", "standardised-with-it", "conditioned-on-it"]
"""What is judged of an observation that was asked for.

`before`: whether the set that was promised holds it, as LOCBO's algorithm 1 and its lemmas have it.
`standardised-with-it`: whether that set, in standardised units, holds the observation in units that are made with it,
as in LOCBO's published script for Ackley's function. `conditioned-on-it`: whether the set of the process that is
conditioned on it, at the same hyperparameters, holds it, as in that for the radio network.
"""


def judged(judging: Judging, process: ExactProcess, X: Tensor, y: Tensor) -> tuple[ExactProcess, Tensor]:
    """Return the process whose sets observations are judged by, and what stands for them.

    Args:
        judging: which of the three.
        process: that the points were chosen with.
        X: `q x d`.
        y: `q`, NaN where an evaluation failed.

    Returns:
        A process, and `q` numbers in the units of its observations.
    """
    if judging == "before":
        return process, y
    seen = y.isfinite()
    everything = torch.cat([process.units.observations(process.y), y[seen]])
    units = process.units.standardising(everything)
    if judging == "standardised-with-it":
        return process, process.units.observations(units.outputs(y))
    U = torch.cat([process.U, process.units.inputs(X[seen])])
    return replace(process, U=U, y=units.outputs(everything), units=units), y

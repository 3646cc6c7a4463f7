"""Options that many problems share."""

from typing import Self

from pydantic import Field, NonNegativeFloat, model_validator

from plumbline.core.options import Options


class ProblemOptions(Options):
    """Options of a problem whose dimension is fixed.

    Attributes:
        noise_std: standard deviation of the observation noise, in the units of the function.
        noise_scale: standard deviation of the noise in units of the function's own over its box (see `spread`); it
            replaces `noise_std`.
    """

    noise_std: NonNegativeFloat = 0.0
    noise_scale: NonNegativeFloat | None = None

    @model_validator(mode="after")
    def _one_noise(self) -> Self:
        # Only an explicit `noise_std` contradicts `noise_scale`, which replaces a default.
        if self.noise_scale is not None and self.noise_std > 0 and "noise_std" in self.model_fields_set:
            raise ValueError("noise_std and noise_scale both set the noise: give one of them")
        return self


MOST_DIMENSIONS = 21_201
"""Dimensions of torch's Sobol sequences, from which designs are drawn and searches start."""


class ScalableOptions(ProblemOptions):
    """Options of a problem of any dimension."""

    dim: int = Field(gt=0, le=MOST_DIMENSIONS)

"""Options that many problems share."""

from typing import Self

from pydantic import NonNegativeFloat, PositiveInt, model_validator

from plumbline.core.options import Options


class ProblemOptions(Options):
    """Options of a problem whose dimension is fixed.

    Attributes:
        noise_std: standard deviation of the observation noise, in the units of the function.
        noise_scale: the same in units of the function's own standard deviation over its box (see `spread`); it takes
            the place of `noise_std`.
    """

    noise_std: NonNegativeFloat = 0.0
    noise_scale: NonNegativeFloat | None = None

    @model_validator(mode="after")
    def _one_noise(self) -> Self:
        # A default that is not 0 is no contradiction: `noise_scale` replaces it.
        if self.noise_scale is not None and self.noise_std > 0 and "noise_std" in self.model_fields_set:
            raise ValueError("noise_std and noise_scale are two ways to say one thing: give one of them")
        return self


class ScalableOptions(ProblemOptions):
    """Options of a problem that exists in every dimension."""

    dim: PositiveInt

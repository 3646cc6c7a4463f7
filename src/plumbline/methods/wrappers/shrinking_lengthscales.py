"""Lengthscales that shrink from round to round: Berkenkamp, Schoellig & Krause (2019).

An estimate from few data may remain too smooth, since no query tests it. Here the lengthscales are those of the base
divided by a growing factor, so that the model admits ever rougher functions.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

from botorch.acquisition import AcquisitionFunction
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.methods.base import methods
from plumbline.methods.composed import Choice, Round, Steps
from plumbline.methods.gp.single_outcome import UpperConfidenceBoundMethod
from plumbline.methods.wrapper import ComposedWrapper, ComposedWrapperOptions
from plumbline.methods.wrappers.exact import Surrogate, changed
from plumbline.models.gp.process import GP


class NormBound(Options):
    """The assumed bound on the norm of f, for a confidence bound like the paper's.

    Attributes:
        initial: B_0, in prior standard deviations.
        power: power of `b(t) = t^power`, the growth of the bound besides that of the shrinking lengthscales.
        delta: greatest probability that the confidence bound fails, if the norm is within its bound.
    """

    initial: PositiveFloat = 2.0
    power: NonNegativeFloat = 0.0
    delta: float = Field(default=0.1, gt=0.0, lt=1.0)

    def sqrt_beta(self, process: GP, t: int, divisor: float) -> float:
        """Return `B_t + 4 sd sqrt(I + 1 + log(1 / delta))` with `B_t = b(t) g(t)^d B_0` and the noise's sd.

        The power d is the paper's as we remember it; `g(t)^(d/2)` would do by the lemma that it rests on.

        Args:
            process: the process with the lengthscales of round t.
            t: the round.
            divisor: g(t).
        """
        bound = t**self.power * divisor ** process.U.shape[-1] * self.initial
        noise = math.sqrt(float(process.noise) / process.at.outputscale)
        return bound + 4 * noise * math.sqrt(information(process) + 1 - math.log(self.delta))


class ShrinkingOptions(ComposedWrapperOptions):
    """Options of shrinking lengthscales.

    Attributes:
        base: the method whose lengthscales shrink.
        power: power of the divisor `g(t) = t^power`, with t the next evaluation, from 1 on; null for `1 / (4 d)`. The
            volume that the lengthscales span then falls with the fourth root of t.
        norm: for the base `ucb`, a bound that grows as we remember the paper's; null for the base's own bound.
    """

    needs = frozenset({"steps", "gp"})

    power: PositiveFloat | None = None
    norm: NormBound | None = None

    @model_validator(mode="after")
    def _norms_are_of_confidence_bounds(self) -> Self:
        if self.norm is not None and methods[self.base.name].build is not UpperConfidenceBoundMethod:
            raise ValueError(f"norm: it is for the base 'ucb', and {self.base.name!r} has no such confidence bound")
        return self


def information(process: GP) -> float:
    """Return the mutual information of f and the data, `log det(1 + K / noise) / 2`."""
    noise = process.at.noise.log().expand(len(process.y)).sum().item()
    return process.root.diagonal().log().sum().item() - 0.5 * noise


def shrunk(process: GP, divisor: float) -> GP:
    """Return the process of the same data with its lengthscales divided."""
    return replace(process, at=process.at._replace(lengthscale=process.at.lengthscale / divisor))


def evaluation(history: History) -> int:
    """Return the number of the next evaluation, without the initial design: 1 for the first."""
    return len(history.queries) + 1


@methods.register("shrinking-lengthscales", ShrinkingOptions)
class ShrinkingMethod(ComposedWrapper):
    """Any method with Gaussian processes whose estimated lengthscales are divided by a growing factor (A-GP-UCB).

    The base's estimates are divided anew in each round, and no other parameter is estimated again. A recalibrated base
    is recalibrated before the division.
    """

    options: ShrinkingOptions

    @property
    def steps(self) -> Steps[Any]:
        """The base's steps with shorter lengthscales, and with the norm's confidence bound if there is one."""
        base = self.base.steps
        utility = base.utility if self.options.norm is None else self.utility
        return replace(base, fit=self.fit, fit_round=self.fit_round, utility=utility, notes=self.notes)

    def divisor(self, t: int) -> float:
        """Return g(t)."""
        return float(t ** (self.options.power or 1 / (4 * self.domain.space.dim)))

    def fit(self, data: History) -> Surrogate:
        """Return the base's surrogate with shorter lengthscales."""
        return self._shrunk(self.base.steps.fit(data), data)

    def fit_round(self, round: Round) -> Surrogate:
        """Return the same in a round; rounds are counted by all observations."""
        return self._shrunk(self.base.steps.fit_round(round), round.history)

    def _shrunk(self, surrogate: Surrogate, history: History) -> Surrogate:
        return changed(surrogate, partial(shrunk, divisor=self.divisor(evaluation(history))))

    def utility(self, surrogate: Surrogate, round: Round) -> AcquisitionFunction:
        """Return the confidence bound with the norm's width."""
        assert isinstance(self.base, UpperConfidenceBoundMethod)
        sqrt_beta = self.sqrt_beta(cast(GP, surrogate), round)
        options = self.base.options.model_copy(update={"sqrt_beta": sqrt_beta, "schedule": None})
        return UpperConfidenceBoundMethod(self.domain, options).utility(cast(GP, surrogate), round)

    def sqrt_beta(self, process: GP, round: Round) -> float:
        """Return the norm's multiple of the standard deviation in a round."""
        assert self.options.norm is not None
        t = evaluation(round.history)
        return self.options.norm.sqrt_beta(process, t, self.divisor(t))

    def notes(self, choice: Choice[Any], round: Round) -> dict[str, float]:
        """Return the base's notes, the divisor of the lengthscales, and the width of the bound."""
        notes = {**self.base.steps.notes(choice, round), "lengthscale_divisor": self.divisor(evaluation(round.history))}
        if self.options.norm is not None:
            notes["sqrt_beta"] = self.sqrt_beta(choice.surrogate, round)
        return notes

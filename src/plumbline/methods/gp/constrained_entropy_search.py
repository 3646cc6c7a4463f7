"""Constrained entropy search, which can ask for one outcome at a time: BOWH, slides on constraints."""

import warnings
from typing import Self

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import Field, PositiveFloat, model_validator
from torch import Generator, Tensor

from plumbline.acquisition.constraints.feasibility import SumOverOutcomes, log_constrained_improvement
from plumbline.acquisition.information.constrained import ConstrainedInformation, OutcomeGroup
from plumbline.acquisition.information.constrained_optima import constrained_peaks
from plumbline.acquisition.information.paths import Peaks, degenerate, standardised
from plumbline.core.errors import PlumblineError
from plumbline.methods.base import Domain, methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.gp.constrained import ConstrainedMethod, ConstrainedOptions, best_feasible
from plumbline.methods.gp.entropy_search import NothingToLearnWarning
from plumbline.models.gp.pathwise import draw_paths
from plumbline.models.gp.process import GP


class NothingFeasibleWarning(RuntimeWarning):
    """No draw is feasible anywhere: what is likeliest to be feasible is asked instead, by its constraints alone."""


class ConstrainedInformationOptions(ConstrainedOptions):
    """Options of constrained entropy search.

    Attributes:
        decoupled: whether one outcome is asked for at a time, or all.
        costs: of the outcomes, in their order, where one is asked for at a time; alike where none are given.
        optima: draws of the constrained optimum.
    """

    decoupled: bool = False
    costs: tuple[PositiveFloat, ...] = ()
    optima: int = Field(default=16, ge=2)

    @model_validator(mode="after")
    def _costs_decide(self) -> Self:
        if self.costs and not self.decoupled:
            raise ValueError("costs decide nothing where all outcomes are asked for: set `decoupled`")
        return self


@methods.register("cjes", ConstrainedInformationOptions)
class ConstrainedEntropySearch(ConstrainedMethod):
    """Information about the constrained optimum, place and value, per cost of the outcomes that are asked for.

    See `plumbline.acquisition.information.constrained`. Draws that are feasible nowhere do not count. Where none is
    feasible, or all have the same optimum, constrained expected improvement is maximised instead, and those outcomes
    are asked for that count in it.
    """

    options: ConstrainedInformationOptions

    def __init__(self, domain: Domain, options: ConstrainedInformationOptions) -> None:
        super().__init__(domain, options)
        number = len(domain.outcomes)
        if options.costs and len(options.costs) != number:
            named = ", ".join(outcome.name for outcome in domain.outcomes)
            raise PlumblineError(f"costs: {len(options.costs)} for {number} outcomes ({named}): give one each")
        self.costs = options.costs or (1.0,) * number
        together = tuple(range(number))
        self.questions: list[OutcomeGroup] = [(i,) for i in together] if options.decoupled else [together]

    def utility(self, surrogate: list[GP], round: Round) -> AcquisitionFunction:
        """Return the information per cost, or constrained improvement where there is none to be had."""
        space = round.space.settle(round.history, Generator().manual_seed(round.seed))
        paths = [draw_paths(process, self.options.optima, round.generator) for process in surrogate]
        drawn = constrained_peaks(paths, self.roles, space, self.options.search.raw_samples, round.seed)
        found = torch.isfinite(drawn.f)
        optima = Peaks(drawn.X[found], drawn.f[found])
        if not bool(found.any()):
            warnings.warn("no draw is feasible anywhere", NothingFeasibleWarning, stacklevel=2)
            return self._improvement(surrogate, round)
        standardisation = standardised(surrogate[self.roles.index("objective")], optima)
        if degenerate(torch.cat([standardisation.X, standardisation.f.unsqueeze(-1)], -1)):
            warnings.warn("nothing is to be learnt of the optimum", NothingToLearnWarning, stacklevel=2)
            return self._improvement(surrogate, round)
        return ConstrainedInformation(surrogate, self.roles, optima, self.costs, self.questions)

    def search(self, utility: AcquisitionFunction, surrogate: list[GP], round: Round) -> Choice[list[GP]]:
        """Return the points of greatest utility, one after another, and which outcomes are asked for there."""
        space = round.space.settle(round.history, Generator().manual_seed(round.seed))
        X = round.history.X[:0]
        asked = torch.zeros(int(min(round.q, space.size)), len(self.roles), dtype=torch.bool)
        now, told = utility, surrogate
        for row in asked:
            x = self.peak(now, space, round)
            question = question_of(now, x)
            row[list(question)] = True
            X, space = torch.cat([X, x]), space.without(x)
            if len(X) < len(asked):
                told = [process.told(x) if i in question else process for i, process in enumerate(told)]
                now = now.under(told) if isinstance(now, ConstrainedInformation) else self._improvement(told, round)
        return Choice(X, utility, surrogate, observed=asked)

    def _improvement(self, surrogate: list[GP], round: Round) -> SumOverOutcomes:
        tolerance = self.options.recommend.tolerance
        best = best_feasible(round.data, self.roles, tolerance)
        return log_constrained_improvement(surrogate, self.roles, best, tolerance)


def question_of(utility: AcquisitionFunction, x: Tensor) -> OutcomeGroup:
    """Return the outcomes to ask for at a point, `1 x d`: of the most information per cost, or all that count."""
    if isinstance(utility, ConstrainedInformation):
        return utility.best_question(x)
    assert isinstance(utility, SumOverOutcomes)
    return tuple(i for i, part in enumerate(utility.parts) if part is not None)

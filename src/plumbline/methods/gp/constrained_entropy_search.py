"""Constrained entropy search, which can request one outcome at a time: BOWH, slides on constraints."""

import warnings
from typing import Self

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import Field, PositiveFloat, model_validator
from torch import Tensor

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
    """No draw is feasible anywhere: the method falls back on constrained expected improvement."""


class ConstrainedInformationOptions(ConstrainedOptions):
    """Options of constrained entropy search.

    Attributes:
        decoupled: whether a request is for one outcome, or for all.
        costs: costs of the outcomes, in their order, for decoupled requests; equal by default.
        optima: number of draws of the constrained optimum.
    """

    decoupled: bool = False
    costs: tuple[PositiveFloat, ...] = ()
    optima: int = Field(default=16, ge=2)

    @model_validator(mode="after")
    def _costs_decide(self) -> Self:
        if self.costs and not self.decoupled:
            raise ValueError("costs have no effect where all outcomes are requested: set `decoupled`")
        return self


@methods.register("cjes", ConstrainedInformationOptions)
class ConstrainedEntropySearch(ConstrainedMethod):
    """Information about the constrained optimum, place and value, per cost of the requested outcomes.

    See `plumbline.acquisition.information.constrained`. Draws that are feasible nowhere are dropped. Where none is
    feasible, or all have the same optimum, the method maximises constrained expected improvement, and requests the
    outcomes that enter it.
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
        self.requests: list[OutcomeGroup] = [(i,) for i in together] if options.decoupled else [together]

    def utility(self, surrogate: list[GP], round: Round) -> AcquisitionFunction:
        """Return the information per cost, or constrained improvement where there is no information."""
        space = round.settled
        paths = [draw_paths(process, self.options.optima, round.generator) for process in surrogate]
        drawn = constrained_peaks(paths, self.roles, space, self.options.search.raw_samples, round.seed)
        feasible = torch.isfinite(drawn.f)
        optima = Peaks(drawn.X[feasible], drawn.f[feasible])
        if not bool(feasible.any()):
            warnings.warn("no draw is feasible anywhere", NothingFeasibleWarning, stacklevel=2)
            return self._improvement(surrogate, round)
        standardisation = standardised(surrogate[self.roles.index("objective")], optima)
        if degenerate(torch.cat([standardisation.X, standardisation.f.unsqueeze(-1)], -1)):
            warnings.warn("all draws of the optimum agree", NothingToLearnWarning, stacklevel=2)
            return self._improvement(surrogate, round)
        return ConstrainedInformation(surrogate, self.roles, optima, self.costs, self.requests)

    def search(self, utility: AcquisitionFunction, surrogate: list[GP], round: Round) -> Choice[list[GP]]:
        """Return the sequentially chosen maximisers and the outcomes requested there."""
        space = round.settled
        X = round.history.X[:0]
        requested = torch.zeros(int(min(round.q, space.size)), len(self.roles), dtype=torch.bool)
        now, believed = utility, surrogate
        for row in requested:
            x = self.peak(now, space, round)
            request = best_request(now, x)
            row[list(request)] = True
            X, space = torch.cat([X, x]), space.without(x)
            if len(X) < len(requested):
                believed = [gp.condition_on_mean(x) if i in request else gp for i, gp in enumerate(believed)]
                informative = isinstance(now, ConstrainedInformation)
                now = now.under(believed) if informative else self._improvement(believed, round)
        return Choice(X, utility, surrogate, observed=requested)

    def _improvement(self, surrogate: list[GP], round: Round) -> SumOverOutcomes:
        tolerance = self.options.recommend.tolerance
        best = best_feasible(round.data, self.roles, tolerance)
        return log_constrained_improvement(surrogate, self.roles, best, tolerance)


def best_request(utility: AcquisitionFunction, x: Tensor) -> OutcomeGroup:
    """Return the outcomes to request at a point, `1 x d`: of most information per cost, or all that enter."""
    if isinstance(utility, ConstrainedInformation):
        return utility.best_request(x)
    assert isinstance(utility, SumOverOutcomes)
    return tuple(i for i, part in enumerate(utility.parts) if part is not None)

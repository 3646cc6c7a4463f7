"""Optimisation under constraints observed with the objective: BOWH, slides up to page 69."""

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor

from plumbline.acquisition.constraints.exact_penalty import ExactPenalty
from plumbline.acquisition.constraints.feasibility import SumOverOutcomes, log_constrained_improvement
from plumbline.acquisition.constraints.recommendation import recommended
from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.core.outcomes import Role
from plumbline.methods.base import methods
from plumbline.methods.composed import Choice, Round, complete_rows
from plumbline.methods.gp.independent import IndependentMethod
from plumbline.models.gp.fit import ModelOptions
from plumbline.models.gp.process import GP
from plumbline.spaces.base import Space
from plumbline.spaces.search import MultiStart, SearchOptions
from plumbline.spaces.table import Table


class RecommendationOptions(Options):
    """The recommended point: the evaluated one of greatest mean that is feasible with some confidence.

    Attributes:
        confidence: least probability that all constraints hold.
        tolerance: greatest distance from zero at which an equality holds, in its own units.
    """

    confidence: float = Field(default=0.95, gt=0, lt=1)
    tolerance: PositiveFloat = 0.01


class ConstrainedOptions(Options):
    """Options of every method for one objective under constraints.

    Attributes:
        model: kernel and priors of each outcome's process.
        search: the multi-start search for the acquisition function's maximiser.
        recommend: options of the recommended point, which queries do not depend on.
    """

    model: ModelOptions = ModelOptions()
    search: SearchOptions = SearchOptions()
    recommend: RecommendationOptions = RecommendationOptions()


class ConstrainedImprovementOptions(ConstrainedOptions):
    """Options of constrained expected improvement.

    Attributes:
        tolerance: greatest distance from zero at which an equality holds, in its own units. At 0, the slides' formula,
            it holds at no observed point, so that there is never an incumbent.
    """

    tolerance: NonNegativeFloat = 0.0


class ExactPenaltyOptions(ConstrainedOptions):
    """Options of exact penalties.

    Attributes:
        sqrt_beta: standard deviations in the confidence bounds of objective and constraints.
        rho: cost of a unit of a constraint, in units of the objective; null for infinity.
    """

    sqrt_beta: PositiveFloat = 2.0
    rho: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class ConstrainedMethod(IndependentMethod):
    """One objective under constraints; a subclass gives the acquisition function of a single point.

    The points of a batch are chosen one after the other, as if the means at those before were values without noise.
    """

    takes = "one objective and constraints"
    options: ConstrainedOptions

    @property
    def roles(self) -> list[Role]:
        """The role of each outcome."""
        return [outcome.role for outcome in self.domain.outcomes]

    def search(self, utility: AcquisitionFunction, surrogate: list[GP], round: Round) -> Choice[list[GP]]:
        """Return the sequentially chosen maximisers; fewer where a table has fewer rows left."""
        space = round.settled
        X = self.peak(utility, space, round)
        believed = surrogate
        for _ in range(1, int(min(round.q, space.size))):
            believed = [process.condition_on_mean(X[-1:]) for process in believed]
            space = space.without(X[-1:])
            X = torch.cat([X, self.peak(self.utility(believed, round), space, round)])
        return Choice(X, utility, surrogate)

    def notes(self, choice: Choice[list[GP]], round: Round) -> dict[str, float]:
        """Return the index from 0 of the evaluation recommended before this round's evaluations."""
        options = self.options.recommend
        row = recommended(choice.surrogate, self.roles, round.history.X, options.confidence, options.tolerance)
        return {**choice.notes, "recommended": float(row)}

    def peak(self, utility: AcquisitionFunction, space: Space, round: Round) -> Tensor:
        """Return the maximiser in a settled space, `1 x d`."""
        return space.maximise(utility, MultiStart(1, self.options.search, round.seed))


def best_feasible(data: History, roles: list[Role], tolerance: float) -> Tensor | None:
    """Return the greatest observation of the objective whose constraints were observed to hold; None before any.

    Args:
        data: the observations; rows with an unobserved outcome are dropped.
        roles: roles of the outcomes.
        tolerance: greatest distance from zero at which an equality holds.
    """
    Y = complete_rows(data).Y
    feasible = torch.ones(len(Y), dtype=torch.bool)
    for role, y in zip(roles, Y.unbind(-1), strict=True):
        if role != "objective":
            feasible &= y >= 0 if role == "at_least_zero" else y.abs() <= tolerance
    values = Y[feasible, roles.index("objective")]
    return values.max() if len(values) else None


@methods.register("eic", ConstrainedImprovementOptions)
class ConstrainedExpectedImprovement(ConstrainedMethod):
    """Expected improvement times the probability that all constraints hold (its logarithm: the same maximiser).

    While no observed point is feasible there is no incumbent, and the probability alone is maximised: the slides' rule.
    """

    options: ConstrainedImprovementOptions

    def utility(self, surrogate: list[GP], round: Round) -> SumOverOutcomes:
        """Return the logarithm of the product."""
        best = best_feasible(round.data, self.roles, self.options.tolerance)
        return log_constrained_improvement(surrogate, self.roles, best, self.options.tolerance)


@methods.register("epbo", ExactPenaltyOptions)
class ExactPenaltyOptimisation(ConstrainedMethod):
    """The objective's confidence bound, exactly penalised where the constraints' bounds exclude feasibility."""

    options: ExactPenaltyOptions

    def utility(self, surrogate: list[GP], round: Round) -> ExactPenalty:
        """Return the penalised bound."""
        return ExactPenalty(surrogate, self.roles, self.options.sqrt_beta, self.options.rho)

    def peak(self, utility: AcquisitionFunction, space: Space, round: Round) -> Tensor:
        """Return the maximiser; in a box, the climbs' best end, polished by the smooth program."""
        X = super().peak(utility, space, round)
        if isinstance(space, Table):
            return X
        assert isinstance(utility, ExactPenalty)
        return utility.polished(X, space.bounds)

"""The knowledge gradient: the expected increase of the greatest posterior mean by an observation."""

from abc import abstractmethod

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.utils.sampling import draw_sobol_samples, manual_seed
from pydantic import PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.analytic import AnalyticAcquisition, upper_confidence_bound
from plumbline.acquisition.knowledge_gradient.discrete import DiscreteKnowledgeGradient
from plumbline.acquisition.knowledge_gradient.one_shot import OneShotKnowledgeGradient, good_starts
from plumbline.acquisition.knowledge_gradient.stochastic import AscentOptions, ascend
from plumbline.methods.base import methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.gp.single_outcome import GPMethod, GPOptions
from plumbline.models.gp.process import GP
from plumbline.spaces.box import Climbs, climb, uniform, units_of
from plumbline.spaces.search import MultiStart
from plumbline.spaces.table import Table
from plumbline.spaces.with_gradient import in_usual_units


class KnowledgeGradientOptions(GPOptions):
    """Options of the knowledge gradient.

    Attributes:
        fantasies: number of draws of the next observations.
        points: number of points of a box over which the greatest mean is taken, where it is not searched for.
    """

    fantasies: PositiveInt = 64
    points: PositiveInt = 256


class KnowledgeGradientMethod(GPMethod):
    """The knowledge gradient; a subclass defines its search in a box. In a table all rows are compared."""

    options: KnowledgeGradientOptions

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return the knowledge gradient over finitely many points: exact in a table, a lower bound in a box."""
        return DiscreteKnowledgeGradient(surrogate, self._points(surrogate, round), self.options.fantasies)

    def search(self, utility: AcquisitionFunction, surrogate: GP, round: Round) -> Choice[GP]:
        """Return the best rows of a table, or the ends of the search in a box."""
        if round.settled.finite:
            return super().search(utility, surrogate, round)
        assert isinstance(utility, DiscreteKnowledgeGradient)
        return Choice(self.climbed(utility, surrogate, round), utility, surrogate)

    def climbed(self, utility: DiscreteKnowledgeGradient, surrogate: GP, round: Round) -> Tensor:
        """Return `q x d` points of a box, chosen sequentially with the means at those before as data."""
        chosen = utility.points[:0]
        for _ in range(round.q):
            now = surrogate.kriging_believer(chosen) if len(chosen) else surrogate
            exact = DiscreteKnowledgeGradient(now, utility.points, self.options.fantasies)
            starts = best_of(uniform(round.space.bounds, self.options.search.raw_samples, round.generator), exact)
            starts = starts[: self.options.search.restarts]
            chosen = torch.cat([chosen, self.best_end(exact, starts, round.space.bounds, round.generator)])
        return chosen

    @abstractmethod
    def best_end(
        self, exact: DiscreteKnowledgeGradient, starts: Tensor, bounds: Tensor, generator: Generator
    ) -> Tensor:
        """Return the best end of the climbs from `starts`, `1 x d`.

        Args:
            exact: the knowledge gradient over finitely many points.
            starts: `r x d`.
            bounds: `2 x d`.
            generator: random generator of the round.
        """

    def _points(self, surrogate: GP, round: Round) -> Tensor:
        space = round.settled
        if isinstance(space, Table):
            return torch.cat([space.rows, round.data.X])
        spread = draw_sobol_samples(space.bounds, n=self.options.points, q=1, seed=round.seed).squeeze(1)
        mean = AnalyticAcquisition(surrogate, upper_confidence_bound(0.0), unit=surrogate.standardisation.scale)
        with manual_seed(round.seed):  # some of BoTorch draws from the global stream
            best = space.maximise(mean, MultiStart(1, self.options.search, round.seed))
        return torch.cat([best, round.data.X, spread])


@methods.register("kg", KnowledgeGradientOptions)
class SampledKnowledgeGradient(KnowledgeGradientMethod):
    """The knowledge gradient by sample average: one search over queries and the maximisers after them."""

    def best_end(
        self, exact: DiscreteKnowledgeGradient, starts: Tensor, bounds: Tensor, generator: Generator
    ) -> Tensor:
        """Return the query of the greatest sample average; Balandat et al. (2020)."""
        one_shot = in_usual_units(OneShotKnowledgeGradient(exact.process, exact.Z))
        together = good_starts(exact.process, starts, exact.points, exact.Z)
        limits = self.options.search
        climbs = Climbs(one_shot, together, bounds, units_of(self.domain.bounds))
        ends, values = climb(climbs, limits.maxiter, limits.patience)
        return ends[values.argmax(), :1]


class AscendedKnowledgeGradientOptions(KnowledgeGradientOptions):
    """Options of the knowledge gradient by stochastic gradients.

    Attributes:
        ascent: number and sizes of the steps.
    """

    ascent: AscentOptions = AscentOptions()


@methods.register("kg-sgd", AscendedKnowledgeGradientOptions)
class AscendedKnowledgeGradient(KnowledgeGradientMethod):
    """The knowledge gradient, maximised by stochastic gradients with the envelope theorem (Wu & Frazier, 2016)."""

    options: AscendedKnowledgeGradientOptions

    def best_end(
        self, exact: DiscreteKnowledgeGradient, starts: Tensor, bounds: Tensor, generator: Generator
    ) -> Tensor:
        """Return the best end of stochastic ascents, compared over the points of `exact` and the last maximisers."""
        ends, visited = ascend(exact.process, starts, exact.points, bounds, self.options.ascent, generator)
        exact = DiscreteKnowledgeGradient(exact.process, torch.cat([exact.points, visited]), self.options.fantasies)
        return best_of(ends, exact)[:1]


def best_of(X: Tensor, utility: DiscreteKnowledgeGradient) -> Tensor:
    """Return points, `n x d`, in decreasing order of their values."""
    return X[utility(X.unsqueeze(-2)).argsort(descending=True)]

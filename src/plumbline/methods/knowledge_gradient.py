"""The knowledge gradient: how much the greatest posterior mean is expected to gain by an observation."""

from abc import abstractmethod

import torch
from botorch.acquisition import AcquisitionFunction, qKnowledgeGradient
from botorch.utils.sampling import draw_sobol_samples, manual_seed
from pydantic import PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.analytic import AnalyticUtility, upper_confidence_bound
from plumbline.acquisition.discrete_gradient import DiscreteKnowledgeGradient
from plumbline.acquisition.mean_update import believed
from plumbline.acquisition.stochastic_gradient import AscentOptions, ascend
from plumbline.methods.base import methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.gp import GPMethod, GPOptions, base_samples
from plumbline.models.exact_gpytorch import gpytorch_model
from plumbline.models.exact_process import ExactProcess
from plumbline.spaces.base import Space
from plumbline.spaces.table import Table


class KnowledgeGradientOptions(GPOptions):
    """Options of the knowledge gradient.

    Attributes:
        fantasies: draws of the next observations.
        points: of a box, among which the greatest mean is looked for where no search for it is made.
    """

    fantasies: PositiveInt = 64
    points: PositiveInt = 256


class KnowledgeGradientMethod(GPMethod):
    """The knowledge gradient; a subclass says how it is climbed in a box. The rows of a table are all looked at."""

    options: KnowledgeGradientOptions

    def utility(self, surrogate: ExactProcess, round: Round) -> AcquisitionFunction:
        """Return the knowledge gradient over finitely many points: exact in a table, a lower bound in a box."""
        return DiscreteKnowledgeGradient(surrogate, self._points(surrogate, round), self.options.fantasies)

    def search(self, utility: AcquisitionFunction, surrogate: ExactProcess, round: Round) -> Choice[ExactProcess]:
        """Return the rows of greatest utility, or where the knowledge gradient was climbed to."""
        if settled(round).finite:
            return super().search(utility, surrogate, round)
        assert isinstance(utility, DiscreteKnowledgeGradient)
        # Some of BoTorch draws from the global stream.
        with manual_seed(round.seed):
            return Choice(self.climbed(utility, surrogate, round), utility, surrogate)

    @abstractmethod
    def climbed(self, utility: DiscreteKnowledgeGradient, surrogate: ExactProcess, round: Round) -> Tensor:
        """Return `q x d` points of a box."""

    def _points(self, surrogate: ExactProcess, round: Round) -> Tensor:
        space = settled(round)
        if isinstance(space, Table):
            return torch.cat([space.rows, round.data.X])
        spread = draw_sobol_samples(space.bounds, n=self.options.points, q=1, seed=round.seed).squeeze(1)
        mean = AnalyticUtility(surrogate, upper_confidence_bound(0.0))
        with manual_seed(round.seed):
            best = space.maximise(mean, 1, self.options.search, round.seed)
        return torch.cat([best, round.data.X, spread])


@methods.register("kg", KnowledgeGradientOptions)
class OneShotKnowledgeGradient(KnowledgeGradientMethod):
    """The knowledge gradient, queries and what they lead to searched for at once (BoTorch's qKnowledgeGradient)."""

    def climbed(self, utility: DiscreteKnowledgeGradient, surrogate: ExactProcess, round: Round) -> Tensor:
        """Return the queries of the greatest sample average; Balandat et al. (2020)."""
        fantasies = self.options.fantasies
        sampler = base_samples(fantasies, round.seed)
        one_shot = qKnowledgeGradient(gpytorch_model(surrogate.absorbed), fantasies, sampler)
        return round.space.maximise(one_shot, round.q, self.options.search, round.seed)


class AscendedKnowledgeGradientOptions(KnowledgeGradientOptions):
    """Options of the knowledge gradient by stochastic gradients.

    Attributes:
        ascent: steps and their sizes.
    """

    ascent: AscentOptions = AscentOptions()


@methods.register("kg-sgd", AscendedKnowledgeGradientOptions)
class AscendedKnowledgeGradient(KnowledgeGradientMethod):
    """The knowledge gradient, climbed by stochastic gradients with the envelope theorem (Wu & Frazier, 2016).

    A batch is chosen one by one, as if the points before had been seen and had been what is expected there.
    """

    options: AscendedKnowledgeGradientOptions

    def climbed(self, utility: DiscreteKnowledgeGradient, surrogate: ExactProcess, round: Round) -> Tensor:
        """Return the best of the ends of some climbs, begun at the best of some points."""
        chosen = utility.points[:0]
        for _ in range(round.q):
            now = believed(surrogate, chosen) if len(chosen) else surrogate
            chosen = torch.cat([chosen, self._best_end(now, utility.points, round.space, round.generator)])
        return chosen

    def _best_end(self, process: ExactProcess, points: Tensor, space: Space, generator: Generator) -> Tensor:
        """Return `1 x d`; ends are judged by all points that were met on the way."""
        search, bounds = self.options.search, space.bounds
        drawn = torch.rand(search.raw_samples, space.dim, generator=generator, dtype=bounds.dtype)
        raw = bounds[0] + (bounds[1] - bounds[0]) * drawn
        judge = DiscreteKnowledgeGradient(process, points, self.options.fantasies)
        starts = raw[judge.values(raw.unsqueeze(-2)).topk(min(search.restarts, len(raw))).indices]
        ends, met = ascend(process, starts, points, bounds, self.options.ascent, generator)
        judge = DiscreteKnowledgeGradient(process, torch.cat([points, met]), self.options.fantasies)
        return ends[judge.values(ends.unsqueeze(-2)).argmax()].unsqueeze(0)


def settled(round: Round) -> Space:
    """Return the round's space as it is searched: always the same one."""
    return round.space.settle(round.history, Generator().manual_seed(round.seed))

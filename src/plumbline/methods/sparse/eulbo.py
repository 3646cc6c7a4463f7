"""Approximation-aware Bayesian optimisation: a query and the SVGP behind it, refined jointly by the EULBO.

Maus, Kim, Pleiss, Eriksson, Cunningham & Gardner, Approximation-aware Bayesian optimization (NeurIPS 2024).
docs/methods/approximation-aware.md lists the gaps in the text, our choices, and those of the published code.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.generation.sampling import MaxPosteriorSampling
from botorch.utils.sampling import draw_sobol_normal_samples, draw_sobol_samples
from pydantic import PositiveFloat
from torch import Tensor

from plumbline.acquisition.analytic import AnalyticAcquisition, upper_confidence_bound
from plumbline.methods.base import methods
from plumbline.methods.composed import Choice, Round, Steps
from plumbline.methods.lockstep import JointStep
from plumbline.methods.sparse.eulbo_objective import EulboOptions, Refines, Weighting, maximise_eulbo
from plumbline.methods.sparse.knowledge_gradient import SparseKnowledgeGradient
from plumbline.methods.sparse.method import SparseMethod, shuffled, troubles_of
from plumbline.methods.sparse.options import LAST, SparseOptions
from plumbline.methods.sparse.soft_improvement import SoftBatchImprovement, SoftImprovement
from plumbline.methods.sparse.soft_knowledge_gradient import SoftKnowledgeGradient
from plumbline.methods.sparse.soft_utility import SoftUtility
from plumbline.methods.wrappers.trust_region import region_box
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp.minibatches import TrainingOptions
from plumbline.models.svgp.posterior import SVGPPosterior
from plumbline.models.svgp.process import SVGP
from plumbline.models.svgp.training import ATTEMPTS
from plumbline.spaces.base import Space
from plumbline.spaces.search import AroundIncumbent, MultiStart, Neighbourhood

EXAMINED = 512
"""Number of Sobol points over which posterior samples are maximised."""

NEAR = AroundIncumbent(share=0.125)
"""Where the search for the mean's maximiser has raw samples besides everywhere."""


class EulboMethodOptions(SparseOptions):
    """Options of the methods that maximise the EULBO.

    Attributes:
        refines: parameters of the process that are refined with the query; AABO, section 4.3.
        query_rate: learning rate of the query.
        weighting: weight of the utility; the departure `utility-per-datum` overrides it.
    """

    refines: Refines = "all"
    query_rate: PositiveFloat = 0.001
    weighting: Weighting = "evidence"

    @property
    def first_training(self) -> TrainingOptions:
        """The training before the refinement: the code stops after ten epochs, converged or not."""
        if "short-warm-start" in self.departures:
            return self.training.model_copy(update={"failures": 10, "epochs": 10})
        return super().first_training

    @property
    def eulbo(self) -> EulboOptions:
        """The options of maximising the EULBO."""
        departures = self.departures
        return EulboOptions(
            **self.training.model_dump() | self.stopping_rule,
            query_rate=self.query_rate,
            weighting="datum" if "utility-per-datum" in departures else self.weighting,
            refines=self.refines,
            turns="epochs" if "turns-by-epoch" in departures else "steps",
            climb="queries" if "fixed-maximisers" in departures else "all",
            attempts=8 if "eight-attempts" in departures else ATTEMPTS,
        )


class EulboMethod(SparseMethod):
    """A query and the process that chose it, refined jointly by maximising the EULBO; AABO, algorithm 1.

    They start from the optima of the ELBO and of the conventional acquisition function. A subclass gives the utility.
    """

    options: EulboMethodOptions

    @property
    def steps(self) -> Steps[SVGP]:
        """The steps, where the queries and processes of several methods are refined together."""
        return replace(super().steps, refine=JointStep(self, lambda turns: self.refine([turn.call for turn in turns])))

    @property
    def refinement(self) -> EulboOptions:
        """The options of the refinement."""
        return self.options.eulbo

    @classmethod
    def refine(cls, chosen: Sequence[tuple[Self, Choice[SVGP], Round]]) -> list[Choice[SVGP]]:
        """Return queries and processes that maximise the EULBO, computed for all methods together."""
        one, device = chosen[0][0], chosen[0][2].device
        processes = [choice.surrogate for _, choice, _ in chosen]
        points = torch.stack([method.points(choice, round) for method, choice, round in chosen])
        data = [method.training_data(round, choice.surrogate.standardisation) for method, choice, round in chosen]
        outcome = maximise_eulbo(
            torch.stack([process.row for process in processes]).to(device),
            points.to(device),
            torch.stack(
                [
                    method.box(round, process.standardisation)
                    for (method, _, round), process in zip(chosen, processes, strict=True)
                ]
            ).to(device),
            one.layout,
            one.options.kernel,
            one.soft_utility(chosen, device),
            shuffled(data, [round for _, _, round in chosen], device),
            one.options.objective,
            one.refinement,
        )
        rows, moved = (part.cpu() for part in outcome.trained)
        refined = []
        for i, (method, choice, round) in enumerate(chosen):
            process = replace(choice.surrogate, row=rows[i].clone())
            method.trained |= {
                "eulbo_epochs": float(outcome.epochs[i]),
                "query_moved": float((moved[i, : round.q] - points[i, : round.q]).norm(dim=-1).max()),
            }
            method.troubles = [*method.troubles, *troubles_of(outcome.attempts[i], outcome.reverted[i])]
            refined.append(method.refined(process, moved[i], choice, round))
        return refined

    def refined(self, process: SVGP, points: Tensor, choice: Choice[SVGP], round: Round) -> Choice[SVGP]:
        """Return the choice with the refined process and query; rows of a table cannot move and are chosen anew."""
        self.remember(process, round)
        settled = round.settled
        if not settled.finite:
            # Rounding in the map from the unit cube may leave the box by the last digit, which problems refuse.
            X = process.standardisation.points(points[: len(choice.X)]).clamp(*self.domain.bounds)
            return replace(choice, X=X, surrogate=process, ends=None)
        utility = self.utility(process, round)
        X = settled.maximise(utility, MultiStart(round.q, self.options.search, round.seed))
        return replace(choice, X=X, surrogate=process, utility=utility, ends=None)

    def points(self, choice: Choice[SVGP], round: Round) -> Tensor:
        """Return the queries, followed by the utility's own points, in the process's inputs: `k x d`."""
        return choice.surrogate.standardisation.inputs(choice.X)

    @abstractmethod
    def soft_utility(
        self, chosen: "Sequence[tuple[EulboMethod, Choice[SVGP], Round]]", device: torch.device
    ) -> SoftUtility:
        """Return the utility of all `chosen` seeds."""

    def box(self, round: Round, standardisation: Standardisation) -> Tensor:
        """Return the box that queries are projected on, `2 x d`, in the process's inputs."""
        bounds, whole = round.space.bounds, self.domain.bounds
        X, Y = round.data.X, round.data.Y[:, 0]
        if "region-of-the-last-hundred" in self.options.departures and not torch.equal(bounds, whole):
            bounds = recentred(bounds, whole, X[Y.argmax()], X[-LAST:][Y[-LAST:].argmax()])
        return standardisation.inputs(bounds)

    def normal_samples(self, round: Round) -> Tensor:
        """Return the round's fixed base samples, `S x q`; AABO, section 3.4."""
        return draw_sobol_normal_samples(round.q, self.options.mc_samples, seed=round.seed).to(self.domain.bounds)


def recentred(region: Tensor, whole: Tensor, centre: Tensor, other: Tensor) -> Tensor:
    """Return a trust region of the same length about another centre, `2 x d`.

    Args:
        region: `2 x d`, the part of `whole` within half a length of the centre, in widths of `whole`.
        whole: `2 x d`.
        centre, other: `d`, the present and the new centre.
    """
    length = 2 * float(((region - centre) / (whole[1] - whole[0])).abs().max())
    return region_box(other, torch.ones(1).to(other), length, whole)


def best_values(chosen: Sequence[tuple[Any, Choice[SVGP], Round]], device: torch.device) -> Tensor:
    """Return the best observation of each seed, in its process's units: `b`."""
    best = [choice.surrogate.standardisation.outputs(round.data.Y.max()) for _, choice, round in chosen]
    return torch.stack(best).to(device)


@methods.register("eulbo-ei", EulboMethodOptions)
class EulboImprovement(EulboMethod):
    """Soft expected improvement with a jointly refined query and SVGP (Maus et al., 2024)."""

    def soft_utility(
        self, chosen: Sequence[tuple[EulboMethod, Choice[SVGP], Round]], device: torch.device
    ) -> SoftUtility:
        """Return soft (q-)EI."""
        best = best_values(chosen, device)
        q = len(chosen[0][1].X)
        if q == 1:
            return SoftImprovement(best)
        base = torch.stack([method.normal_samples(round)[:, :q] for method, _, round in chosen])
        return SoftBatchImprovement(best, q, base.to(device))


@methods.register("eulbo-kg", EulboMethodOptions)
class EulboKnowledgeGradient(EulboMethod):
    """Soft knowledge gradient with a jointly refined query and SVGP (Maus et al., 2024)."""

    @property
    def refinement(self) -> EulboOptions:
        """The options of the refinement: the code samples posteriors first, and stays in evaluation mode."""
        return self.options.eulbo.model_copy(update={"frozen_factors": "frozen-factors" in self.options.departures})

    def utility(self, surrogate: SVGP, round: Round) -> AcquisitionFunction:
        """Return the knowledge gradient, or expected improvement as in the published code."""
        if "improvement-before-gradient" in self.options.departures:
            return super().utility(surrogate, round)
        return self.gradient(surrogate, round)

    def gradient(self, process: SVGP, round: Round) -> SparseKnowledgeGradient:
        """Return the knowledge gradient over maximisers of posterior samples and of the mean."""
        maximisers = self.maximisers(process, round)
        return SparseKnowledgeGradient(process, maximisers, self.normal_samples(round), self.options.reading)

    def maximisers(self, process: SVGP, round: Round) -> Tensor:
        """Return candidates for the maximiser of the next mean: `S x d` of posterior samples, then two of the mean."""
        settled = round.settled
        sampled = self.sampled_maximisers(process, settled, round.seed)
        if "sampled-maximisers" in self.options.departures:
            return sampled
        return torch.cat([sampled, self.mean_maximisers(process, settled, round)])

    def mean_maximisers(self, process: SVGP, settled: Space, round: Round) -> Tensor:
        """Return the points of greatest mean among the data and anywhere in the region that is searched, `2 x d`.

        Data outside of the region are moved to its border, as the refinement moves maximisers.
        """
        posterior, data = SVGPPosterior(process), round.data.X.clamp(*settled.bounds)
        incumbent = data[posterior.marginal_posterior(data).location.argmax()]
        mean = AnalyticAcquisition(posterior, upper_confidence_bound(0.0), unit=process.standardisation.scale)
        (best, *_) = settled.ends(mean, MultiStart(1, self.options.search, round.seed, Neighbourhood(incumbent, NEAR)))
        return torch.cat([incumbent.unsqueeze(0), best])

    def sampled_maximisers(self, process: SVGP, settled: Space, seed: int) -> Tensor:
        """Return distinct maximisers of posterior samples, `S x d`."""
        points = draw_sobol_samples(settled.bounds, EXAMINED, 1, seed=seed).squeeze(-2)
        # BoTorch draws these samples from the global stream.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            maximum = MaxPosteriorSampling(ProcessModel(process, noisy=self.options.noisy), replacement=False)
            return maximum(points, num_samples=self.options.mc_samples)

    def points(self, choice: Choice[SVGP], round: Round) -> Tensor:
        """Return the queries, followed by the best maximiser for each sample."""
        process, utility = choice.surrogate, choice.utility
        if not isinstance(utility, SparseKnowledgeGradient):
            utility = self.gradient(process, round)
        fixed = "fixed-maximisers" in self.options.departures
        # One a sample: in the code those of posterior samples, which come first.
        maximisers = utility.maximisers[: len(utility.base)] if fixed else utility.best_maximisers(choice.X)
        return process.standardisation.inputs(torch.cat([choice.X, maximisers]))

    def soft_utility(
        self, chosen: Sequence[tuple[EulboMethod, Choice[SVGP], Round]], device: torch.device
    ) -> SoftUtility:
        """Return the soft one-shot knowledge gradient."""
        q, departures = len(chosen[0][1].X), self.options.departures
        base = torch.stack([method.normal_samples(round)[:, :q] for method, _, round in chosen])
        return SoftKnowledgeGradient(
            best_values(chosen, device),
            q,
            base.to(device),
            self.options.reading,
            doubled="doubled-noise" in departures,
            appended="appended-update" in departures,
            centred="uncentred-update" not in departures,
        )

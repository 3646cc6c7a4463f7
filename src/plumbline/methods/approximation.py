"""Approximation-aware Bayesian optimisation and what it is compared with: sparse variational processes.

Maus, Kim, Pleiss, Eriksson, Cunningham & Gardner, Approximation-aware Bayesian optimization (NeurIPS 2024).
docs/approximation-aware.md says what the text leaves open, what was chosen, and what the published code does.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, cast, get_args

import torch
from botorch.acquisition import (
    AcquisitionFunction,
    ExpectedImprovement,
    LogExpectedImprovement,
    qExpectedImprovement,
    qLogExpectedImprovement,
)
from botorch.generation.sampling import MaxPosteriorSampling
from botorch.utils.probability.utils import ndtr, phi
from botorch.utils.sampling import draw_sobol_normal_samples, draw_sobol_samples
from pydantic import PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.eulbo import EulboOptions, Refines, Weighting, maximise_eulbo
from plumbline.acquisition.knowledge_gradient import DiscreteKnowledgeGradient
from plumbline.acquisition.soft_utility import (
    SoftBatchImprovement,
    SoftImprovement,
    SoftKnowledgeGradient,
    SoftUtility,
)
from plumbline.calibration.predictive import GaussianPredictive
from plumbline.history import History
from plumbline.methods.base import Domain, Predictor, methods
from plumbline.methods.composed import Choice, ComposedMethod, Round
from plumbline.methods.gp import base_samples
from plumbline.models.inducing import best_beliefs, greedy_dpp
from plumbline.models.minibatches import Shuffled, TrainingOptions
from plumbline.models.process_model import ProcessModel
from plumbline.models.sparse import Layout, Objective, initial_row
from plumbline.models.sparse_process import SparseProcess
from plumbline.models.sparse_training import fit
from plumbline.models.units import Units, units_of
from plumbline.models.whitened import CORRELATIONS, SparseKernel, squared_distances
from plumbline.options import Options
from plumbline.spaces.search import SearchOptions

Departure = Literal[
    "raw-inputs",
    "units-of-the-design",
    "last-hundred",
    "failures-in-total",
    "improvement-of-observations",
    "frozen-inducing",
    "utility-per-datum",
    "short-warm-start",
    "turns-by-epoch",
    "region-of-the-last-hundred",
    "improvement-before-gradient",
    "fixed-maximisers",
    "uncentred-update",
    "doubled-noise",
]
"""What the published code does otherwise; docs/approximation-aware.md has each in words."""

DEPARTURES: tuple[Departure, ...] = get_args(Departure)

LAST = 100
"""Observations that the published code trains on after its first round."""

EXAMINED = 512
"""Points of a Sobol sequence that posterior samples are maximised over."""


class LearningRateLoweredWarning(RuntimeWarning):
    """A training came to no number, and was repeated with smaller steps."""


class WarmStartKeptWarning(RuntimeWarning):
    """No attempt at a training came to numbers: what it began with was kept."""


class SparseOptions(Options):
    """Options of every method with a sparse variational process; defaults of AABO, table 1.

    Attributes:
        kernel: squared exponential (the code; the text does not say) or Matern-5/2, with one lengthscale.
        inducing: number of inducing points.
        objective: ELBO, or PPGPR's.
        training: how the process is trained in each round.
        improvement: expected improvement, or its logarithm: the same maximiser, gradients that do not vanish.
        search: the multi-start search for the acquisition's maximiser.
        mc_samples: quasi-random samples of utilities without a closed form.
        variant: `paper`; `code`, the published code where it departs from the text; or some of its departures.
    """

    kernel: SparseKernel = "rbf"
    inducing: PositiveInt = 100
    objective: Objective = "elbo"
    training: TrainingOptions = TrainingOptions()
    improvement: Literal["plain", "log"] = "plain"
    search: SearchOptions = SearchOptions()
    mc_samples: PositiveInt = 64
    variant: Literal["paper", "code"] | tuple[Departure, ...] = "paper"

    @property
    def departures(self) -> frozenset[Departure]:
        """What is done as in the published code."""
        if isinstance(self.variant, str):
            return frozenset(DEPARTURES if self.variant == "code" else ())
        return frozenset(self.variant)

    @property
    def first_training(self) -> TrainingOptions:
        """How the process is trained before anything is refined."""
        if "failures-in-total" in self.departures:
            return self.training.model_copy(update={"counted": "in total", "epochs": self.training.epochs + 1})
        return self.training


class EulboMethodOptions(SparseOptions):
    """Options of the methods that maximise the EULBO.

    Attributes:
        refines: which parameters of the process are refined with the query; AABO, section 4.3.
        query_rate: learning rate of the query.
        weighting: what the utility weighs; `utility-per-datum` among the departures takes its place.
    """

    refines: Refines = "all"
    query_rate: PositiveFloat = 0.001
    weighting: Weighting = "evidence"

    @property
    def first_training(self) -> TrainingOptions:
        """How the process is trained before anything is refined: the code stops after ten epochs, converged or not."""
        if "short-warm-start" in self.departures:
            return self.training.model_copy(update={"failures": 10, "epochs": 10})
        return super().first_training

    @property
    def eulbo(self) -> EulboOptions:
        """How the EULBO is maximised."""
        departures = self.departures
        in_total = "failures-in-total" in departures
        return EulboOptions(
            **self.training.model_dump(exclude={"epochs", "counted"}),
            epochs=self.training.epochs + in_total,
            counted="in total" if in_total else self.training.counted,
            query_rate=self.query_rate,
            weighting="datum" if "utility-per-datum" in departures else self.weighting,
            refines=self.refines,
            turns="epochs" if "turns-by-epoch" in departures else "steps",
            climb="queries" if "fixed-maximisers" in departures else "all",
        )


def place_inducing(X: Tensor, layout: Layout, process: SparseProcess, quality: Tensor, fill: Tensor) -> Tensor:
    """Return inducing points among the data, and some of `fill` where the data are too few or too much alike.

    Args:
        X: `n x d`, in the process's inputs.
        layout: how many are wanted.
        process: whose kernel tells points apart.
        quality: `n`, of the data.
        fill: `m x d`, other points.
    """
    parts = process.parameters
    scaled = X / parts.lengthscale
    correlation = CORRELATIONS[process.kernel]

    def column(i: int) -> Tensor:
        r2 = squared_distances(scaled.unsqueeze(0), scaled[i].view(1, 1, -1)).flatten()
        return parts.outputscale * correlation(r2)[0]

    chosen = greedy_dpp(column, parts.outputscale.expand(len(X)), quality, layout.m)
    return torch.cat([X[chosen], fill[: layout.m - len(chosen)]])


def improvement_quality(process: SparseProcess, X: Tensor) -> Tensor:
    """Return the expected improvement of points over the greatest posterior mean among them: `n`.

    Moss et al. (2023), section 4; BoTorch's `ExpectedImprovementQualityFunction`, from marginals alone.

    Args:
        process: of the round before.
        X: `n x d`, in the problem's bounds.
    """
    mean, variance = process.moments(X.unsqueeze(-2), joint=False)
    mean, sd = mean.squeeze(-1), variance.squeeze(-1).sqrt()
    u = (mean - mean.max()) / sd
    return (sd * (phi(u) + u * ndtr(u))).clamp_min(0.0)


class SparseMethod(ComposedMethod[SparseProcess]):
    """A sparse variational process that goes on from round to round; a subclass says which utility is maximised.

    Inducing points begin where the greedy process of Moss et al. (2023) puts them, and are then trained like all other
    parameters. Observations are standardised anew in each round, inputs are in the unit cube.

    Attributes:
        process: of the last round; None before the first.
        began: the first point that it was trained on, `d`: where it is another now, a trust region began anew.
        trained: numbers of this round's training.
        troubles: what went wrong in it.
    """

    takes = "one objective"
    together = 8
    options: SparseOptions

    def __init__(self, domain: Domain, options: SparseOptions) -> None:
        super().__init__(domain, options)
        self.process: SparseProcess | None = None
        self.began: Tensor | None = None
        self.trained: dict[str, float] = {}
        self.troubles: list[type[Warning]] = []

    @property
    def layout(self) -> Layout:
        """Where the process's parameters are."""
        return Layout(self.options.inducing, self.domain.space.dim)

    def fit(self, data: History) -> SparseProcess:
        """Return the process trained on the data alone."""
        first = type(self)(self.domain, self.options)
        round = Round(data, data, self.domain.space, 1, Generator().manual_seed(0))
        return self.models([(first, round)])[0]

    @classmethod
    def models(cls, asked: Sequence[tuple[ComposedMethod[Any], Round]]) -> list[SparseProcess]:
        """Return the trained process of each, all of them trained together, from those of the rounds before."""
        mine = cast(Sequence[tuple[Self, Round]], asked)
        starts = [method.start(round) for method, round in mine]
        one, device = mine[0][0], mine[0][1].device
        data = [
            method.training_data(round, process.units) for (method, round), process in zip(mine, starts, strict=True)
        ]
        found = fit(
            torch.stack([process.row for process in starts]).to(device),
            one.layout,
            one.options.kernel,
            shuffled(data, [round for _, round in mine], device),
            one.options.objective,
            one.options.first_training,
            one.trained_parameters(),
        )
        for (method, _), epochs, attempts, kept in zip(mine, found.epochs, found.attempts, found.kept, strict=True):
            method.trained = {"fit_epochs": float(epochs)}
            method.troubles = troubles_of(attempts, kept)
        rows = found.trained[0].cpu()
        return [
            method.after_training(replace(process, row=row.clone(), stale=None))
            for (method, _), process, row in zip(mine, starts, rows, strict=True)
        ]

    def trained_parameters(self) -> Tensor | None:
        """Return which parameters training moves, `p` booleans; None for all."""
        return None

    def after_training(self, process: SparseProcess) -> SparseProcess:
        """Return what the rest of the round sees of a trained process."""
        return process

    def start(self, round: Round) -> SparseProcess:
        """Return what this round's training begins with: the process of the last one, in this round's units."""
        units, before = self.units(round), self.before(round)
        return self.first_process(round, units) if before is None else before.in_units(units)

    def before(self, round: Round) -> SparseProcess | None:
        """Return the process of the last round; None before the first, and where a trust region began anew."""
        same = self.began is not None and torch.equal(round.data.X[0], self.began)
        return self.process if same else None

    def units(self, round: Round) -> Units:
        """Return the units of this round's inputs and observations."""
        departures, Y = self.options.departures, round.data.Y[:, 0]
        if "units-of-the-design" in departures:
            Y = round.history.Y[: max(round.history.initial, 1), 0]
            Y = Y[torch.isfinite(Y)]
        units = units_of(self.domain.bounds, Y)
        if "raw-inputs" in departures:
            return replace(units, low=torch.zeros_like(units.low), width=torch.ones_like(units.width))
        return units

    def first_process(self, round: Round, units: Units) -> SparseProcess:
        """Return a process with GPyTorch's initial parameters at diverse inducing points; AABO, appendix A."""
        X = units.inputs(round.data.X)
        fill = units.inputs(draw_sobol_samples(self.domain.bounds, self.layout.m, 1, seed=round.seed).squeeze(-2))
        blank = SparseProcess(initial_row(fill), self.layout, self.options.kernel, units)
        Z = place_inducing(X, self.layout, blank, torch.ones(len(X)).to(X), fill)
        return replace(blank, row=initial_row(Z))

    def training_data(self, round: Round, units: Units) -> tuple[Tensor, Tensor]:
        """Return the points, `n x d`, and observations, `n`, that the process is trained on, in its units."""
        X, Y = units.inputs(round.data.X), units.outputs(round.data.Y[:, 0])
        if "last-hundred" in self.options.departures and len(round.history) > round.history.initial:
            return X[-LAST:], Y[-LAST:]
        return X, Y

    def search(self, utility: AcquisitionFunction, surrogate: SparseProcess, round: Round) -> Choice[SparseProcess]:
        """Return the points of greatest utility, and remember the process for the next round."""
        choice = super().search(utility, surrogate, round)
        self.remember(surrogate, round)
        return choice

    def remember(self, process: SparseProcess, round: Round) -> None:
        """Keep the process that the next round begins with."""
        self.process, self.began = process, round.data.X[0].clone()

    def utility(self, surrogate: SparseProcess, round: Round) -> AcquisitionFunction:
        """Return expected improvement over the best observation: in closed form at q = 1."""
        noisy = "improvement-of-observations" in self.options.departures
        model, best = ProcessModel(surrogate, noisy), round.data.Y.max()
        log = self.options.improvement == "log"
        if round.q == 1:
            return LogExpectedImprovement(model, best) if log else ExpectedImprovement(model, best)
        sampler = base_samples(self.options.mc_samples, round.seed)
        return (qLogExpectedImprovement if log else qExpectedImprovement)(model, best, sampler=sampler)

    def predictive(self, surrogate: SparseProcess) -> Predictor:
        """Return the process's forecasts of observations."""

        def predict(points: Tensor) -> GaussianPredictive:
            with torch.no_grad():
                mean, variance = surrogate.moments(points.unsqueeze(-2), joint=False)
                return GaussianPredictive(mean.squeeze(-1), (variance.squeeze(-1) + surrogate.noise_variance).sqrt())

        return predict

    def lengthscales(self, surrogate: SparseProcess) -> Tensor:
        """Return the one lengthscale of all inputs."""
        return surrogate.parameters.lengthscale.detach()

    def notes(self, choice: Choice[SparseProcess], round: Round) -> dict[str, float]:
        """Return how long the training took, and log what went wrong in it."""
        for trouble in self.troubles:
            warnings.warn("training did not come to numbers", trouble, stacklevel=2)
        return {**super().notes(choice, round), **self.trained}

    def state_dict(self) -> dict[str, Any]:
        """Return the process of the last round."""
        if self.process is None:
            return {}
        units = self.process.units
        return {
            "row": self.process.row,
            "units": [units.low, units.width, units.location, units.scale],
            "stale": self.process.stale,
            "began": self.began,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the process of the last round."""
        if state:
            units = Units(*state["units"])
            self.process = SparseProcess(state["row"], self.layout, self.options.kernel, units, state["stale"])
            self.began = state["began"]


def shuffled(
    data: Sequence[tuple[Tensor, Tensor]], rounds: Sequence[Round], device: torch.device
) -> Callable[[], list[Shuffled]]:
    """Return what makes the minibatches of some seeds, each from a stream of its own round, the same at each call."""
    placed = [(X.to(device), y.to(device)) for X, y in data]
    seeds = [round.seed for round in rounds]
    return lambda: [Shuffled(X, y, Generator().manual_seed(seed)) for (X, y), seed in zip(placed, seeds, strict=True)]


def troubles_of(attempts: int, kept: bool) -> list[type[Warning]]:
    """Return the events of a training."""
    found: list[type[Warning]] = [LearningRateLoweredWarning] if attempts > 1 else []
    return [*found, WarmStartKeptWarning] if kept else found


@methods.register("elbo-ei", SparseOptions)
class ElboImprovement(SparseMethod):
    """Expected improvement under a sparse process trained by the ELBO."""


@methods.register("moss-ei", SparseOptions)
class PlacedImprovement(SparseMethod):
    """The same, its inducing points placed anew in each round where data are diverse and good (Moss et al., 2023).

    Beliefs about the new inducing values begin at the best ones that there are, in closed form. In the published code
    points are chosen from those of the round before alone, so that they never change: `frozen-inducing`.
    """

    def start(self, round: Round) -> SparseProcess:
        """Return the process of the last round, at new inducing points."""
        before = super().start(round)
        if self.before(round) is None or "frozen-inducing" in self.options.departures:
            return before
        X = before.units.inputs(round.data.X)
        spare = before.parameters.inducing.squeeze(0)
        with torch.no_grad():
            Z = place_inducing(X, before.layout, before, improvement_quality(before, round.data.X), spare)
            row = before.row.clone()
            parts = before.layout.parts(row.unsqueeze(0))
            parts.inducing.copy_(Z)
            mean, factor = best_beliefs(parts, before.layout, *self.training_data(round, before.units), before.kernel)
            parts.mean.copy_(mean)
            parts.factor.copy_(factor)
        return replace(before, row=row)

    def trained_parameters(self) -> Tensor | None:
        """Return all parameters but the inducing points."""
        moved = torch.ones(self.layout.size, dtype=torch.bool)
        self.layout.parts(moved.unsqueeze(0)).inducing.fill_(False)
        return moved

    def after_training(self, process: SparseProcess) -> SparseProcess:
        """Return the process; as published, with its inducing points in another order than all that belongs to them."""
        if "frozen-inducing" not in self.options.departures:
            return process
        row = process.row.clone()
        inducing = process.layout.parts(row.unsqueeze(0)).inducing
        Z = process.parameters.inducing.squeeze(0)
        quality = improvement_quality(process, process.units.points(Z))
        inducing.copy_(place_inducing(Z, process.layout, process, quality, Z))
        return replace(process, row=row, stale=process.factor)


class EulboMethod(SparseMethod):
    """A query and the process that it is chosen by, refined together by maximising the EULBO; AABO, algorithm 1.

    They begin where the ELBO and the conventional acquisition function leave them. A subclass says which utility.
    """

    options: EulboMethodOptions

    @classmethod
    def refine(
        cls, chosen: Sequence[tuple[ComposedMethod[Any], Choice[SparseProcess], Round]]
    ) -> list[Choice[SparseProcess]]:
        """Return queries and processes that maximise the EULBO, those of all seeds together."""
        mine = cast(Sequence[tuple[Self, Choice[SparseProcess], Round]], chosen)
        one, device = mine[0][0], mine[0][2].device
        processes = [choice.surrogate for _, choice, _ in mine]
        points = torch.stack([method.points(choice, round) for method, choice, round in mine])
        data = [method.training_data(round, choice.surrogate.units) for method, choice, round in mine]
        found = maximise_eulbo(
            torch.stack([process.row for process in processes]).to(device),
            points.to(device),
            torch.stack(
                [method.box(round, process.units) for (method, _, round), process in zip(mine, processes, strict=True)]
            ).to(device),
            one.layout,
            one.options.kernel,
            one.soft_utility(mine, device),
            shuffled(data, [round for _, _, round in mine], device),
            one.options.objective,
            one.options.eulbo,
        )
        rows, moved = (part.cpu() for part in found.trained)
        refined = []
        for i, (method, choice, round) in enumerate(mine):
            process = replace(choice.surrogate, row=rows[i].clone())
            method.trained |= {
                "eulbo_epochs": float(found.epochs[i]),
                "query_moved": float((moved[i, : round.q] - points[i, : round.q]).norm(dim=-1).max()),
            }
            method.troubles = [*method.troubles, *troubles_of(found.attempts[i], found.kept[i])]
            refined.append(method.refined(process, moved[i], choice, round))
        return refined

    def refined(
        self, process: SparseProcess, points: Tensor, choice: Choice[SparseProcess], round: Round
    ) -> Choice[SparseProcess]:
        """Return the choice with the refined process and query; rows of a table, which do not move, are chosen anew."""
        self.remember(process, round)
        settled = round.space.settle(round.history, Generator().manual_seed(round.seed))
        if not settled.finite:
            # Rounding on the way out of the unit cube may leave the box by the last digit, which problems refuse.
            X = process.units.points(points[: len(choice.X)]).clamp(*self.domain.bounds)
            return replace(choice, X=X, surrogate=process)
        utility = self.utility(process, round)
        X = settled.maximise(utility, round.q, self.options.search, round.seed)
        return replace(choice, X=X, surrogate=process, utility=utility)

    def points(self, choice: Choice[SparseProcess], round: Round) -> Tensor:
        """Return the queries, and the utility's own points behind them, in the process's inputs: `k x d`."""
        return choice.surrogate.units.inputs(choice.X)

    @abstractmethod
    def soft_utility(
        self, chosen: "Sequence[tuple[EulboMethod, Choice[SparseProcess], Round]]", device: torch.device
    ) -> SoftUtility:
        """Return the utility of some seeds together."""

    def box(self, round: Round, units: Units) -> Tensor:
        """Return what queries are projected on, `2 x d`, in the process's inputs."""
        bounds = round.space.bounds
        last = round.data.Y[-LAST:, 0]
        if "region-of-the-last-hundred" in self.options.departures and len(last) < len(round.data):
            centre = round.data.X[len(round.data) - len(last) + int(last.argmax())]
            whole = self.domain.bounds
            half = ((bounds[1] - bounds[0]) / (whole[1] - whole[0])).max() / 2 * (whole[1] - whole[0])
            bounds = torch.stack([torch.maximum(centre - half, whole[0]), torch.minimum(centre + half, whole[1])])
        return units.inputs(bounds)

    def normal_samples(self, round: Round) -> Tensor:
        """Return the round's base samples, `S x q`: fixed, as in section 3.4."""
        return draw_sobol_normal_samples(round.q, self.options.mc_samples, seed=round.seed).to(self.domain.bounds)


def best_values(chosen: Sequence[tuple[Any, Choice[SparseProcess], Round]], device: torch.device) -> Tensor:
    """Return the best observation of each seed, in its process's units: `b`."""
    best = [choice.surrogate.units.outputs(round.data.Y.max()) for _, choice, round in chosen]
    return torch.stack(best).to(device)


@methods.register("eulbo-ei", EulboMethodOptions)
class EulboImprovement(EulboMethod):
    """Soft expected improvement, its query and its sparse process refined together (Maus et al., 2024)."""

    def soft_utility(
        self, chosen: Sequence[tuple[EulboMethod, Choice[SparseProcess], Round]], device: torch.device
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
    """Soft knowledge gradient, its query and its sparse process refined together (Maus et al., 2024)."""

    def utility(self, surrogate: SparseProcess, round: Round) -> AcquisitionFunction:
        """Return the knowledge gradient over maximisers of posterior samples."""
        if "improvement-before-gradient" in self.options.departures:
            return super().utility(surrogate, round)
        return DiscreteKnowledgeGradient(surrogate, self.maximisers(surrogate, round), self.normal_samples(round))

    def maximisers(self, process: SparseProcess, round: Round) -> Tensor:
        """Return points that maximise samples of the posterior, `S x d`, all different."""
        settled = round.space.settle(round.history, Generator().manual_seed(round.seed))
        points = draw_sobol_samples(settled.bounds, EXAMINED, 1, seed=round.seed).squeeze(-2)
        # The samples are drawn from the global stream, also where several seeds are refined together.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(round.seed)
            sampled = MaxPosteriorSampling(ProcessModel(process), replacement=False)
            return sampled(points, num_samples=self.options.mc_samples)

    def points(self, choice: Choice[SparseProcess], round: Round) -> Tensor:
        """Return the queries, and for each sample the best of the maximisers."""
        process, utility = choice.surrogate, choice.utility
        if not isinstance(utility, DiscreteKnowledgeGradient):
            maximisers = self.maximisers(process, round)
            utility = DiscreteKnowledgeGradient(process, maximisers, self.normal_samples(round))
        fixed = "fixed-maximisers" in self.options.departures
        maximisers = utility.maximisers if fixed else utility.best_maximisers(choice.X)
        return process.units.inputs(torch.cat([choice.X, maximisers]))

    def soft_utility(
        self, chosen: Sequence[tuple[EulboMethod, Choice[SparseProcess], Round]], device: torch.device
    ) -> SoftUtility:
        """Return the soft one-shot knowledge gradient."""
        q, departures = len(chosen[0][1].X), self.options.departures
        base = torch.stack([method.normal_samples(round)[:, :q] for method, _, round in chosen])
        return SoftKnowledgeGradient(
            best_values(chosen, device),
            q,
            base.to(device),
            doubled="doubled-noise" in departures,
            centred="uncentred-update" not in departures,
        )

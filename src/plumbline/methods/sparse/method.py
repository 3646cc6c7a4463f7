"""Expected improvement under SVGPs whose inducing points are trained or placed.

They are the baselines of approximation-aware Bayesian optimisation (`methods.sparse.eulbo`), and its starting points.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.utils.sampling import draw_sobol_samples
from torch import Generator, Tensor

from plumbline.acquisition.analytic import AnalyticAcquisition, expected_improvement, log_expected_improvement
from plumbline.acquisition.monte_carlo import MonteCarloAcquisition, batch_expected_improvement, log_batch_improvement
from plumbline.core.history import History
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Domain, Predictor, methods
from plumbline.methods.composed import Choice, Round, Steps, SurrogateMethod
from plumbline.methods.lockstep import JointStep, LockstepMethod
from plumbline.methods.sparse.options import LAST, SEARCH_SAMPLES, PlacedOptions, SparseOptions
from plumbline.models.standardisation import Standardisation, standardisation_of
from plumbline.models.svgp.inducing import best_beliefs, improvement_quality, place_inducing
from plumbline.models.svgp.minibatches import Shuffled
from plumbline.models.svgp.objective import Layout, initial_row
from plumbline.models.svgp.posterior import SVGPPosterior
from plumbline.models.svgp.process import SVGP
from plumbline.models.svgp.training import fit


class LearningRateLoweredWarning(RuntimeWarning):
    """A training diverged, and was repeated with a smaller learning rate."""


class WarmStartKeptWarning(RuntimeWarning):
    """Every attempt at a training diverged: the process keeps its parameters from before."""


class SparseMethod(LockstepMethod, SurrogateMethod[SVGP]):
    """Optimisation with an SVGP that is warm-started from round to round; subclasses choose the acquisition function.

    The greedy algorithm of Moss et al. (2023) places the initial inducing points, which are then trained like all other
    parameters. Observations are standardised anew in each round; inputs are in the unit cube.

    Attributes:
        process: the process of the last round; None before the first.
        began: the first point of its data, `d`: another first point shows that a trust region has restarted.
        trained: statistics of this round's training.
        troubles: events of this round's training.
    """

    takes = "one objective"
    provides = SurrogateMethod.provides | {"lengthscales", "one posterior", "lockstep"}
    lockstep_size = 8
    options: SparseOptions

    def __init__(self, domain: Domain, options: SparseOptions) -> None:
        super().__init__(domain, options)
        self.process: SVGP | None = None
        self.began: Tensor | None = None
        self.trained: dict[str, float] = {}
        self.troubles: list[type[Warning]] = []

    @property
    def layout(self) -> Layout:
        """The layout of the process's parameters in a row."""
        return Layout(self.options.inducing, self.domain.space.dim)

    @property
    def steps(self) -> Steps[SVGP]:
        """The steps, where the processes of several methods are trained together."""
        return replace(
            super().steps, fit_round=JointStep(self, lambda turns: self.train([turn.call for turn in turns]))
        )

    def fit(self, data: History) -> SVGP:
        """Return the process trained on the data alone."""
        first = type(self)(self.domain, self.options)
        round = Round(data, data, self.domain.space, 1, Generator().manual_seed(0))
        return self.train([(first, round)])[0]

    @classmethod
    def train(cls, requests: Sequence[tuple[Self, Round]]) -> list[SVGP]:
        """Train the process of each method, all together, from that of the round before."""
        starts = [method.start(round) for method, round in requests]
        one, device = requests[0][0], requests[0][1].device
        data = [
            method.training_data(round, process.standardisation)
            for (method, round), process in zip(requests, starts, strict=True)
        ]
        outcome = fit(
            torch.stack([process.row for process in starts]).to(device),
            one.layout,
            one.options.kernel,
            shuffled(data, [round for _, round in requests], device),
            one.options.objective,
            one.options.first_training,
            one.trained_parameters(),
        )
        for (method, _), epochs, attempts, reverted in zip(
            requests, outcome.epochs, outcome.attempts, outcome.reverted, strict=True
        ):
            method.trained = {"fit_epochs": float(epochs)}
            method.troubles = troubles_of(attempts, reverted)
        rows = outcome.trained[0].cpu()
        return [
            method.after_training(replace(process, row=row.clone()))
            for (method, _), process, row in zip(requests, starts, rows, strict=True)
        ]

    def trained_parameters(self) -> Tensor | None:
        """Return the mask of trained parameters, `p` booleans; None for all."""
        return None

    def after_training(self, process: SVGP) -> SVGP:
        """Return the process for the rest of the round, given the trained one."""
        return process

    def start(self, round: Round) -> SVGP:
        """Return the start of this round's training: the process of the last round, in this round's units."""
        standardisation, before = self.standardisation(round), self.before(round)
        return self.first_process(round, standardisation) if before is None else before.restandardised(standardisation)

    def before(self, round: Round) -> SVGP | None:
        """Return the process of the last round; None in the first, and after a trust region has restarted."""
        same = self.began is not None and torch.equal(round.data.X[0], self.began)
        return self.process if same else None

    def standardisation(self, round: Round) -> Standardisation:
        """Return the units of this round's inputs and observations."""
        departures, Y = self.options.departures, round.data.Y[:, 0]
        if "units-of-the-design" in departures:
            Y = round.history.Y[: max(round.history.initial, 1), 0]
            Y = Y[torch.isfinite(Y)]
        standardisation = standardisation_of(self.domain.bounds, Y)
        if "raw-inputs" in departures:
            return replace(
                standardisation, low=torch.zeros_like(standardisation.low), width=torch.ones_like(standardisation.width)
            )
        return standardisation

    def first_process(self, round: Round, standardisation: Standardisation) -> SVGP:
        """Return a process with GPyTorch's initial parameters at diverse inducing points; AABO, appendix A."""
        X = standardisation.inputs(round.data.X)
        fill = standardisation.inputs(
            draw_sobol_samples(self.domain.bounds, self.layout.m, 1, seed=round.seed).squeeze(-2)
        )
        blank = SVGP(initial_row(fill), self.layout, self.options.kernel, standardisation)
        Z = place_inducing(X, self.layout, blank, torch.ones(len(X)).to(X), fill)
        return replace(blank, row=initial_row(Z))

    def training_data(self, round: Round, standardisation: Standardisation) -> tuple[Tensor, Tensor]:
        """Return the training points, `n x d`, and observations, `n`, in the process's units."""
        X, Y = standardisation.inputs(round.data.X), standardisation.outputs(round.data.Y[:, 0])
        if "last-hundred" in self.options.departures and len(round.history) > round.history.initial:
            return X[-LAST:], Y[-LAST:]
        return X, Y

    def search(self, utility: AcquisitionFunction, surrogate: SVGP, round: Round) -> Choice[SVGP]:
        """Maximise the acquisition function, and store the process for the next round."""
        choice = super().search(utility, surrogate, round)
        self.remember(surrogate, round)
        return choice

    def remember(self, process: SVGP, round: Round) -> None:
        """Store the process as the start of the next round."""
        self.process, self.began = process, round.data.X[0].clone()

    def utility(self, surrogate: SVGP, round: Round) -> AcquisitionFunction:
        """Return expected improvement over the best observation: in closed form at q = 1, and from samples elsewhere.

        The published code always takes samples, and more of them.
        """
        sampled = "sampled-improvement" in self.options.departures
        moments, best = SVGPPosterior(surrogate, self.options.noisy), round.data.Y.max()
        log = self.options.improvement == "log"
        unit = 1.0 if log else surrogate.standardisation.scale
        if round.q == 1 and not sampled:
            closed_form = log_expected_improvement if log else expected_improvement
            return AnalyticAcquisition(moments, closed_form(best), not log, unit)
        integrand = log_batch_improvement if log else batch_expected_improvement
        samples = SEARCH_SAMPLES if sampled else self.options.mc_samples
        scale = surrogate.standardisation.scale
        return MonteCarloAcquisition(moments, integrand(best, scale), samples, round.seed, not log, unit)

    def predictive(self, surrogate: SVGP) -> Predictor:
        """Return the process's forecasts of observations."""

        def predict(points: Tensor) -> GaussianPredictive:
            with torch.no_grad():
                mean, variance = surrogate.posterior_moments(points.unsqueeze(-2), joint=False)
                return GaussianPredictive(mean.squeeze(-1), (variance.squeeze(-1) + surrogate.noise_variance).sqrt())

        return predict

    def lengthscales(self, surrogate: SVGP) -> Tensor:
        """Return the lengthscale shared by all inputs."""
        return surrogate.parameters.lengthscale.detach()

    def notes(self, choice: Choice[SVGP], round: Round) -> dict[str, float]:
        """Return the statistics of the training, and warn of its failures."""
        for trouble in self.troubles:
            warnings.warn("training diverged", trouble, stacklevel=2)
        return {**super().notes(choice, round), **self.trained}

    def state_dict(self) -> dict[str, Any]:
        """Return the process of the last round."""
        if self.process is None:
            return {}
        standardisation = self.process.standardisation
        return {
            "row": self.process.row,
            "units": [standardisation.low, standardisation.width, standardisation.location, standardisation.scale],
            "began": self.began,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the process of the last round."""
        if state:
            standardisation = Standardisation(*state["units"])
            self.process = SVGP(state["row"], self.layout, self.options.kernel, standardisation)
            self.began = state["began"]


def shuffled(
    data: Sequence[tuple[Tensor, Tensor]], rounds: Sequence[Round], device: torch.device
) -> Callable[[], list[Shuffled]]:
    """Return a maker of the minibatches of several seeds, each drawn from its round's stream and equal at each call."""
    placed = [(X.to(device), y.to(device)) for X, y in data]
    seeds = [round.seed for round in rounds]
    return lambda: [Shuffled(X, y, Generator().manual_seed(seed)) for (X, y), seed in zip(placed, seeds, strict=True)]


def troubles_of(attempts: int, reverted: bool) -> list[type[Warning]]:
    """Return the events of a training."""
    events: list[type[Warning]] = [LearningRateLoweredWarning] if attempts > 1 else []
    return [*events, WarmStartKeptWarning] if reverted else events


@methods.register("elbo-ei", SparseOptions)
class ElboImprovement(SparseMethod):
    """Expected improvement under an SVGP trained by the ELBO."""


@methods.register("moss-ei", PlacedOptions)
class PlacedImprovement(SparseMethod):
    """`elbo-ei` with inducing points placed anew in each round where data are diverse and good (Moss et al., 2023).

    The variational distribution of the new inducing values starts at its optimum, in closed form. The published code
    chooses points only from those of the round before: `frozen-inducing`.
    """

    options: PlacedOptions

    def quality(self, process: SVGP, X: Tensor) -> Tensor:
        """Return the quality of points by which inducing points are placed, `n`; `X` is `n x d`, in the bounds."""
        return improvement_quality(process, X, self.options.noisy, self.options.baseline)

    def start(self, round: Round) -> SVGP:
        """Return the process of the last round, at new inducing points."""
        before = super().start(round)
        if self.before(round) is None or "frozen-inducing" in self.options.departures:
            return before
        X = before.standardisation.inputs(round.data.X)
        spare = before.parameters.inducing.squeeze(0)
        with torch.no_grad():
            Z = place_inducing(X, before.layout, before, self.quality(before, round.data.X), spare)
            row = before.row.clone()
            parts = before.layout.parts(row.unsqueeze(0))
            parts.inducing.copy_(Z)
            mean, factor = best_beliefs(
                parts, before.layout, *self.training_data(round, before.standardisation), before.kernel
            )
            parts.mean.copy_(mean)
            parts.factor.copy_(factor)
        return replace(before, row=row)

    def trained_parameters(self) -> Tensor | None:
        """Return all parameters but the inducing points."""
        moved = torch.ones(self.layout.size, dtype=torch.bool)
        self.layout.parts(moved.unsqueeze(0)).inducing.fill_(False)
        return moved

    def after_training(self, process: SVGP) -> SVGP:
        """Return the process; as published, with reordered inducing points but the other parameters in their order."""
        if "frozen-inducing" not in self.options.departures:
            return process
        row = process.row.clone()
        inducing = process.layout.parts(row.unsqueeze(0)).inducing
        Z = process.parameters.inducing.squeeze(0)
        quality = self.quality(process, process.standardisation.points(Z))
        inducing.copy_(place_inducing(Z, process.layout, process, quality, Z, fill_first=True))
        return replace(process, row=row)

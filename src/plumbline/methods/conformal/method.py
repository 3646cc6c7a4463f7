"""Conformal Bayesian optimisation: acquisition functions under the conformal posterior; CBO."""

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self, get_args

import torch
from pydantic import Field, NonNegativeFloat, field_validator, model_validator
from torch import Generator, Tensor

from plumbline.core.alpha import Alpha, alpha_at
from plumbline.core.history import History
from plumbline.core.seeding import draw_seed
from plumbline.methods.base import Predictor, Proposal, Takes, methods
from plumbline.methods.composed import Choice, Round, Steps, SurrogateMethod, complete_rows
from plumbline.methods.conformal.acquisition import ConformalAcquisition, ConformalPosteriorOptions, Integrand
from plumbline.methods.conformal.augmented import Augmented, augment
from plumbline.methods.conformal.baseline import draw_baseline
from plumbline.methods.conformal.density_ratio import (
    LogRatio,
    RatioClassifier,
    RatioClassifiers,
    RatioOptions,
    fit_ratio,
    no_shift,
    weights_at,
)
from plumbline.methods.conformal.expectation import Improvement, UpperBound
from plumbline.methods.conformal.in_lockstep import searches
from plumbline.methods.conformal.masses import effective_sample_size
from plumbline.methods.conformal.scores import quadratics
from plumbline.methods.conformal.search import (
    VALUED_AT_ONCE,
    LangevinOptions,
    WorthlessRowsWarning,
    starts,
    values_of_rows,
)
from plumbline.methods.conformal.sets import ConformalPredictive
from plumbline.methods.conformal.variants import CODE, DEPARTURES, ConformalDeparture, IncumbentDeparture
from plumbline.methods.conformal.walks import Chains, Walk, Walked, leaders, walked
from plumbline.methods.gp.in_lockstep import fits
from plumbline.methods.lockstep import JointStep, LockstepMethod
from plumbline.methods.variants import Json, Variant, VariantOptions
from plumbline.models.gp.fit import ModelOptions, fit_each, fit_outcomes, unknowns_of
from plumbline.models.gp.process import GP
from plumbline.spaces.box import Climbs, climb_in_botorch, units_of
from plumbline.spaces.table import Table, best_rows


class UnboundedSetWarning(UserWarning):
    """The conformal set of a query is the whole line: its own weight exceeds alpha."""


class SeparatedClassesWarning(UserWarning):
    """The classifier separates data and queries so well that density ratios were clipped."""


class FewEffectiveDataWarning(UserWarning):
    """The effective sample size of the importance weights is below two."""


class NoiseAtBoundWarning(UserWarning):
    """The noise variance of the fitted model lies at the bound of its range."""


class ConformalOptions(VariantOptions):
    """Options of conformal Bayesian optimisation; defaults of CBO, appendix D, where it gives them.

    Attributes:
        model: kernel and priors.
        alpha: miscoverage of the sets, fixed or shrinking with the data.
        posterior: candidate labels and relaxation.
        ratio: the classifier of queries against data.
        search: Langevin chains in a box; a table's rows are enumerated.
        worthless: choice among a table's rows where none has a bounded set, so that all values are exactly zero: by
            their values without the mask, or at random, as in CBO's code.
        randomised: whether coverage is that of Algorithm 2's sets instead of Algorithm 1's.
        stale: whether model, level and incumbent stay those of the initial design, as in the script of figure 6.
        variant: `paper`; `code`, the published search; or a list of departures of the published code.
    """

    departures: ClassVar[Mapping[str, Json]] = {name: DEPARTURES[name] for name in get_args(ConformalDeparture)}
    code: ClassVar[tuple[str, ...]] = CODE

    model: ModelOptions = ModelOptions(priors="conformal")
    alpha: Alpha = "max(.05, 1/sqrt(n))"
    posterior: ConformalPosteriorOptions = ConformalPosteriorOptions()
    ratio: RatioOptions = RatioOptions()
    search: LangevinOptions = LangevinOptions()
    worthless: Literal["unmasked", "chance"] = "unmasked"
    randomised: bool = False
    stale: bool = False
    variant: Variant[ConformalDeparture] = "paper"

    @model_validator(mode="after")
    def _climbs_follow_the_values(self) -> Self:
        if self.search.polish and self.posterior.labels_in_gradient == "constant":
            raise ValueError("`polish` climbs by the gradient of the values, which constant labels do not give")
        return self

    @field_validator("model")
    @classmethod
    def _chains_walk_in_the_cube(cls, model: ModelOptions) -> ModelOptions:
        return in_the_cube(model)


def in_the_cube(model: ModelOptions) -> ModelOptions:
    """Return the options of a model of points in the unit cube.

    Raises:
        ValueError: the inputs are in other units.
    """
    if model.inputs != "cube":
        raise ValueError("conformal sets are of points in the unit cube: leave `inputs: cube`")
    return model


class ConformalIncumbentOptions(ConformalOptions):
    """Options of conformal methods that improve on an incumbent.

    Attributes:
        incumbent_share: share of the data, drawn anew each round, whose best is the incumbent: three quarters in the
            later version of CBO's code, whose model has all data.
    """

    departures: ClassVar[Mapping[str, Json]] = DEPARTURES

    incumbent_share: float = Field(default=1.0, gt=0.0, le=1.0)
    variant: Variant[ConformalDeparture | IncumbentDeparture] = "paper"  # type: ignore[assignment]

    def subset(self, n: int, generator: Generator) -> Tensor | None:
        """Return the indices of the data, of `n`, whose best is the incumbent; None for all of them."""
        # As many as scikit-learn's train_test_split leaves in CBO's code. In floating point (1 - .7) 10 exceeds 3.
        share = n - math.ceil(round((1 - self.incumbent_share) * n, 9))
        return torch.randperm(n, generator=generator)[:share] if 1 < share < n else None


class ConformalImprovementOptions(ConformalIncumbentOptions):
    """Options of conformal expected improvement.

    The best of a share of the data is standardised by the mean and deviation of that share.

    Attributes:
        jitter: least improvement over the best observation that counts, in standard deviations of the observations.
    """

    jitter: NonNegativeFloat = 0.0


class ConformalMethod(LockstepMethod, SurrogateMethod[list[GP]]):
    """Conformal optimisation; a subclass gives the integrand of its acquisition function."""

    takes: ClassVar[Takes] = "one objective"
    provides = SurrogateMethod.provides | {"gp", "lengthscales", "kernel", "lockstep"}
    options: ConformalOptions
    _latest: tuple[History, list[GP]] | None = None

    @abstractmethod
    def integrand(self, processes: Sequence[GP], data: History, alpha: float, generator: Generator) -> Integrand:
        """Return the integrand: the value of a batch of points under known `f`."""

    def training_rows(self, history: History) -> History:
        """Return the rows that the surrogate is fitted to; of the initial design alone where the model is stale."""
        n = history.initial
        return super().training_rows(History(history.X[:n], history.Y[:n], n) if self.options.stale else history)

    def fit(self, data: History) -> list[GP]:
        """Return one model an outcome."""
        return fit_outcomes(data, self.domain.bounds, self.options.model)

    def fit_each(
        self, X: Tensor, Y: Tensor, near: GP | None = None, without_warning: bool = False
    ) -> list[list[GP] | None]:
        """Return `fit` of each of m data sets, `m x n x d` and `m x n x 1`, as `GPMethod.fit_each` does."""
        if type(self).fit is not ConformalMethod.fit or Y.shape[-1] > 1:
            return [None] * len(X)
        found = fit_each(X, Y, self.domain.bounds, self.options.model, None, near, without_warning)
        return [None if process is None else [process] for process in found]

    def utility(self, surrogate: list[GP], round: Round) -> ConformalAcquisition:
        """Return the acquisition function under the conformal posterior, before its density ratio is learned."""
        warn_of_noise_at_bound(surrogate, self.options.model)
        alpha = alpha_at(self.options.alpha, round.history.initial if self.options.stale else len(round.history))
        integrand = self.integrand(surrogate, round.data, alpha, round.generator)
        return ConformalAcquisition(
            surrogate,
            integrand,
            no_shift,
            alpha,
            self.options.posterior,
            draw_seed(round.generator),
        )

    @property
    def steps(self) -> Steps[list[GP]]:
        """The steps; seeds in lockstep fit their models, and their chains walk together."""
        steps = super().steps
        usual = type(self).search is ConformalMethod.search
        return replace(
            steps,
            fit_round=JointStep(self, fits, steps.fit_round),
            search=JointStep(self, searches, steps.search) if usual else steps.search,
        )

    def search(self, utility: ConformalAcquisition, surrogate: list[GP], round: Round) -> Choice[list[GP]]:
        """Maximise the acquisition function; the choice holds it under the ratio learned on the way; Algorithm 4."""
        space = round.space.settle(round.history, round.generator)
        if isinstance(space, Table) and round.space.finite:
            utility = utility.under(self._ratio_of_rows(utility, space.rows, round.generator))
            return self._best_rows(utility, space.rows, surrogate, round)
        (found,) = walked([self.start_walk(utility, round)])
        if isinstance(space, Table):
            return self._best_rows(found.acquisition, space.rows, surrogate, round)
        return self.end_walk(found, surrogate)

    def start_walk(self, utility: ConformalAcquisition, round: Round) -> Chains:
        """Return the chains that a search in a box begins with."""
        dim, options = self.domain.bounds.shape[-1], self.options.search
        walk = Walk(round.space.bounds, self.domain.bounds)
        classifier = RatioClassifiers.drawn(dim, self.options.ratio, round.generator)
        first = starts(lambda U: utility.values_in_cube(walk.in_domain(U)), dim, round.q, options, round.generator)
        return Chains(utility, walk, classifier, first, options, round.generator)

    def end_walk(self, found: Walked, surrogate: list[GP]) -> Choice[list[GP]]:
        """Return the best state of all chains."""
        ends = self._ends(found)
        return Choice(ends[0], found.acquisition, surrogate, ends=ends)

    def propose(self, choice: Choice[list[GP]], forecast: Predictor, round: Round) -> Proposal:
        """Return the proposal of a choice; the models are kept until the next one."""
        self._latest = round.data, choice.surrogate
        return super().propose(choice, forecast, round)

    def predictor(self, history: History) -> Predictor:
        """Return predictions from `history` alone, for points distributed like its own; by the last round's models
        where they are those of these data."""
        if self._latest is not None:
            data, (fitted_to, surrogate) = complete_rows(history), self._latest
            if torch.equal(data.X, fitted_to.X) and torch.equal(data.Y, fitted_to.Y):
                return self.predictive(surrogate)
        return super().predictor(history)

    def predictive(self, surrogate: list[GP]) -> Predictor:
        """Return predictions for points distributed like the data: no shift."""
        return self._predictor(surrogate, no_shift)

    def forecast(self, choice: Choice[list[GP]]) -> Predictor:
        """Return predictions under the density ratio that the search learned."""
        acquisition = choice.utility
        assert isinstance(acquisition, ConformalAcquisition)
        return self._predictor(acquisition.processes, acquisition.log_ratio)

    def _predictor(self, processes: Sequence[GP], log_ratio: LogRatio) -> Predictor:
        """Return forecasts with joint sets of all outcomes."""
        return conformal_predictor(processes, log_ratio, randomised=self.options.randomised)

    def lengthscales(self, surrogate: list[GP]) -> Tensor:
        """Return the lengthscales of the first outcome's kernel."""
        return surrogate[0].lengthscale

    def _ends(self, found: Walked) -> Tensor:
        """Return the best state of each chain, polished if asked to: `r x q x d`, the best of all first."""
        acquisition, walk, (states, chains) = found.acquisition, found.walk, found.states
        low, high = walk.bounds
        search = self.options.search
        parts = walk.in_domain(states).split(VALUED_AT_ONCE)
        states = states[leaders(torch.cat([acquisition.values_in_cube(part) for part in parts]), chains)]
        X = low + (high - low) * states
        if not search.polish:
            return X
        if search.asks_for == "best":
            X = X[:1]
        climbs = Climbs(acquisition, X, walk.bounds, units_of(self.domain.bounds))
        X, values = climb_in_botorch(climbs, search.polish)
        return X[values.argsort(descending=True, stable=True)].detach()

    def _best_rows(
        self, utility: ConformalAcquisition, rows: Tensor, surrogate: list[GP], round: Round
    ) -> Choice[list[GP]]:
        """Return the best rows, ties broken at random; without the mask where it makes all values zero."""
        rows = rows[torch.randperm(len(rows), generator=round.generator)]
        values = values_of_rows(utility, rows)
        if not bool(values.any()):
            warnings.warn("every row of the table has the value zero", WorthlessRowsWarning, stacklevel=2)
            if self.options.worthless == "unmasked":
                utility = utility.unmasked()
                values = values_of_rows(utility, rows)
        X = rows[values.argmax()].unsqueeze(0) if round.q == 1 else best_rows(utility, rows, round.q)
        return Choice(X, utility, surrogate)

    def _ratio_of_rows(self, acquisition: ConformalAcquisition, rows: Tensor, generator: Generator) -> LogRatio:
        """Return the density ratio of the unevaluated rows against the data."""
        process = acquisition.processes[0]
        return fit_ratio(process.U, process.standardisation.inputs(rows), self.options.ratio, generator)

    def notes(self, choice: Choice[list[GP]], round: Round) -> dict[str, float]:
        """Return statistics of the weights at the query; warn where its set is unbounded or the weights degenerate."""
        acquisition, X = choice.utility, choice.X
        assert isinstance(acquisition, ConformalAcquisition)
        process, alpha = acquisition.processes[0], acquisition.alpha
        U = process.standardisation.inputs(X)
        with torch.no_grad():
            weights = acquisition.weights(U.unsqueeze(-2))
        notes = {
            "alpha": alpha,
            "effective_sample_size": float(effective_sample_size(weights).mean()),
            "own_weight": float(weights[..., -1].mean()),
            "unbounded_sets": float((weights[..., -1] > alpha).double().mean()),
        }
        if isinstance(acquisition.log_ratio, RatioClassifier):
            notes["clipped_ratios"] = acquisition.log_ratio.clipped(torch.cat([process.U, U]))
        if notes["unbounded_sets"] > 0:
            warnings.warn(
                f"the weight of a query itself exceeds alpha = {alpha:.3g}: its conformal set is the whole line",
                UnboundedSetWarning,
                stacklevel=2,
            )
        if notes.get("clipped_ratios", 0.0) > 0:
            warnings.warn("density ratios were clipped", SeparatedClassesWarning, stacklevel=2)
        if notes["effective_sample_size"] < 2:
            warnings.warn("the effective sample size is below two", FewEffectiveDataWarning, stacklevel=2)
        return notes


def warn_of_noise_at_bound(processes: Sequence[GP], options: ModelOptions) -> None:
    """Warn where a noise variance lies at a bound: the scores then rest on the bound, not on the data."""
    variance = unknowns_of(1, options).noise
    for process in processes:
        noise = float(process.noise)
        if noise < 1.01 * variance.low or noise > 0.99 * variance.high:
            warnings.warn(f"noise variance {noise:.3g} is at its bound", NoiseAtBoundWarning, stacklevel=2)


def conformal_predictor(
    processes: Sequence[GP], log_ratio: LogRatio, tau: float = 0.0, randomised: bool = False
) -> Callable[[Tensor], ConformalPredictive]:
    """Return a map of `n x d` points to forecasts with conformal sets; each point is augmented on its own.

    Args:
        processes: one an outcome.
        log_ratio: log density ratio of points in the unit cube.
        tau: strength of the relaxation; 0 for exact sets.
        randomised: Algorithm 2's sets.
    """

    def predict(points: Tensor) -> ConformalPredictive:
        with torch.no_grad():
            U = processes[0].standardisation.inputs(points).unsqueeze(-2)
            systems = [augment(process, U) for process in processes]
            weights = weights_at(log_ratio, processes[0].U, U)
            moments = [_in_units_of_y(process, system) for process, system in zip(processes, systems, strict=True)]
            mean, sd = (torch.cat(columns, dim=-1) for columns in zip(*moments, strict=True))
            if len(processes) == 1:
                mean, sd = mean.squeeze(-1), sd.squeeze(-1)
            return ConformalPredictive(mean, sd, quadratics(systems), weights, tau, randomised)

    return predict


def _in_units_of_y(process: GP, system: Augmented) -> tuple[Tensor, Tensor]:
    standardisation = process.standardisation
    return standardisation.location + standardisation.scale * system.mean, standardisation.scale * system.sd


def standardised(processes: Sequence[GP], Y: Tensor) -> Tensor:
    """Return `n x m` observations in the units of the processes."""
    columns = Y.split(1, dim=-1)
    return torch.cat(
        [process.standardisation.outputs(y) for process, y in zip(processes, columns, strict=True)], dim=-1
    )


@methods.register("cei", ConformalImprovementOptions)
class ConformalExpectedImprovement(ConformalMethod):
    """Conformal expected improvement over the best observation."""

    options: ConformalImprovementOptions

    def integrand(self, processes: Sequence[GP], data: History, alpha: float, generator: Generator) -> Integrand:
        """Return the improvement over the best observation."""
        subset = self.options.subset(len(data), generator)
        if subset is None:
            best = standardised(processes, data.Y).max()
        else:
            Y = data.Y[subset, 0]
            best = processes[0].standardisation.standardising(Y).outputs(Y).max()
        return Integrand(Improvement(best + self.options.jitter))


@methods.register("cnei", ConformalIncumbentOptions)
class ConformalNoisyExpectedImprovement(ConformalMethod):
    """Conformal noisy expected improvement: over the best value of `f` at the data, itself uncertain; CBO, eq. 10."""

    options: ConformalIncumbentOptions

    def integrand(self, processes: Sequence[GP], data: History, alpha: float, generator: Generator) -> Integrand:
        """Return the improvement over the best of a joint draw."""
        baseline = draw_baseline(processes, self.options.posterior.candidates, generator)
        subset = self.options.subset(len(data), generator)
        values = baseline.values.squeeze(-1) if subset is None else baseline.values[:, subset, 0]
        best, rows = values.max(dim=-1)
        baseline = replace(baseline, incumbents=rows if subset is None else subset[rows])
        return Integrand(Improvement(best), baseline=baseline)


@methods.register("cucb", ConformalOptions)
class ConformalUpperConfidenceBound(ConformalMethod):
    """Conformal upper confidence bound: the expectation of `mean + |mean - f|` over the optimistic half; CBO, B.4."""

    def integrand(self, processes: Sequence[GP], data: History, alpha: float, generator: Generator) -> Integrand:
        """Return the bound, reparameterised as by Wilson et al. (2017)."""
        sqrt_beta = torch.special.ndtri(torch.tensor(1 - alpha / 2, dtype=torch.float64))
        return Integrand(UpperBound(), optimistic=True, spread=float(sqrt_beta) * (torch.pi / 2) ** 0.5)

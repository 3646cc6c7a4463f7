"""Bayesian optimisation that avoids noise: replicates estimate it, and the acquisition function penalises it."""

from collections.abc import Callable
from dataclasses import replace

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.utils.transforms import concatenate_pending_points
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor

from plumbline.acquisition.analytic import AnalyticAcquisition, expected_improvement, upper_confidence_bound
from plumbline.acquisition.monte_carlo import (
    MonteCarloAcquisition,
    batch_expected_improvement,
    batch_upper_confidence_bound,
)
from plumbline.core.history import History
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Predictor, methods
from plumbline.methods.composed import Choice, Round, SurrogateMethod
from plumbline.methods.gp.single_outcome import GPOptions
from plumbline.models.gp.heteroscedastic import HeteroscedasticGP, fit_heteroscedastic


class HeteroscedasticOptions(GPOptions):
    """Options of the methods that replicate.

    Attributes:
        replicates: number of observations of each queried point, in a box.
    """

    replicates: PositiveInt = 4


class RiskAverseOptions(HeteroscedasticOptions):
    """Options of the risk-averse upper confidence bound.

    Attributes:
        coefficient: the price of a unit of noise variance, in units of the objective.
        sqrt_beta: standard deviations in the upper bound of the function.
        sqrt_beta_noise: standard deviations in the lower bound of the log noise variance.
    """

    coefficient: NonNegativeFloat = 1.0
    sqrt_beta: NonNegativeFloat = 2.0
    sqrt_beta_noise: NonNegativeFloat = 2.0


class PenalisedOptions(HeteroscedasticOptions):
    """Options of noise-penalised expected improvement.

    Attributes:
        beta: the weight of improvement; `1 - beta` is that of the noise.
    """

    beta: float = Field(0.5, ge=0.0, le=1.0)


class PenalisedAcquisition(AcquisitionFunction):
    """`weight * base(X) - mean over the batch of penalty(x)`.

    At q = 1 this is the papers' acquisition function; they choose single points, and the mean over a batch is ours.
    """

    def __init__(
        self, base: AcquisitionFunction, penalty: Callable[[Tensor], Tensor], unit: float, weight: float = 1.0
    ) -> None:
        """Make the acquisition function.

        Args:
            base: what is penalised.
            penalty: maps `b x q x d` points to `b x q` penalties.
            unit: unit of the values of both.
            weight: of the base.
        """
        super().__init__(base.model)
        self.unit = unit
        self.base = base
        self.penalty = penalty
        self.weight = weight
        self.set_X_pending(None)  # table rows already chosen for the batch

    @concatenate_pending_points
    def forward(self, X: Tensor) -> Tensor:
        """Return the values, `b`, of batches `X`, `b x q x d`."""
        return self.weight * self.base(X) - self.penalty(X).mean(dim=-1)


def pending_batch(queries: Tensor, q: int, replicates: int) -> Tensor | None:
    """Return the last batch if it needs further replicates, None otherwise.

    Args:
        queries: `n x d` queries so far, in batches of `q`.
        q: size of a batch.
        replicates: required number of observations of each point.

    Returns:
        `q x d`, or None.
    """
    if len(queries) == 0:
        return None
    batch = queries[-q:]
    return batch if times_observed(batch, queries) < replicates else None


def times_observed(batch: Tensor, queries: Tensor) -> int:
    """Return the number of observations of the least observed row of `batch` (`q x d`) in `queries` (`n x d`)."""
    return int((batch.unsqueeze(1) == queries).all(dim=-1).sum(dim=-1).min())


def predictor_of(model: HeteroscedasticGP) -> Predictor:
    """Return predictions of observations, with the median of the model's noise variance at each point."""

    def predict(points: Tensor) -> GaussianPredictive:
        with torch.no_grad():
            mean, variance = model.mean.posterior_moments(points, joint=False)
            return GaussianPredictive(mean, (variance + model.noise_variance(points)).sqrt())

    return predict


class HeteroscedasticMethod(SurrogateMethod[HeteroscedasticGP]):
    """The loop with a heteroscedastic model; a subclass gives the acquisition function.

    In a box each batch is queried until each of its points has `replicates` observations, or one fails. The initial
    design is not replicated, which would cost much of a budget. The model assumes constant noise until two locations
    have replicates. Rows of a table are never queried twice, so that the noise remains constant there.
    """

    takes = "one objective"
    provides = frozenset({"steps", "lengthscales", "kernel"})
    options: HeteroscedasticOptions

    def fit(self, data: History) -> HeteroscedasticGP:
        """Return the model conditioned on `data`."""
        return fit_heteroscedastic(data.X, data.Y, self.domain.bounds, self.options.model)

    def predictive(self, surrogate: HeteroscedasticGP) -> Predictor:
        """Return the model's predictions."""
        return predictor_of(surrogate)

    def lengthscales(self, surrogate: HeteroscedasticGP) -> Tensor:
        """Return the lengthscales of the function's kernel."""
        return surrogate.mean.lengthscale_in(self.domain.bounds)

    def search(
        self, utility: AcquisitionFunction, surrogate: HeteroscedasticGP, round: Round
    ) -> Choice[HeteroscedasticGP]:
        """Return the maximisers, or the last points again, with the number of the replicate as a note."""
        queries, failed = round.history.queries, not bool(torch.isfinite(round.history.Y[-round.q :]).all())
        once = self.domain.space.finite or failed
        again = None if once else pending_batch(queries, round.q, self.options.replicates)
        if again is None:
            return replace(super().search(utility, surrogate, round), notes={"replicate": 1.0})
        times = float(times_observed(again, queries) + 1)
        return Choice(again, utility, surrogate, {"replicate": times})


@methods.register("risk-averse-ucb", RiskAverseOptions)
class RiskAverseMethod(HeteroscedasticMethod):
    """Upper confidence bound of the function minus the price of noise (RAHBO).

    Makarova, Usmanova, Bogunovic & Krause, Risk-averse heteroscedastic Bayesian optimization (NeurIPS 2021):
    `ucb_f(x) - coefficient * lcb_var(x)`. Here a process models the logarithm of the noise variance, which gives the
    bound.
    """

    options: RiskAverseOptions

    def utility(self, surrogate: HeteroscedasticGP, round: Round) -> AcquisitionFunction:
        """Return the risk-averse bound, of a batch by Monte Carlo."""
        options = self.options
        base = (
            AnalyticAcquisition(surrogate.mean, upper_confidence_bound(options.sqrt_beta))
            if round.q == 1
            else MonteCarloAcquisition(
                surrogate.mean, batch_upper_confidence_bound(options.sqrt_beta), options.mc_samples, round.seed
            )
        )
        return PenalisedAcquisition(
            base,
            lambda X: options.coefficient * surrogate.noise_variance_lower(X, options.sqrt_beta_noise),
            surrogate.mean.standardisation.scale,
        )


@methods.register("penalised-ei", PenalisedOptions)
class PenalisedImprovementMethod(HeteroscedasticMethod):
    """Expected improvement minus the standard deviation of the noise (ANPEI).

    Griffiths, Aldrick, Garcia-Ortegon, Lalchand & Lee, Achieving robustness to aleatoric uncertainty with
    heteroscedastic Bayesian optimisation (2019): `beta * EI(x) - (1 - beta) * noise_sd(x)`. Improvement is
    over the greatest posterior mean at an observed location, because the best observation is partly luck.
    """

    options: PenalisedOptions

    def utility(self, surrogate: HeteroscedasticGP, round: Round) -> AcquisitionFunction:
        """Return penalised expected improvement, of a batch by Monte Carlo."""
        beta = self.options.beta
        best = surrogate.mean.posterior_moments(round.data.X, joint=False)[0].max()
        base = (
            AnalyticAcquisition(surrogate.mean, expected_improvement(best))
            if round.q == 1
            else MonteCarloAcquisition(
                surrogate.mean, batch_expected_improvement(best), self.options.mc_samples, round.seed
            )
        )
        unit = surrogate.mean.standardisation.scale
        return PenalisedAcquisition(base, lambda X: (1 - beta) * surrogate.noise_variance(X).sqrt(), unit, beta)

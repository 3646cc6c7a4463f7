"""Forecasts without optimisation: queries come from a fixed distribution that does not depend on the model."""

from time import perf_counter
from typing import Literal, Self

from pydantic import NonNegativeFloat, PositiveInt, model_validator
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.core.outcomes import CovariateShift
from plumbline.methods.base import Method, Predictor, Proposal, methods
from plumbline.methods.composed import complete_rows
from plumbline.methods.conformal.density_ratio import LogRatio, RatioOptions, fit_ratio, no_shift
from plumbline.methods.conformal.method import conformal_predictor, in_the_cube
from plumbline.methods.gp.single_outcome import gaussian_predictor
from plumbline.models.gp.fit import ModelOptions, fit_process


class OfflineOptions(Options):
    """Options of offline forecasts; CBO, section 5.1.

    Attributes:
        model: kernel and priors.
        sets: the reported sets: central credible intervals, or conformal sets.
        density_ratio: known densities, a classifier of data against draws of the query distribution, or none.
        ratio: options of the classifier.
        draws: number of draws of the query distribution that train the classifier.
        tau: strength of the relaxation of the sets; 0 for exact ones.
        randomised: Algorithm 2's sets, exactly valid for exchangeable data.
    """

    model: ModelOptions = ModelOptions(priors="conformal")
    sets: Literal["credible", "conformal"] = "conformal"
    density_ratio: Literal["oracle", "classifier", "none"] = "none"
    ratio: RatioOptions = RatioOptions()
    draws: PositiveInt = 256
    tau: NonNegativeFloat = 0.0
    randomised: bool = False

    @model_validator(mode="after")
    def _credible_sets_are_plain(self) -> Self:
        if self.sets == "credible" and (self.tau or self.randomised or self.density_ratio != "none"):
            raise ValueError("`tau`, `randomised` and `density_ratio` are for `sets: conformal`")
        if self.sets == "conformal":
            in_the_cube(self.model)
        return self


@methods.register("offline", OfflineOptions)
class OfflineMethod(Method):
    """Queries drawn from the domain's own query distribution (uniform if it has none), with forecasts."""

    takes = "one objective"
    options: OfflineOptions

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` draws of the query distribution."""
        started = perf_counter()
        X = self.draw(history, q, generator)
        predict = self._predictor(complete_rows(history), generator)
        return Proposal(X, predict, seconds={"fit": perf_counter() - started})

    def predictor(self, history: History) -> Predictor:
        """Return predictions from `history` alone, for points distributed like its own."""
        data = complete_rows(history)
        process = fit_process(data.X, data.Y, self.domain.bounds, self.options.model)
        if self.options.sets == "credible":
            return gaussian_predictor(process)
        return conformal_predictor([process], no_shift, self.options.tau, self.options.randomised)

    def draw(self, history: History, q: int, generator: Generator) -> Tensor:
        """Return `q x d` draws of the query distribution; for a table, of its unevaluated rows."""
        if self.domain.shift is not None:
            return self.domain.shift.target(q, generator)
        return self.domain.space.draw(q, history, generator)

    def _predictor(self, history: History, generator: Generator) -> Predictor:
        if self.options.density_ratio == "none":
            return self.predictor(history)
        process = fit_process(history.X, history.Y, self.domain.bounds, self.options.model)
        low, width = self.domain.bounds[0], self.domain.bounds[1] - self.domain.bounds[0]
        log_ratio: LogRatio
        if self.options.density_ratio == "oracle":
            shift = known_shift(self.domain.shift)

            def log_ratio(U: Tensor) -> Tensor:
                return shift.log_ratio(low + width * U)
        else:
            queries = self.draw(history, self.options.draws, generator)
            log_ratio = fit_ratio((history.X - low) / width, (queries - low) / width, self.options.ratio, generator)
        return conformal_predictor([process], log_ratio, self.options.tau, self.options.randomised)


def known_shift(shift: CovariateShift | None) -> CovariateShift:
    """Return the shift of a problem whose densities are known.

    Raises:
        PlumblineError: there is none.
    """
    if shift is None:
        raise PlumblineError("`density_ratio: oracle` needs a problem with known densities, such as hartmann3-shift")
    return shift

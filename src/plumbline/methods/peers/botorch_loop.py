"""BoTorch's own loop: its standard model, logarithmic expected improvement, and its search."""

from time import perf_counter
from typing import ClassVar

import torch
from botorch.acquisition import AcquisitionFunction, LogExpectedImprovement, qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from gpytorch import ExactMarginalLogLikelihood
from pydantic import PositiveInt
from torch import Tensor

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Predictor, Proposal, methods
from plumbline.methods.composed import complete_rows
from plumbline.methods.peers.adapter import PeerMethod


class BoTorchLoopOptions(Options):
    """Options of BoTorch's loop. The numbers are those of its tutorials: `optimize_acqf` itself has no defaults.

    Attributes:
        num_restarts: climbs of a search.
        raw_samples: Sobol points that their starts are chosen from.
    """

    num_restarts: PositiveInt = 10
    raw_samples: PositiveInt = 512


def fit(data: History, bounds: Tensor) -> SingleTaskGP:
    """Return BoTorch's model with its default kernel, priors and standardisation, fitted to complete rows.

    Args:
        data: without failed evaluations.
        bounds: `2 x d`; inputs are normalised by them, as BoTorch asks for.
    """
    model = SingleTaskGP(data.X, data.Y, input_transform=Normalize(bounds.shape[-1], bounds=bounds))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def log_improvement(model: SingleTaskGP, best: Tensor, q: int) -> AcquisitionFunction:
    """Return log expected improvement on the value `best`: in closed form, or of a batch by quasi-Monte Carlo."""
    return LogExpectedImprovement(model, best) if q == 1 else qLogExpectedImprovement(model, best)


def predictions(model: SingleTaskGP) -> Predictor:
    """Return the model's forecast of observations at `n x d` points."""

    def predict(X: Tensor) -> GaussianPredictive:
        with torch.no_grad():
            posterior = model.posterior(X.unsqueeze(-2), observation_noise=True)
            return GaussianPredictive(posterior.mean.flatten(), posterior.variance.flatten().sqrt())

    return predict


@methods.register("botorch-loop", BoTorchLoopOptions)
class BoTorchLoop(PeerMethod):
    """BoTorch's own loop: `SingleTaskGP`, log expected improvement and `optimize_acqf`.

    Failed evaluations are left out of the model, as BoTorch asks for.
    """

    libraries: ClassVar[tuple[str, ...]] = ("botorch", "gpytorch")
    options: BoTorchLoopOptions

    def propose(self, history: History, q: int, seed: int) -> Proposal:
        """Return the maximiser of log expected improvement."""
        started, data, bounds = perf_counter(), complete_rows(history), self.domain.bounds
        model = fit(data, bounds)
        fitted = perf_counter()
        utility = log_improvement(model, data.Y.max(), q)
        X, _ = optimize_acqf(utility, bounds, q=q, **self.options.model_dump())
        seconds = {"fit": fitted - started, "acquire": perf_counter() - fitted}

        def acquisition(points: Tensor) -> Tensor:
            with torch.no_grad():
                return utility(points.unsqueeze(-2))

        return Proposal(self.allowed(X.detach(), history), predictions(model), acquisition, seconds)

    def predictor(self, history: History) -> Predictor | None:
        """Return the forecast of a model fitted to the history; None where no evaluation has succeeded."""
        data = complete_rows(history)
        return predictions(fit(data, self.domain.bounds)) if len(data) else None

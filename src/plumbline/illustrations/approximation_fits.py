"""The placement of few inducing points, and its effect on the next query: AABO, figure 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import pandas as pd
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models.model import Model
from pydantic import Field, PositiveInt
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.illustrations.base import grid, illustrations, rows, table
from plumbline.methods.base import Domain
from plumbline.methods.composed import Choice
from plumbline.methods.sparse.eulbo import EulboImprovement, EulboMethodOptions
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.svgp.minibatches import TrainingOptions
from plumbline.models.svgp.process import SVGP
from plumbline.spaces.box import Box

BOUNDS = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
SHORE = 0.65
"""Boundary between the waves on the left and the hill on the right."""

WAVES, HILL = 40, 5
"""Observations left of `SHORE`, uniform, and right of it, one in each of as many equal parts."""

NOISE_STD = 0.05
"""Standard deviation of the observation noise."""

EXACT = ModelOptions(kernel="rbf", priors="none", ard=False)
"""The model without inducing points."""


class FitsOptions(Options):
    """Options of the illustration.

    Attributes:
        datasets: number of random data sets, each with its own function, inputs and noise.
        shown: index of the data set whose fits are shown.
        points: number of points of the grid of candidates.
        method: options of both approximate fits; the ELBO's is the warm start of the EULBO's.
    """

    datasets: PositiveInt = 50
    shown: int = Field(default=0, ge=0)
    points: int = Field(default=401, ge=2)
    method: EulboMethodOptions = EulboMethodOptions(
        inducing=4, training=TrainingOptions(batch=64, epochs=1_000, failures=50)
    )


@dataclass(frozen=True)
class Shore:
    """A function with waves and a hill that is higher than they are.

    Attributes:
        phase: phase of the waves, in periods.
        peak: maximiser of the hill.
    """

    phase: float
    peak: float

    def __call__(self, x: Tensor) -> Tensor:
        """Return the function's values."""
        waves = 0.6 * torch.sin(2 * torch.pi * (4 * x + self.phase)) * torch.sigmoid((SHORE + 0.05 - x) / 0.03)
        return waves + torch.exp(-0.5 * ((x - self.peak) / 0.1).square())


def draw(generator: Generator) -> tuple[Shore, History]:
    """Return a function and its observations: many of the waves, and few of the hill, where the optimum is."""

    def uniform(n: int) -> Tensor:
        return torch.rand(n, 1, generator=generator, dtype=torch.float64)

    phase, peak = uniform(2).flatten().tolist()
    function = Shore(phase, 0.75 + 0.15 * peak)
    part = (torch.arange(HILL, dtype=torch.float64).unsqueeze(-1) + uniform(HILL)) / HILL
    X = torch.cat([SHORE * uniform(WAVES), SHORE + (1 - SHORE) * part])
    noise = torch.randn(len(X), 1, generator=generator, dtype=torch.float64)
    return function, History(X, function(X) + NOISE_STD * noise)


def log_improvement(model: Model, history: History, x: Tensor) -> Tensor:
    """Return the log expected improvement over the best observation at `x`, `n`."""
    with torch.no_grad():
        return LogExpectedImprovement(model, history.Y.max())(x.view(-1, 1, 1))


class Fits(NamedTuple):
    """Three fits of one data set with their next queries; `alone_query` maximises the EULBO's utility under the ELBO's
    fit."""

    exact: Model
    elbo: SVGP
    eulbo: SVGP
    exact_query: Tensor
    elbo_query: Tensor
    eulbo_query: Tensor
    alone_query: Tensor


def fits(histories: Sequence[History], options: FitsOptions, x: Tensor, generator: Generator) -> list[Fits]:
    """Return the fits of some data sets, the approximate ones trained together as in algorithm 1."""
    domain = Domain(Box(BOUNDS))
    methods, alone = (
        [EulboImprovement(domain, options.method.model_copy(update={"refines": refines})) for _ in histories]
        for refines in (options.method.refines, "nothing")
    )
    rounds = [
        method.start_round(history, 1, Generator().manual_seed(draw_seed(generator)))
        for method, history in zip(methods, histories, strict=True)
    ]
    warm = EulboImprovement.train(list(zip(methods, rounds, strict=True)))
    choices = [
        Choice(best(ProcessModel(process), current.data, x), method.utility(process, current), process)
        for method, current, process in zip(methods, rounds, warm, strict=True)
    ]
    refined, moved = (
        EulboImprovement.refine(list(zip(those, choices, rounds, strict=True))) for those in (methods, alone)
    )
    fitted = []
    for history, first, last, query in zip(histories, choices, refined, moved, strict=True):
        exact = fit_process(history.X, history.Y, BOUNDS, EXACT)
        queries = (best(exact.model, history, x), first.X, last.X, query.X)
        fitted.append(Fits(exact.model, first.surrogate, last.surrogate, *(one.flatten() for one in queries)))
    return fitted


def best(model: Model, history: History, x: Tensor) -> Tensor:
    """Return the point of the grid whose expected improvement is greatest, `1 x 1`."""
    return x[log_improvement(model, history, x).argmax()].view(1, 1)


def fit_rows(panel: str, model: Model, history: History, x: Tensor, query: Tensor) -> list[pd.DataFrame]:
    """Return a model's mean and two standard deviations, its relative expected improvement, and its query."""
    with torch.no_grad():
        posterior = model.posterior(x.unsqueeze(-1))
    mean, reach = posterior.mean.squeeze(-1), 2 * posterior.variance.squeeze(-1).sqrt()
    improvement = log_improvement(model, history, x)
    return [
        rows(panel, "mean", x=x, value=mean, low=mean - reach, high=mean + reach),
        rows(panel, "improvement", x=x, value=(improvement - improvement.max()).exp()),
        rows(panel, "query", x=query),
    ]


def sparse_rows(panel: str, process: SVGP, history: History, x: Tensor, query: Tensor) -> list[pd.DataFrame]:
    """Return the rows of an SVGP, with its inducing points on the mean."""
    model = ProcessModel(process)
    Z = process.standardisation.points(process.parameters.inducing.squeeze(0)).detach()
    with torch.no_grad():
        mean = model.posterior(Z).mean.squeeze(-1)
    return [*fit_rows(panel, model, history, x, query), rows(panel, "inducing", x=Z.squeeze(-1), value=mean)]


@illustrations.register("approximation-fits", FitsOptions)
def approximation_fits(options: FitsOptions, generator: Generator) -> pd.DataFrame:
    """A GP and two SVGPs with few inducing points, and the distances between their queries over many data sets."""
    drawn = [draw(generator) for _ in range(max(options.datasets, options.shown + 1))]
    x = grid(options.points)
    fitted = fits([history for _, history in drawn], options, x, generator)
    function, history = drawn[options.shown]
    one = fitted[options.shown]
    exact = torch.cat([fit.exact_query for fit in fitted])
    elbo, eulbo, alone = (
        (torch.cat([cast(Tensor, getattr(fit, f"{name}_query")) for fit in fitted]) - exact).abs()
        for name in ("elbo", "eulbo", "alone")
    )
    return table(
        [
            rows("all", "truth", x=x, value=function(x)),
            rows("all", "data", x=history.X.squeeze(-1), value=history.Y.squeeze(-1)),
            *fit_rows("exact", one.exact, history, x, one.exact_query),
            *sparse_rows("ELBO", one.elbo, history, x, one.elbo_query),
            *sparse_rows("EULBO", one.eulbo, history, x, one.eulbo_query),
            rows("distance", "EULBO", x=elbo, value=eulbo),
            rows("distance", "query alone", x=elbo, value=alone),
        ]
    )

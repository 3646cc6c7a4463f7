"""Conformal and credible sets under the GP that generates the target: CBO, figure 14."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.illustrations.base import credible_rows, grid, illustrations, interval_rows, rows, table
from plumbline.methods.base import Domain, Proposal
from plumbline.methods.conformal.method import ConformalOptions, ConformalUpperConfidenceBound
from plumbline.methods.conformal.sets import ConformalPredictive
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned
from plumbline.models.standardisation import standardisation_of
from plumbline.problems.base import Context
from plumbline.problems.build import problem_of
from plumbline.problems.evaluation import evaluate
from plumbline.problems.rkhs import KernelName, RKHSFunction, RKHSOptions, rkhs
from plumbline.spaces.box import Box

NOISE_VARIANCE = 0.04
"""Of algorithm 3, which makes the function."""


class KnownKernelOptions(Options):
    """Options of the illustration.

    Attributes:
        kernel: kernel of the function and of the model, with unit output scale.
        lengthscale: lengthscale of both.
        basis: number of basis points of the function.
        noise_std: standard deviation of the observation noise, which the model knows.
        initial: number of observations at uniform points before the first query.
        steps: numbers of queries after which the sets are shown.
        points: number of points of the grid.
        method: options of conformal UCB; its model is the known GP.
    """

    kernel: KernelName = "matern52"
    lengthscale: PositiveFloat = 0.1
    basis: PositiveInt = 16
    noise_std: PositiveFloat = 0.1
    initial: PositiveInt = 3
    steps: tuple[NonNegativeInt, ...] = Field(default=(2, 4, 8), min_length=1)
    points: PositiveInt = 201
    method: ConformalOptions = ConformalOptions(alpha=0.2)

    def function(self) -> RKHSOptions:
        """Return the options of the target function."""
        return RKHSOptions(
            dim=1,
            kernel=self.kernel,
            lengthscale=self.lengthscale,
            basis=self.basis,
            noise_variance=NOISE_VARIANCE,
            noise_std=self.noise_std,
        )


def known_process(history: History, bounds: Tensor, options: KnownKernelOptions) -> GP:
    """Return the GP that generates the function, conditioned on `history`: nothing is fitted.

    The GP standardises observations, and its hyperparameters with them: in the function's own units it has mean zero,
    unit output scale and the known noise.
    """
    standardisation = standardisation_of(bounds, history.Y[:, 0])
    at = Hyperparameters(
        constant=-standardisation.location / standardisation.scale,
        noise=bounds.new_tensor([(options.noise_std / standardisation.scale) ** 2]),
        outputscale=standardisation.scale**-2,
        lengthscale=bounds.new_tensor([options.lengthscale]),
    )
    return conditioned(history.X, history.Y, bounds, options.kernel, at, standardisation)


class KnownKernelUCB(ConformalUpperConfidenceBound):
    """Conformal UCB with the known GP."""

    def __init__(self, domain: Domain, options: KnownKernelOptions) -> None:
        super().__init__(domain, options.method)
        self.known = options

    def fit(self, data: History) -> list[GP]:
        """Return the known GP, conditioned on `data`."""
        return [known_process(data, self.domain.bounds, self.known)]


def observations(function: RKHSFunction, X: Tensor, generator: Generator) -> Tensor:
    """Return noisy observations at `n x 1` points: `n x 1`."""
    return evaluate(problem_of(function), X, torch.randn(len(X), 1, generator=generator, dtype=X.dtype))[0]


def run(
    function: RKHSFunction, options: KnownKernelOptions, generator: Generator
) -> list[tuple[History, Proposal, float]]:
    """Return the history, the next proposal and the miscoverage level after each number of queries in `steps`."""
    method = KnownKernelUCB(Domain(Box(function.bounds)), options)
    first = torch.rand(options.initial, 1, generator=generator, dtype=torch.float64)
    history = History(first, observations(function, first, generator))
    known = []
    for queries in range(max(options.steps) + 1):
        proposal = method.ask(history, 1, generator)
        if queries in options.steps:
            known.append((history, proposal, proposal.notes["alpha"]))
        history = history.join(proposal.X, observations(function, proposal.X, generator))
    return known


def step_rows(panel: str, x: Tensor, history: History, proposal: Proposal, alpha: float) -> Sequence[pd.DataFrame]:
    """Return the sets at `x` after the observations of one step, and the next query."""
    assert proposal.predict is not None
    forecast = proposal.predict(x.unsqueeze(-1))
    assert isinstance(forecast, ConformalPredictive)
    return [
        credible_rows(panel, x, forecast, alpha),
        interval_rows(panel, "set", x.tolist(), forecast.edges(alpha)),
        rows(panel, "data", x=history.X.squeeze(-1), value=history.Y.squeeze(-1)),
        rows(panel, "query", x=proposal.X.squeeze(-1)),
        rows(panel, "alpha", value=alpha),
    ]


@illustrations.register("well-specified-bands", KnownKernelOptions)
def well_specified_bands(options: KnownKernelOptions, generator: Generator) -> pd.DataFrame:
    """Conformal and credible sets after some queries of conformal UCB, with the target's own kernel and noise."""
    function = rkhs(options.function(), Context(Path(), generator))
    x = grid(options.points)
    parts = [rows("all", "truth", x=x, value=function(x.unsqueeze(-1), noise=False))]
    for history, proposal, alpha in run(function, options, generator):
        parts += step_rows(f"t = {len(history) - options.initial}", x, history, proposal, alpha)
    return table(parts)

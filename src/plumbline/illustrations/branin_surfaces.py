"""The queries of a confidence bound and of a conformal one: CBO, figure 1."""

from pathlib import Path

import pandas as pd
import torch
from pydantic import Field, PositiveInt
from torch import Generator, Tensor

from plumbline.core.alpha import Alpha, alpha_at
from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.illustrations.base import grid, illustrations, rows, table
from plumbline.methods.base import Domain, Method
from plumbline.methods.conformal.acquisition import ConformalPosteriorOptions
from plumbline.methods.conformal.density_ratio import RatioOptions
from plumbline.methods.conformal.method import ConformalOptions, ConformalUpperConfidenceBound
from plumbline.methods.conformal.search import LangevinOptions
from plumbline.methods.conformal.sets import ConformalPredictive
from plumbline.methods.gp.single_outcome import (
    ConfidenceBoundOptions,
    DeclaredNoiseOptions,
    UpperConfidenceBoundMethod,
)
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.spaces.search import IncumbentSearchOptions

MODEL = DeclaredNoiseOptions(priors="conformal")
"""Kernel and priors of both methods."""

CHAINS = LangevinOptions()
"""The search of conformal UCB."""


class SurfacesOptions(Options):
    """Options of the illustration.

    Attributes:
        n: number of observations, uniform in the upper right corner of the domain and without noise.
        corner: least coordinate of the corner, in the unit square.
        points: number of points of the grid along each axis.
        alpha: miscoverage level.
        search: options of the search for the confidence bound's maximiser.
        posterior, ratio: options of conformal UCB.
    """

    n: PositiveInt = Field(default=8, ge=2)
    corner: float = Field(default=0.5, ge=0.0, lt=1.0)
    points: PositiveInt = 60
    alpha: Alpha = "1/sqrt(n)"
    search: IncumbentSearchOptions = IncumbentSearchOptions()
    posterior: ConformalPosteriorOptions = ConformalPosteriorOptions()
    ratio: RatioOptions = RatioOptions()

    def methods(self, domain: Domain) -> dict[str, Method]:
        """Return both methods, by the name of their panel."""
        plain = ConfidenceBoundOptions(model=MODEL, alpha=self.alpha, search=self.search)
        conformal = ConformalOptions(
            model=MODEL, alpha=self.alpha, posterior=self.posterior, ratio=self.ratio, search=CHAINS
        )
        return {
            "ucb": UpperConfidenceBoundMethod(domain, plain),
            "cucb": ConformalUpperConfidenceBound(domain, conformal),
        }


def square(points: int) -> Tensor:
    """Return a grid of the unit square, `points^2 x 2`, whose second coordinate varies fastest."""
    return torch.cartesian_prod(grid(points), grid(points))


@illustrations.register("branin-surfaces", SurfacesOptions)
def branin_surfaces(options: SurfacesOptions, generator: Generator) -> pd.DataFrame:
    """Branin, UCB, conformal UCB, its density ratio and the weight of each point, with data in one corner only."""
    problem = build_problem("branin", {}, Context(Path(), generator))
    function = problem.function
    low, width = problem.bounds[0], problem.bounds[1] - problem.bounds[0]
    observed = options.corner + (1 - options.corner) * torch.rand(
        options.n, 2, generator=generator, dtype=torch.float64
    )
    X = low + width * observed
    history = History(X, function(X, noise=False).unsqueeze(-1))
    # Conformal acquisition values are in standardised units, so all panels are.
    shift, scale = history.Y.mean(), history.Y.std()
    U = square(options.points)
    points = low + width * U
    surfaces = {"f": (function(points, noise=False) - shift) / scale}
    parts = []
    for panel, method in options.methods(Domain(problem.space)).items():
        proposal = method.ask(history, 1, generator)
        assert proposal.acquisition is not None
        assert proposal.predict is not None
        values = proposal.acquisition(points)
        surfaces[panel] = values if panel == "cucb" else (values - shift) / scale
        query = ((proposal.X - low) / width).squeeze(0)
        parts.append(rows(panel, "query", x=float(query[0]), x2=float(query[1])))
        if isinstance(forecast := proposal.predict(points), ConformalPredictive):
            surfaces["weight"] = forecast.weights[:, 0, -1]
            # Weights are normalised ratios: this is the ratio at a point divided by its mean at the data.
            surfaces["ratio"] = options.n * surfaces["weight"] / (1 - surfaces["weight"])
    return table(
        [
            *(rows(panel, "surface", x=U[:, 0], x2=U[:, 1], value=values) for panel, values in surfaces.items()),
            *parts,
            rows("all", "data", x=observed[:, 0], x2=observed[:, 1]),
            rows("all", "alpha", value=alpha_at(options.alpha, options.n)),
        ]
    )

"""A posterior on a line, with acquisition functions and draws of its optimum."""

from pathlib import Path

import pandas as pd
import torch
from botorch.utils.sampling import manual_seed
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Generator

from plumbline.acquisition.information.paths import peaks
from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.illustrations.base import credible_rows, grid, illustrations, rows, table
from plumbline.methods.base import Domain, build_method
from plumbline.methods.gp.single_outcome import gaussian_predictor
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.pathwise import draw_paths
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.spaces.search import SearchOptions

OBSERVED = (0.0, 0.2, 0.5, 0.7, 1.0)
"""Where Forrester's function, turned upside down, is observed, without noise."""

ALPHA = 0.05
"""The credible band has level `1 - ALPHA`."""

MODEL = ModelOptions()
"""Kernel and priors of all methods."""


class AcquisitionsOptions(Options):
    """Options of the illustration.

    Attributes:
        search: options of the search for maximisers.
        methods: registered methods, one per panel.
        points: number of points of the grid.
        paths: number of draws of f.
        draws: number of draws of the optimum.
    """

    search: SearchOptions = SearchOptions()
    methods: tuple[str, ...] = Field(default=("ei", "kg", "ucb", "ts"), min_length=1)
    points: PositiveInt = 201
    paths: NonNegativeInt = 3
    draws: NonNegativeInt = 0


@illustrations.register("acquisitions-on-a-line", AcquisitionsOptions)
def acquisitions_on_a_line(options: AcquisitionsOptions, generator: Generator) -> pd.DataFrame:
    """A posterior with draws of it, draws of its optimum, and acquisition functions with their next queries."""
    problem = build_problem("forrester", {}, Context(Path(), generator))
    X = torch.tensor(OBSERVED, dtype=torch.float64).unsqueeze(-1)
    # Observations are exact; the draws below are those after as many draws of noise.
    torch.randn(len(X), 1, generator=generator, dtype=X.dtype)
    history = History(X, problem.function(X, noise=False).unsqueeze(-1))
    process = fit_process(history.X, history.Y, problem.bounds, MODEL)
    x = grid(options.points)
    parts = [
        credible_rows("posterior", x, gaussian_predictor(process)(x.unsqueeze(-1)), ALPHA),
        rows("posterior", "truth", x=x, value=problem.function(x.unsqueeze(-1), noise=False)),
        rows("posterior", "data", x=X[:, 0], value=history.Y[:, 0]),
    ]
    if options.paths:
        drawn = draw_paths(process, options.paths, generator).everywhere(x.unsqueeze(-1))
        parts += [rows("posterior", f"draw {i + 1}", x=x, value=path) for i, path in enumerate(drawn)]
    if options.draws:
        seed = draw_seed(generator)
        optima = peaks(draw_paths(process, options.draws, generator), problem.space, options.search, seed)
        parts.append(rows("posterior", "optimum", x=optima.X[:, 0], value=optima.f))
    given = {"model": MODEL.model_dump(), "search": options.search.model_dump()}
    for name in options.methods:
        with manual_seed(draw_seed(generator)):  # parts of BoTorch draw from the global stream
            proposal = build_method(name, given, Domain(problem.space)).ask(history, 1, generator)
        assert proposal.acquisition is not None
        parts.append(rows(name, "acquisition", x=x, value=proposal.acquisition(x.unsqueeze(-1))))
        parts.append(rows(name, "query", x=float(proposal.X)))
    return table(parts)

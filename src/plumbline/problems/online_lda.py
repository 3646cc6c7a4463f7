"""Hyperparameters of online LDA on a fully evaluated grid; CAL, section 5.3.1 and table 2.

A point is (log2 minibatch, kappa, log2 tau0): on the paper's logarithmic scales, the grid takes powers of two. Values
are minus the perplexity on held-out documents. Trials look them up in the grid that `plumbline.trainers.online_lda`
evaluated, and there is no noise. A point that failed there is observed as a failure.
"""

from typing import Annotated, Literal

import torch
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.models.learned.hyperparameter_grid import HyperparameterGrid, read_grid
from plumbline.problems.base import Context, Problem, problems
from plumbline.problems.build import problem_of
from plumbline.problems.tabular import TabularProblem
from plumbline.spaces.table import Table

LOGARITHMIC = {"minibatch": True, "kappa": False, "tau0": True}
"""The inputs, in their order, and whether the grid has powers of two."""


class OnlineLdaOptions(Options):
    """Options of the problem.

    Attributes:
        grid: a grid in `config/models.yaml`.
        measure: `perplexity` of documents given the topics, or `with_topics`, scikit-learn's perplexity, which includes
            the topics' own part of the bound.
    """

    grid: Annotated[str, Input("models/{}.npz")] = "online-lda"
    measure: Literal["perplexity", "with_topics"] = "perplexity"


@problems.register("online-lda", OnlineLdaOptions)
def online_lda(options: OnlineLdaOptions, context: Context) -> Problem:
    """3-d, a grid: batch size, decay and offset of online LDA's learning rate, by the perplexity of held-out texts."""
    grid = read_grid(context.data / "models" / f"{options.grid}.npz")
    X = inputs(grid)
    values = -torch.from_numpy(grid.measured[options.measure])
    function = TabularProblem(X, values, X[:0], values[:0])
    space = Table(function.bounds, function.candidates)
    return problem_of(function, space=space, holdout=function.holdout, may_fail=True)


def inputs(grid: HyperparameterGrid) -> Tensor:
    """Return the points in the problem's inputs, `N x 3`.

    Raises:
        PlumblineError: a grid of other hyperparameters.
    """
    if grid.hyperparameters != tuple(LOGARITHMIC):
        raise PlumblineError(f"a grid of {', '.join(grid.hyperparameters)}, not of {', '.join(LOGARITHMIC)}")
    points = torch.from_numpy(grid.points)
    return torch.where(torch.tensor([*LOGARITHMIC.values()]), points.log2(), points)

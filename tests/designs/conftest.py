"""A table of ten candidates."""

import pytest
import torch
from design_cases import generator

from plumbline.problems.base import Problem
from plumbline.problems.build import problem_of
from plumbline.problems.tabular import TabularProblem
from plumbline.spaces.table import Table


@pytest.fixture
def table() -> Problem:
    X = torch.rand(12, 2, generator=generator(0), dtype=torch.float64)
    y = torch.randn(12, generator=generator(1), dtype=torch.float64)
    function = TabularProblem(X[:10], y[:10], X[10:], y[10:])
    return problem_of(function, space=Table(function.bounds, function.candidates))

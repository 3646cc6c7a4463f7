"""Designs of the lowest values of a table."""

import pytest
import torch
from design_cases import generator

from plumbline.core.errors import PlumblineError
from plumbline.designs.base import initial_design
from plumbline.designs.worst import worst
from plumbline.problems.base import Problem
from plumbline.problems.build import problem_of
from plumbline.problems.synthetic import Alpine
from plumbline.registry.references import InitialDesign


def test_worst_are_the_lowest_values() -> None:
    candidates = torch.arange(5, dtype=torch.float64).unsqueeze(-1)
    values = torch.tensor([3.0, -1.0, 2.0, -1.0, 0.0], dtype=torch.float64)
    assert worst(candidates, values, 3).flatten().tolist() == [1.0, 3.0, 4.0]


def test_worst_design_of_a_table(table: Problem) -> None:
    X = initial_design(InitialDesign(design="worst", size=4), table, generator(0))
    chosen = table.function(X, noise=False)
    others = sorted(table.function(table.space.rows, noise=False).tolist())
    assert sorted(chosen.tolist()) == others[:4]


def test_worst_needs_a_table() -> None:
    with pytest.raises(PlumblineError, match="needs a table"):
        initial_design(InitialDesign(design="worst", size=3), problem_of(Alpine(dim=2, negate=True)), generator(0))

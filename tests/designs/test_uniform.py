"""Uniform designs of a table."""

import pytest
import torch
from design_cases import generator

from plumbline.core.errors import PlumblineError
from plumbline.designs.base import initial_design
from plumbline.problems.base import Problem
from plumbline.registry.references import InitialDesign


def test_uniform_design_of_a_table_draws_candidates_without_replacement(table: Problem) -> None:
    X = initial_design(InitialDesign(design="uniform", size=10), table, generator(0))
    assert sorted(X.tolist()) == sorted(table.space.rows.tolist())
    assert torch.equal(X[:3], initial_design(InitialDesign(design="uniform", size=3), table, generator(0)))


def test_more_points_than_rows(table: Problem) -> None:
    with pytest.raises(PlumblineError, match="11 rows from a table of 10"):
        initial_design(InitialDesign(design="uniform", size=11), table, generator(0))

"""Designs that are examples of the problem."""

from dataclasses import replace

import pytest
import torch
from design_cases import generator

from plumbline.core.errors import PlumblineError
from plumbline.designs.base import initial_design
from plumbline.problems.build import problem_of
from plumbline.problems.synthetic import Alpine
from plumbline.registry.references import InitialDesign


def test_examples_are_those_of_the_problem() -> None:
    bare = problem_of(Alpine(dim=2, negate=True))
    with pytest.raises(PlumblineError, match="'examples' needs a problem that has examples"):
        initial_design(InitialDesign(design="examples", size=3), bare, generator(0))
    having = replace(bare, examples=lambda n, stream: torch.rand(n, 2, generator=stream, dtype=torch.float64))
    X = initial_design(InitialDesign(design="examples", size=3), having, generator(0))
    assert torch.equal(X, torch.rand(3, 2, generator=generator(0), dtype=torch.float64))

"""Designs that all trials share."""

import torch
from design_cases import generator

from plumbline.designs.base import initial_design
from plumbline.problems.build import problem_of
from plumbline.problems.synthetic import Alpine
from plumbline.registry.references import InitialDesign


def test_a_shared_design_is_uniform_and_the_same_in_all_trials() -> None:
    problem = problem_of(Alpine(dim=2, negate=True))
    wanted = InitialDesign(design="shared", size=64)
    X = initial_design(wanted, problem, generator(3))
    assert torch.equal(X, initial_design(wanted, problem, generator(4)))
    low, high = problem.bounds
    assert ((low <= X) & (high >= X)).all()
    assert (((low + high) / 2 < X).double().mean(dim=0) - 0.5).abs().max() < 0.2

"""Designs of a source distribution."""

import pytest
from design_cases import generator

from plumbline.core.errors import PlumblineError
from plumbline.designs.base import initial_design
from plumbline.problems.build import problem_of
from plumbline.problems.synthetic import Alpine
from plumbline.registry.references import InitialDesign


def test_source_needs_a_shift() -> None:
    with pytest.raises(PlumblineError, match="needs a problem with covariate shift"):
        initial_design(InitialDesign(design="source", size=3), problem_of(Alpine(dim=2, negate=True)), generator(0))

"""Every method runs on the problem of the package, and a trial that runs again has the same values."""

import pytest

import plumbline as pb

METHODS = {
    "walk": {"method_class": "example-walk"},
    "margin-ei": {
        "method_class": "botorch-acquisition",
        "options": {"acquisition": "plumbline_example.acquisition:MarginEI"},
    },
    "evolution": {
        "method_class": "ask-tell",
        "options": {"optimiser": "plumbline_example.optimisers:DifferentialEvolution"},
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_runs_on_the_problem(name, tmp_path):
    first, second = (
        pb.run(problem="example-himmelblau", rounds=3, store=tmp_path / folder, **METHODS[name]) for folder in "ab"
    )
    assert len(first) == 8  # five points of the initial design
    assert first["y"].equals(second["y"])

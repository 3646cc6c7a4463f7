"""What an evaluation of the rover, the lunar lander and the weighted Lasso costs."""

import os
from pathlib import Path

import pytest
import torch

from plumbline.data.generated.dna import generated_dna
from plumbline.data.sources import dna
from plumbline.data.sources.dna import read_dna
from plumbline.problems.landing import current_lander, flights
from plumbline.problems.lasso import WeightedLasso
from plumbline.problems.lunar_lander import LunarLander, LunarLanderOptions
from plumbline.problems.rover import Rover
from plumbline.spaces.box import uniform

LANDS = [0.25, 0.5, 0.2, 0.275, 0.25, 0.5, 0.25, 0.25, 0.0, 0.25, 0.025, 0.025]
"""A controller that lands on most terrains: four times as many steps as random ones, which crash."""


def points(function, n):
    return uniform(function.bounds, n, torch.Generator().manual_seed(0))


def test_1000_evaluations_of_the_rover(benchmark):
    """Required: at most 2 s."""
    rover = Rover()
    benchmark(rover, points(rover, 1000), noise=False)


def test_flights_over_50_terrains(benchmark):
    """Required: at most 1 s of CPU; in this process, so that it is all here."""
    benchmark(flights, current_lander, [2 * one for one in LANDS], range(50))


@pytest.mark.parametrize("processes", [1, 2])
def test_an_evaluation_of_the_lander(benchmark, processes):
    """Required: hardly more than the flights, or half with two cores."""
    lander = LunarLander(LunarLanderOptions(processes=processes))
    benchmark(lander, torch.tensor([LANDS], dtype=torch.float64), noise=False)


@pytest.mark.parametrize("real", [True, False], ids=["real", "generated"])
@pytest.mark.parametrize("where", ["random", "least"])
def test_an_evaluation_of_the_lasso(benchmark, real, where):
    """Required: at most .3 s, also where all penalties are small and the descent is long."""
    path = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere")) / "dna.scale"
    if real and not path.is_file():
        pytest.skip("needs PLUMBLINE_MIRROR with dna.scale")
    table = read_dna(path) if real else generated_dna(500, 0)
    lasso = WeightedLasso(table[list(dna.COLUMNS)].to_numpy(), table[dna.LABEL].to_numpy())
    x = points(lasso, 1) if where == "random" else points(lasso, 1) / 2 - 0.5
    benchmark(lasso, x, noise=False)

"""What the radio problem costs."""

import pytest
import torch

from plumbline.problems.radio import Radio, RadioOptions
from plumbline.spaces.box import uniform


@pytest.mark.parametrize("n_ch", [1, 4])
def test_observing_and_valuing_1000_points(benchmark, n_ch):
    """Required: under 1 s."""
    problem = Radio(RadioOptions(n_ch=n_ch))
    X = uniform(problem.bounds, 1000, torch.Generator().manual_seed(0))
    streams = [torch.Generator().manual_seed(i) for i in range(1000)]
    benchmark(lambda: (problem.observe(X, streams), problem(X, noise=False)))


@pytest.mark.parametrize("draws", [None, 100])
def test_the_noise_free_value_of_one_point(benchmark, draws):
    """Required: a few milliseconds, far below a round of any method."""
    problem = Radio(RadioOptions(truth_draws=draws))
    X = uniform(problem.bounds, 1, torch.Generator().manual_seed(0))
    benchmark(problem, X, noise=False)

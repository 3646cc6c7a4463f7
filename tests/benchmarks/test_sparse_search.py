"""Gradients of utilities of sparse processes by hand, beside BoTorch's by automatic differentiation."""

from time import process_time

import pytest
import torch
from botorch.acquisition import ExpectedImprovement, qExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_samples
from ratio import paired_ratio
from torch import Size

from plumbline.acquisition.analytic import AnalyticAcquisition, expected_improvement
from plumbline.acquisition.monte_carlo import MonteCarloAcquisition, batch_expected_improvement
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.standardisation import identity
from plumbline.models.svgp.objective import Layout, initial_row
from plumbline.models.svgp.posterior import SVGPPosterior
from plumbline.models.svgp.process import SVGP
from plumbline.spaces.box import batches

BEST = torch.tensor(0.5, dtype=torch.float64)
SAMPLES, RESTARTS = 64, 10


def uniform(*size):
    """Return independent uniform numbers."""
    return torch.rand(*size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def process(d):
    """Return a process with a hundred inducing points, off its prior."""
    row = initial_row(uniform(100, d))
    noise = torch.randn(len(row), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return SVGP(row + 0.1 * noise, Layout(100, d), "rbf", identity(d))


@pytest.mark.filterwarnings("ignore:.*known numerical issues")
@pytest.mark.parametrize(("d", "q", "limit"), [(6, 1, 0.3), (60, 1, 0.3), (180, 20, 0.6)])
def test_improvement_and_its_gradient(benchmark, d, q, limit):
    """Found: .16 and .18 of the time at q = 1, .41 with batches of 20 in 180 dimensions."""
    own, X = process(d), uniform(RESTARTS, q, d)
    moments, model = SVGPPosterior(own), ProcessModel(own)
    if q == 1:
        ours, theirs = AnalyticAcquisition(moments, expected_improvement(BEST)), ExpectedImprovement(model, BEST)
    else:
        sampler = SobolQMCNormalSampler(Size([SAMPLES]), seed=3)
        ours = MonteCarloAcquisition(moments, batch_expected_improvement(BEST), SAMPLES, 3)
        theirs = qExpectedImprovement(model, BEST, sampler=sampler)

    def automatic():
        leaf = X.clone().requires_grad_()
        torch.autograd.grad(theirs(leaf).sum(), leaf)

    ratio = paired_ratio(lambda: ours.value_and_gradient(X), automatic, repeats=41, clock=process_time)
    benchmark.extra_info["ratio"] = ratio
    print(f"\nd = {d}, q = {q}: {ratio:.2f} of automatic differentiation")
    benchmark.pedantic(lambda: None)
    assert ratio < limit


def test_starts_of_a_search_in_batches(benchmark):
    """Found: a fifth of the time of a sequence in 3,600 dimensions."""
    bounds = torch.stack([torch.zeros(180), torch.ones(180)]).double()
    ratio = paired_ratio(lambda: batches(bounds, 256, 20, 3), lambda: draw_sobol_samples(bounds, 256, 20, seed=3))
    benchmark.extra_info["ratio"] = ratio
    print(f"\n256 batches of 20 in 180 dimensions: {ratio:.2f} of BoTorch's")
    benchmark.pedantic(lambda: None)
    assert ratio < 0.5

"""Draws by Matheron's rule against the posterior that they are drawn from, and their gradients."""

from dataclasses import replace

import pytest
import torch
from torch import Generator, Tensor

from plumbline.models.algebra import Kernel, correlations
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.pathwise import draw_frequencies, draw_paths
from plumbline.models.gp.process import GP, conditioned

BOUNDS = torch.tensor([[-2.0, 0.0], [3.0, 4.0]], dtype=torch.float64)
KERNELS: list[Kernel] = ["matern52", "matern32", "matern12", "rbf"]


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def somewhere(*shape: int, seed: int = 1) -> Tensor:
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * torch.rand(*shape, 2, generator=seeded(seed), dtype=torch.float64)


def made(kernel: Kernel = "matern52", noise: float = 0.05) -> GP:
    X = somewhere(7, seed=2)
    at = Hyperparameters(0.3, X.new_tensor([noise]), 1.3, X.new_tensor([0.4, 0.7]))
    return conditioned(X, 50 + 8 * torch.sin(X.sum(-1, keepdim=True)), BOUNDS, kernel, at)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("deviation", [1.0, 2.0])
def test_means_and_covariances_are_the_posteriors(kernel: Kernel, deviation: float) -> None:
    process = replace(made(kernel), deviation=deviation)
    X = somewhere(5)
    # Few paths share frequencies, so that errors of the features average out, too.
    drawn = torch.cat([draw_paths(process, 100, seeded(seed)).everywhere(X) for seed in range(100)])
    mean, covariance = process.posterior_moments(X)
    sd = covariance.diagonal().sqrt()
    assert ((drawn.mean(0) - mean) / sd).abs().max() < 5 / len(drawn) ** 0.5
    found = torch.cov(drawn.mT)
    assert ((found - covariance) / torch.outer(sd, sd)).abs().max() < 0.06


@pytest.mark.parametrize("kernel", KERNELS)
def test_features_have_the_kernels_correlations(kernel: Kernel) -> None:
    frequencies = draw_frequencies(kernel, 200_000, 2, seeded())
    away = torch.tensor([[0.3, -0.2], [1.0, 0.5], [-2.0, 1.0]], dtype=torch.float64)
    expected, _ = correlations(away.square().sum(-1), kernel)
    torch.testing.assert_close((away @ frequencies.mT).cos().mean(-1), expected, atol=0.01, rtol=0)


def test_without_noise_draws_go_through_the_data() -> None:
    process = made(noise=1e-8)
    drawn = draw_paths(process, 6, seeded()).everywhere(process.standardisation.points(process.U))
    y = process.standardisation.observations(process.y)
    torch.testing.assert_close(drawn, y.expand_as(drawn), atol=0.02, rtol=0)


@pytest.mark.parametrize("kernel", ["matern52", "matern32", "rbf"])  # draws of Matern-1/2 are too rough for differences
def test_paths_at_points_of_their_own(kernel: Kernel) -> None:
    paths = draw_paths(replace(made(kernel), deviation=1.5), 3, seeded())
    X = somewhere(3, 4)
    value, gradient = paths.each(X)
    for i in range(3):
        torch.testing.assert_close(value[i], paths.everywhere(X[i])[i])
    step = 1e-5
    for j in range(2):
        aside = torch.zeros(2, dtype=torch.float64)
        aside[j] = step
        slope = (paths.each(X + aside)[0] - paths.each(X - aside)[0]) / (2 * step)
        torch.testing.assert_close(gradient[..., j], slope, rtol=1e-5, atol=1e-5)


def test_some_of_the_paths() -> None:
    paths, X = draw_paths(made(), 4, seeded()), somewhere(5)
    assert len(paths.only([3, 1, 1])) == 3
    torch.testing.assert_close(paths.only([3, 1, 1]).everywhere(X), paths.everywhere(X)[[3, 1, 1]])


def test_one_seed_one_draw() -> None:
    X = somewhere(5)
    first, again, other = (draw_paths(made(), 2, seeded(seed)).everywhere(X) for seed in (4, 4, 5))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)

"""Learned density ratios against known ones, and their limits."""

import math

import pytest
import torch
from pydantic import ValidationError
from scipy.stats import spearmanr

from plumbline.calibration.density_ratio import RatioClassifier, RatioOptions, fit_ratio, no_shift

SD = 0.1


def gaussian(mean: float, n: int, seed: int, dim: int = 1) -> torch.Tensor:
    return mean + SD * torch.randn(n, dim, generator=stream(seed), dtype=torch.float64)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def trained(steps: int = 60, **options) -> RatioClassifier:
    options = RatioOptions(steps=steps, hidden=16, learning_rate=1e-2, ema=1.0, **options)
    return fit_ratio(gaussian(0.4, 60, 0, 2), gaussian(0.6, 40, 1, 2), options, stream())


def test_the_log_ratio_of_two_gaussians_is_learned() -> None:
    """It is linear: (mean' - mean) (x - middle) / sd^2, 20 (x - 0.5) here; also where the classes differ in size."""
    options = RatioOptions(steps=300, learning_rate=3e-3, ema=1.0)
    ratio = fit_ratio(gaussian(0.45, 3_000, 0), gaussian(0.55, 1_000, 1), options, stream())
    grid = torch.linspace(0.3, 0.7, 41, dtype=torch.float64)[:, None]
    with torch.no_grad():
        found = ratio(grid)
    expected = 10 * (grid[:, 0] - 0.5)
    assert spearmanr(found, expected).statistic > 0.98
    assert (found - expected).square().mean().sqrt() < 0.35


def test_the_moving_average_starts_where_there_is_no_shift() -> None:
    ratio = RatioClassifier(3, RatioOptions(), stream())
    U = torch.rand(4, 2, 3, generator=stream(), dtype=torch.float64)
    assert torch.equal(ratio(U), torch.zeros(4, 2).double())
    assert torch.equal(no_shift(U), torch.zeros(4, 2).double())


def test_the_moving_average_moves_by_its_weight() -> None:
    ratio = RatioClassifier(2, RatioOptions(ema=0.25, hidden=4), stream())
    expected = [torch.zeros_like(parameter) for parameter in ratio.network.parameters()]
    for _ in range(3):
        ratio.update(gaussian(0.4, 5, 0, 2), gaussian(0.6, 5, 1, 2))
        expected = [
            0.75 * old + 0.25 * new.detach() for old, new in zip(expected, ratio.network.parameters(), strict=True)
        ]
    for parameter, value in zip(ratio.averaged.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.detach(), value)


def test_without_an_average_the_newest_parameters_count() -> None:
    ratio = trained(5)
    U = torch.rand(6, 2, generator=stream(), dtype=torch.float64)
    torch.testing.assert_close(ratio(U), ratio.network(2 * U - 1).squeeze(-1).detach())


def test_classes_that_are_apart_are_clipped_and_finite() -> None:
    options = RatioOptions(steps=400, learning_rate=5e-2, ema=1.0, clip=50.0)
    data, queries = gaussian(-2.0, 30, 0, 2), gaussian(3.0, 30, 1, 2)
    ratio = fit_ratio(data, queries, options, stream())
    with torch.no_grad():
        assert torch.equal(ratio(data), torch.full((30,), -math.log(50.0), dtype=torch.float64))
        assert torch.equal(ratio(queries), torch.full((30,), math.log(50.0), dtype=torch.float64))
    assert ratio.clipped(torch.cat([data, queries])) == 1.0


def test_the_clipped_share_is_counted() -> None:
    ratio = trained(400, clip=3.0)
    U = torch.rand(50, 2, generator=stream(5), dtype=torch.float64)
    with torch.no_grad():
        raw = ratio.averaged(2 * U - 1).squeeze(-1)
    share = (raw.abs() >= math.log(3.0)).double().mean().item()
    assert 0 < share < 1
    assert ratio.clipped(U) == share
    assert trained(0).clipped(U) == 0.0


def test_training_lowers_the_loss() -> None:
    data, queries = gaussian(0.4, 60, 0, 2), gaussian(0.6, 40, 1, 2)

    def loss(ratio: RatioClassifier) -> float:
        with torch.no_grad():
            return (torch.sigmoid(ratio(data)).mean() + torch.sigmoid(-ratio(queries)).mean()).item()

    assert loss(trained(100)) < loss(trained(10)) < loss(trained(0))


def test_same_generator_same_classifier() -> None:
    U = torch.rand(6, 2, generator=stream(9), dtype=torch.float64)
    found = []
    for _ in range(2):
        torch.rand(3)  # the global stream does not count
        found.append(trained(20)(U).detach())
    assert torch.equal(*found)
    other = fit_ratio(
        gaussian(0.4, 60, 0, 2), gaussian(0.6, 40, 1, 2), RatioOptions(steps=20, ema=1.0, hidden=16), stream(1)
    )
    assert not torch.equal(found[0], other(U))


def test_the_log_ratio_is_differentiable_in_its_inputs() -> None:
    ratio = trained(30, clip=1e6)
    U = torch.rand(3, 2, 2, generator=stream(2), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(ratio, U)
    assert torch.autograd.grad(ratio(U).sum(), U)[0].abs().max() > 0.01


@pytest.mark.parametrize("wrong", [{"clip": 1.0}, {"ema": 0.0}, {"ema": 1.5}, {"hidden": 0}, {"steps": -1}])
def test_options_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        RatioOptions(**wrong)

"""What the departures of the published code do to expected improvement, against integrals over labels."""

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor, tensor

from plumbline.acquisition.localised import CalibratedPosterior
from plumbline.acquisition.localised_as_published import DEPARTURES, WIDEST, Departure, PublishedPosterior

MEAN, VARIANCE, NOISE, ALPHA, BEST = 0.3, 1.2, 0.4, 0.2, 0.5


def value(threshold: float, *departures: Departure) -> float:
    numbers = [tensor(number, dtype=torch.float64) for number in (MEAN, VARIANCE, NOISE, threshold)]
    return PublishedPosterior(*numbers, ALPHA, frozenset(departures)).expected_improvement(best()).item()


def best() -> Tensor:
    return tensor(BEST, dtype=torch.float64)


def by_labels(half: float, inside: float, outside: float) -> float:
    """Integrate the gain of `f` given a label over labels: of density `inside` in the set, `outside` times the
    model's beyond it."""
    sd = VARIANCE**0.5
    y = np.linspace(MEAN - 12 * sd, MEAN + 12 * sd, 600_001)
    g = (VARIANCE - NOISE) / VARIANCE
    spread = (NOISE * g) ** 0.5
    t = (g * y + (1 - g) * MEAN - BEST) / spread
    gain = spread * (t * norm.cdf(t) + norm.pdf(t))
    density = np.where(np.abs(y - MEAN) <= half * sd, inside, outside * norm.pdf(y, MEAN, sd))
    return float(np.trapezoid(density * gain, y))


def half_width(threshold: float) -> float:
    return float(-norm.ppf(threshold / 2))


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.9])
def test_without_departures_it_is_the_paper(threshold: float) -> None:
    numbers = [tensor(number, dtype=torch.float64) for number in (MEAN, VARIANCE, NOISE, threshold)]
    paper = CalibratedPosterior(*numbers, ALPHA).expected_improvement(best()).item()
    assert value(threshold) == pytest.approx(paper, rel=1e-10)
    assert value(threshold, "interval-clipping") == pytest.approx(paper, rel=1e-10)
    half = half_width(threshold)
    density = (1 - ALPHA) / (2 * half * VARIANCE**0.5)
    assert by_labels(half, density, ALPHA / threshold) == pytest.approx(paper, rel=1e-4)


@pytest.mark.parametrize("threshold", [0.05, 0.3])
def test_operator_precedence_changes_the_density_inside(threshold: float) -> None:
    half = half_width(threshold)
    low, high = MEAN - half * VARIANCE**0.5, MEAN + half * VARIANCE**0.5
    expected = by_labels(half, (1 - ALPHA) * (1 / high - low), ALPHA / threshold)
    assert value(threshold, "operator-precedence") == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("threshold", [0.0, -0.4])
def test_a_threshold_that_is_not_positive_fixes_the_set_and_drops_the_tails(threshold: float) -> None:
    expected = by_labels(WIDEST, (1 - ALPHA) / (2 * WIDEST * VARIANCE**0.5), 0.0)
    assert value(threshold, "interval-clipping") == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("threshold", [1.0, 1.6])
def test_a_threshold_above_one_leaves_the_tails_alone(threshold: float) -> None:
    expected = by_labels(0.0, 0.0, ALPHA / threshold)
    assert value(threshold, "interval-clipping") == pytest.approx(expected, rel=1e-4)


def test_its_gradient_is_that_of_finite_differences() -> None:
    def gain(mean: Tensor, threshold: Tensor) -> Tensor:
        variance, noise = (torch.full_like(mean, number) for number in (VARIANCE, NOISE))
        return PublishedPosterior(mean, variance, noise, threshold, ALPHA, frozenset(DEPARTURES)).expected_improvement(
            best()
        )

    mean, threshold = (tensor(numbers, dtype=torch.float64) for numbers in ([0.1, 0.7, 0.3], [0.4, 1.3, 0.1]))
    assert torch.autograd.gradcheck(gain, (mean.requires_grad_(), threshold.requires_grad_()))

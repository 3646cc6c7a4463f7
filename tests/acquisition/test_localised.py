"""Expected improvement under LOCBO's posterior against Monte Carlo, quadrature by brute force, and limits."""

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from plumbline.acquisition.localised import CalibratedPosterior, expected_gain, integrated_gain


def number(x: float) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def posterior(seed: int, threshold: float | None = None) -> tuple[CalibratedPosterior, torch.Tensor]:
    draw = torch.rand(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    variance = 0.1 + 2 * draw[0]
    lam = draw[2] if threshold is None else number(threshold)
    made = CalibratedPosterior(
        2 * draw[1] - 1, variance, 0.02 + 0.9 * draw[3] * variance, lam, 0.05 + 0.4 * draw[4].item()
    )
    return made, number(0.7) * draw[1]


THRESHOLDS = [None] * 14 + [1e-4, 1e-3, 0.01, 0.99, 0.999, 1.0]


@pytest.mark.parametrize(("seed", "threshold"), enumerate(THRESHOLDS))
def test_agrees_with_monte_carlo(seed: int, threshold: float | None) -> None:
    """Within four standard errors of a million draws of eq. 28 to 30."""
    made, best = posterior(seed, threshold)
    gains = (made.sample(1_000_000, torch.Generator().manual_seed(seed)) - best).clamp_min(0.0)
    error = gains.std() / len(gains) ** 0.5
    assert (made.expected_improvement(best) - gains.mean()).abs() <= 4 * error


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_numerical_integration(seed: int) -> None:
    """Eq. 28 to 30 by the letter, with scipy over labels."""
    made, best = posterior(seed)
    mu, S, lam = made.mean.item(), made.variance.sqrt().item(), made.threshold.item()
    g = 1 - made.noise.item() / made.variance.item()
    sd = (made.noise.item() * g) ** 0.5
    half = norm.isf(lam / 2) * S

    def gain(y: float) -> float:
        t = (mu + g * (y - mu) - best.item()) / sd
        return sd * (t * norm.cdf(t) + norm.pdf(t))

    inside = quad(gain, mu - half, mu + half, limit=200)[0] / (2 * half)
    tails = [(-12 * S + mu, mu - half), (mu + half, mu + 12 * S)]
    outside = sum(quad(lambda y: gain(y) * norm.pdf(y, mu, S), *tail, limit=200)[0] for tail in tails) / lam
    expected = (1 - made.alpha) * inside + made.alpha * outside
    assert made.expected_improvement(best).item() == pytest.approx(expected, rel=1e-6)


def test_the_antiderivative_is_one() -> None:
    t = torch.linspace(-6, 6, 41, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(integrated_gain(t).sum(), t)
    torch.testing.assert_close(slope, expected_gain(t.detach(), number(1.0), number(0.0)))


def test_gradients_agree_with_finite_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, variance, threshold = (torch.rand(4, generator=generator, dtype=torch.float64) * 0.6 + 0.2 for _ in range(3))

    def value(mean: torch.Tensor, variance: torch.Tensor, threshold: torch.Tensor) -> torch.Tensor:
        return CalibratedPosterior(mean, variance, number(0.05), threshold, 0.2).expected_improvement(number(0.5))

    inputs = [part.requires_grad_() for part in (mean, variance, threshold)]
    assert torch.autograd.gradcheck(value, inputs)


def test_a_set_without_length_is_the_mean() -> None:
    made, best = posterior(3, 1.0)
    sd = made.sd_given_label()
    whole = expected_gain(made.mean, (made.variance - made.noise).sqrt(), best)
    by_hand = (1 - made.alpha) * expected_gain(made.mean, sd, best) + made.alpha * whole
    torch.testing.assert_close(made.expected_improvement(best), by_hand, rtol=1e-9, atol=1e-12)
    just_below, _ = posterior(3, 1.0 - 1e-9)
    torch.testing.assert_close(just_below.expected_improvement(best), by_hand, rtol=1e-5, atol=1e-9)


def test_hardly_any_noise_leaves_the_label_itself() -> None:
    """Gain near one: f is the label, and the gain over a uniform label has a closed form."""
    made = CalibratedPosterior(number(0.3), number(1.0), number(1e-9), number(0.2), 1e-12)
    half = made.half_width.item()
    low, high, best = 0.3 - half, 0.3 + half, 0.5
    by_hand = (high - best) ** 2 / (2 * (high - low))
    assert made.expected_improvement(number(best)).item() == pytest.approx(by_hand, rel=1e-4)


def test_values_are_finite_and_not_negative_everywhere() -> None:
    grid = torch.meshgrid(
        torch.linspace(-30, 30, 7, dtype=torch.float64),
        torch.tensor([1e-8, 1e-3, 1.0, 100.0], dtype=torch.float64),
        torch.tensor([1e-6, 0.01, 0.5, 1.0], dtype=torch.float64),
        indexing="ij",
    )
    for share in (1e-6, 0.5, 1.0):
        made = CalibratedPosterior(grid[0], grid[1], share * grid[1], grid[2], 0.1)
        value = made.expected_improvement(number(0.0))
        assert torch.isfinite(value).all()
        assert (value >= -1e-9).all()

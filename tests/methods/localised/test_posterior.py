"""LOCBO's posterior against Monte Carlo, quadrature by brute force, itself (density, cdf, quantiles), and limits."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from plumbline.forecasts import gaussian
from plumbline.methods.localised.posterior import TINY, CalibratedPosterior


def number(x: float | list[float]) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def expected_gain(mean: torch.Tensor, sd: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
    """Return `E [f - best]+` of a Gaussian `f`."""
    return sd * gaussian.ramp((mean - best) / sd)


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
    """Gain near one: f is the label; a label's expected gain has a closed form, inside the set and beyond it."""
    made = CalibratedPosterior(number(0.3), number(1.0), number(1e-9), number(0.2), 0.3)
    half = made.half_width.item()
    low, high, best = 0.3 - half, 0.3 + half, 0.5
    inside = (high - best) ** 2 / (2 * (high - low))
    outside = (norm.pdf(half) + (0.3 - best) * norm.sf(half)) / 0.2
    assert made.expected_improvement(number(best)).item() == pytest.approx(0.7 * inside + 0.3 * outside, rel=1e-7)


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


@st.composite
def posteriors(draw: st.DrawFn) -> CalibratedPosterior:
    """Return a posterior of one point, extremes of noise and threshold included."""
    variance = 10 ** draw(st.floats(-4, 2))
    share = draw(st.floats(0.01, 0.99) | st.sampled_from([1e-11, 1e-6, 1e-3, 0.999, 1 - 1e-6]))
    threshold = draw(st.floats(0.001, 0.999) | st.sampled_from([1e-6, 1e-4, 1 - 1e-5, 1 - 1e-13, 1.0]))
    mean, alpha = draw(st.floats(-3, 3)), draw(st.floats(0.01, 0.9))
    return CalibratedPosterior(*(number(x) for x in (mean, variance, share * variance, threshold)), alpha)


def pieces(made: CalibratedPosterior) -> torch.Tensor:
    """Return ends of intervals on each of which the density of `f` is smooth; next to no mass lies beyond them."""
    steps = torch.linspace(-10, 10, 11, dtype=torch.float64)
    offsets = [1.4 * steps * made.sd_of_value()]
    # A uniform label ends at the set's image, blurred by the noise given a label; one outside starts at the set's end,
    # blurred by the noise of an observation.
    for edge, blur in (
        (made.signal_share * made.half_width, made.sd_given_label()),
        (made.half_width, made.noise.sqrt()),
    ):
        offsets += [side * edge + steps * blur for side in (-1, 1)]
    ends = torch.cat(offsets).clamp(offsets[0][0], offsets[0][-1])
    return made.mean + ends.sort().values


def integrate(function: Callable[[torch.Tensor], torch.Tensor], ends: torch.Tensor) -> torch.Tensor:
    return gaussian.integral(function, ends[:-1], ends[1:]).sum()


@settings(max_examples=25)
@given(posteriors())
def test_the_density_integrates_to_one(made: CalibratedPosterior) -> None:
    ends = pieces(made)
    assert (made.density(ends) >= 0).all()
    assert integrate(made.density, ends).item() == pytest.approx(1.0, abs=1e-9)


@settings(max_examples=25)
@given(posteriors(), st.floats(-4, 4))
def test_the_cdf_is_the_integral_of_the_density(made: CalibratedPosterior, u: float) -> None:
    f = made.mean + u * made.sd_of_value()
    ends = pieces(made)
    below = torch.cat([ends[ends < f], f.unsqueeze(0)])
    assert made.cdf(f).item() == pytest.approx(integrate(made.density, below).item(), abs=1e-10)


@settings(max_examples=25)
@given(posteriors(), st.floats(-4, 4))
def test_expected_improvement_is_the_integral_of_the_gain(made: CalibratedPosterior, u: float) -> None:
    """By the density, which has a closed form of its own."""
    best = made.mean + u * made.sd_of_value()
    ends = pieces(made)
    above = torch.cat([best.unsqueeze(0), ends[ends > best]])
    expected = integrate(lambda f: (f - best) * made.density(f), above) / made.sd_of_value()
    value = made.expected_improvement(best) / made.sd_of_value()
    assert value.item() == pytest.approx(expected.item(), rel=1e-7, abs=1e-10)


@settings(max_examples=25)
@given(posteriors(), st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1, max_size=5))
def test_quantiles_invert_the_cdf(made: CalibratedPosterior, levels: list[float]) -> None:
    p = number(levels)
    q = made.quantile(p)
    # What a float near the quantile cannot resolve is not asked for.
    resolved = 4e-16 * (q.abs() + made.mean.abs()) * made.density(q)
    assert ((made.cdf(q) - p).abs() <= 1e-12 + resolved).all()


@settings(max_examples=25)
@given(posteriors(), st.floats(-3, 3), st.sampled_from([1e-2, 3.0, 100.0]), st.floats(-2, 2))
def test_units_do_not_matter(made: CalibratedPosterior, u: float, scale: float, shift: float) -> None:
    """With labels in other units: densities per unit, values in units, probabilities as they were."""
    other = CalibratedPosterior(
        scale * made.mean + shift, scale**2 * made.variance, scale**2 * made.noise, made.threshold, made.alpha
    )
    f = made.mean + u * made.sd_of_value()
    # Shifting f loses digits, and an edge of hardly any noise is steep: close together relative to the noise.
    slack = 1e-8 + 1e-13 * (1 + f.abs()) / made.sd_given_label()
    assert (other.density(scale * f + shift) * scale / made.density(f) - 1).abs() <= 10 * slack
    assert (other.cdf(scale * f + shift) - made.cdf(f)).abs() <= slack


def label_density(made: CalibratedPosterior, y: torch.Tensor) -> torch.Tensor:
    """Return the density of a label at `y`; eq. 28. A set without length is an atom, which has none."""
    sd, zeta = made.variance.sqrt(), -torch.special.ndtri(made.threshold / 2)
    z = (y - made.mean) / sd
    outside = made.alpha * torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi) / made.threshold
    inside = (1 - made.alpha) / (2 * zeta.clamp_min(TINY))
    return torch.where((z.abs() <= zeta) & (zeta > TINY), inside, outside) / sd


@settings(max_examples=25)
@given(posteriors())
def test_the_label_density_has_its_masses(made: CalibratedPosterior) -> None:
    sd, half, density = made.variance.sqrt(), made.half_width, partial(label_density, made)
    inside = integrate(density, torch.stack([made.mean - half, made.mean + half]))
    tail = made.mean + half + sd * torch.linspace(0, 12, 7, dtype=torch.float64)
    outside = integrate(density, tail) + integrate(density, 2 * made.mean - tail.flip(0))
    if half > 1e-10:
        assert inside.item() == pytest.approx(1 - made.alpha, rel=1e-4)
    assert outside.item() == pytest.approx(made.alpha, rel=1e-9)


@pytest.mark.parametrize(("seed", "threshold"), enumerate(THRESHOLDS))
def test_draws_have_the_cdf_and_the_moments(seed: int, threshold: float | None) -> None:
    """Kolmogorov-Smirnov at level 1e-4, and four standard errors."""
    made, _ = posterior(seed, threshold)
    draws = made.sample(20_000, torch.Generator().manual_seed(seed)).sort().values
    n = len(draws)
    rank = torch.arange(n, dtype=torch.float64) / n
    distance = torch.maximum((made.cdf(draws) - rank).max(), (rank + 1 / n - made.cdf(draws)).max())
    assert distance <= 2.23 / n**0.5
    ends = pieces(made)
    for power in (1, 2):
        moment = integrate(lambda f, k=power: (f - made.mean) ** k * made.density(f), ends)
        sampled = (draws - made.mean) ** power
        assert (moment - sampled.mean()).abs() <= 4 * sampled.std() / n**0.5


@pytest.mark.parametrize("share", [1e-4, 0.3, 0.99])
@pytest.mark.parametrize("threshold", [1e-6, 0.2, 0.999])
def test_gradients_of_density_and_cdf(share: float, threshold: float) -> None:
    def law(mean: torch.Tensor, variance: torch.Tensor, noise: torch.Tensor, lam: torch.Tensor) -> CalibratedPosterior:
        return CalibratedPosterior(mean, variance, noise, lam * threshold, 0.3)

    attributes = [number(x).requires_grad_() for x in (0.2, 1.3, 1.3 * share, 1.0)]
    points = number([-2.0, -0.3, 0.2, 0.9]).requires_grad_()
    check = {"eps": 1e-7, "atol": 1e-5, "rtol": 1e-5}
    assert torch.autograd.gradcheck(lambda f, *parts: law(*parts).cdf(f), (points, *attributes), **check)
    assert torch.autograd.gradcheck(lambda f, *parts: law(*parts).density(f), (points, *attributes), **check)


def moved(like: CalibratedPosterior, leaves: list[torch.Tensor]) -> CalibratedPosterior:
    """Return a posterior with another mean and standard deviation of `f` and another threshold; the noise stays."""
    mean, sd, threshold = leaves
    return replace(like, mean=mean, variance=sd.square() + like.noise, threshold=threshold)


@pytest.mark.slow
@settings(max_examples=50)
@given(posteriors(), st.floats(-4, 4))
def test_slopes_of_expected_improvement_are_automatic_ones(made: CalibratedPosterior, u: float) -> None:
    leaves = [part.clone().requires_grad_() for part in (made.mean, made.sd_of_value(), made.threshold)]
    best = made.mean + u * made.sd_of_value()
    automatic = torch.autograd.grad(moved(made, leaves).expected_improvement(best), leaves)
    found = made.expected_improvement_with_slopes(best)[1]()
    scales = (1.0, 1.0, made.variance.sqrt() / made.threshold)
    for slope, expected, scale in zip(found, automatic, scales, strict=True):
        torch.testing.assert_close(slope / scale, expected / scale, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@settings(max_examples=50)
@given(posteriors(), st.floats(1e-6, 1 - 1e-6))
def test_slopes_of_a_quantile_keep_its_probability(made: CalibratedPosterior, level: float) -> None:
    """The implicit function theorem, with automatic slopes of the distribution function."""
    value, slopes = made.quantile_with_slopes(number(level))
    assert torch.equal(value, made.quantile(number(level)))
    leaves = [part.clone().requires_grad_() for part in (made.mean, made.sd_of_value(), made.threshold)]
    automatic = torch.autograd.grad(moved(made, leaves).cdf(value), leaves)
    scales = (1.0, 1.0, made.threshold)
    density = made.density(value)
    for slope, of_cdf, scale in zip(slopes(), automatic, scales, strict=True):
        torch.testing.assert_close(slope * density * scale, -of_cdf * scale, rtol=1e-5, atol=1e-7)


def test_a_grid_comes_first() -> None:
    """Many values at many points are as one value at one point at a time."""
    batch = CalibratedPosterior(
        number([[0.0, 1.0, 2.0]]), number([[1.0], [2.0]]), number(0.3), number([[0.1, 0.5, 1.0]]), 0.2
    )
    grid = torch.linspace(-1, 3, 5, dtype=torch.float64).reshape(-1, 1, 1)
    levels = torch.linspace(0.1, 0.9, 5, dtype=torch.float64).reshape(-1, 1, 1)
    single = CalibratedPosterior(number(1.0), number(2.0), number(0.3), number(0.5), 0.2)
    for name, given_grid in (("density", grid), ("cdf", grid), ("quantile", levels)):
        values = getattr(batch, name)(given_grid)
        assert values.shape == (5, 2, 3)
        torch.testing.assert_close(values[:, 1, 1], getattr(single, name)(given_grid.squeeze()))


def test_without_a_width_the_density_is_a_mixture_of_two_gaussians() -> None:
    made, _ = posterior(3, 1.0)
    f = made.mean + torch.linspace(-3, 3, 13, dtype=torch.float64)
    narrow = norm.pdf(f, made.mean, made.sd_given_label())
    model = norm.pdf(f, made.mean, (made.variance - made.noise).sqrt())
    by_hand = torch.from_numpy((1 - made.alpha) * narrow + made.alpha * model)
    torch.testing.assert_close(made.density(f), by_hand)


@pytest.mark.parametrize("noise", [0.0, 1e-300, 1e-11])
def test_without_noise_the_density_is_that_of_a_label(noise: float) -> None:
    """Away from the ends of the set, where it jumps."""
    made = CalibratedPosterior(number(0.3), number(2.0), number(noise), number(0.1), 0.25)
    f = made.mean + made.half_width * number([-1.4, -1.001, -0.999, -0.3, 0.0, 0.999, 1.001, 3.0])
    torch.testing.assert_close(made.density(f), label_density(made, f), rtol=1e-9, atol=0.0)


def test_next_to_no_gain_leaves_the_mean_and_finite_values() -> None:
    made = CalibratedPosterior(number(0.3), number(2.0), number(2.0), number([1e-6, 0.5, 1.0]), 0.25)
    torch.testing.assert_close(made.quantile(number(0.9)), number([0.3] * 3), rtol=0.0, atol=1e-5)
    # The label says nothing: f is as it was under the model.
    sd = made.sd_of_value()
    f = made.mean + sd * number([-2.0, 0.0, 1.5]).unsqueeze(-1)
    model = torch.from_numpy(norm.pdf(f, made.mean, sd)).expand(3, 3)
    torch.testing.assert_close(made.density(f), model, rtol=1e-4, atol=0.0)


@pytest.mark.slow
@settings(max_examples=50)
@given(posteriors(), st.floats(-4, 4), st.floats(1e-6, 1 - 1e-6))
def test_of_arrays_is_as_of_tensors(made: CalibratedPosterior, u: float, level: float) -> None:
    parts = made.mean, made.variance, made.noise, made.threshold
    arrays = CalibratedPosterior(*(part.numpy().reshape(1, 1) for part in parts), made.alpha)
    best, p = made.mean + u * made.sd_of_value(), number(level)
    asked = ("expected_improvement_with_slopes", best), ("quantile_with_slopes", p)
    # Quantiles are exact in their probability: not where there is hardly any, beside a set of hardly any noise.
    slack = 1e-15 / made.density(made.quantile(p)).item() / made.sd_of_value().item()
    for (name, argument), tolerance in zip(asked, (0.0, slack), strict=True):
        value, slopes = getattr(made, name)(argument)
        same, its_slopes = getattr(arrays, name)(argument.numpy().reshape(1, 1))
        scale = made.sd_of_value().item()
        assert same.item() == pytest.approx(value.item(), rel=1e-12, abs=scale * (1e-12 + tolerance))
        if name.startswith("expected"):
            for slope, its in zip(slopes(), its_slopes(), strict=True):
                assert its.item() == pytest.approx(slope.item(), rel=1e-9, abs=1e-12 * max(1.0, scale))

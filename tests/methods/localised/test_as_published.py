"""What the departures of the published scripts do to expected improvement, against what the scripts write down."""

import itertools
import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import erf
from scipy.stats import norm
from torch import Tensor, tensor

from plumbline.methods.localised.as_published import DRAWS, END, WIDEST, Extremes, Inside, ScriptedImprovement, Tails
from plumbline.methods.localised.posterior import CalibratedPosterior

MEAN, VARIANCE, NOISE, ALPHA, BEST = 0.3, 1.2, 0.4, 0.2, 0.5
F = np.linspace(-30.0, 30.0, 400_001)
Array = NDArray[np.float64]

USUAL, EXTREME = (0.05, 0.3, 0.9), (0.0, -0.4, 1.3)


def ends(threshold: float) -> tuple[float, float]:
    half = WIDEST if threshold <= 0 else float(norm.ppf(1 - threshold / 2))
    return MEAN - half * VARIANCE**0.5, MEAN + half * VARIANCE**0.5


def inside_as_written(f: Array, threshold: float, inside: Inside, other: float = MEAN) -> Array:
    """Return the part of labels in the set: with the model's `f | y ~ N(a y + b, s2)`."""
    low, high = ends(threshold)
    a = (VARIANCE - NOISE) / VARIANCE
    b, s = (1 - a) * other, (NOISE * a) ** 0.5
    density = 1 / (high - low) if inside == "uniform" else 1 / high - low
    upper, lower = (erf((a * end + b - f) / (2**0.5 * s)) for end in (high, low))
    return (1 - ALPHA) * density / (2 * a) * (upper - lower)


def tails_as_written(f: Array, threshold: float, tails: Tails, other: float = MEAN) -> Array:
    """Return the part of labels beyond the set: `p` and `r` are what eq. 45 calls A and C, or their squares."""
    if threshold <= 0:
        return 0 * f
    low, high = ends(threshold)
    a = (VARIANCE - NOISE) / VARIANCE
    b, s2 = (1 - a) * other, NOISE * a
    p, r = a**2 / (2 * s2), 1 / (2 * VARIANCE)
    if tails == "as-coded":
        p, r = p**2, r**2
    y = (f - b) / a
    peak = np.exp(-p * r / (p + r) * (y - MEAN) ** 2) * math.sqrt(math.pi / (p + r)) / 2
    above, below = (((p + r) * end - p * y - r * MEAN) / math.sqrt(p + r) for end in (high, low))
    return ALPHA / threshold * peak * (2 - erf(above) + erf(below)) / (2 * math.pi * math.sqrt(s2 * VARIANCE))


def as_written(threshold: float, tails: Tails = "equation-29", inside: Inside = "uniform") -> float:
    density = inside_as_written(F, threshold, inside) + tails_as_written(F, threshold, tails)
    return float(np.trapezoid(np.maximum(F - BEST, 0) * density, F))


def moments(threshold: float, count: int | None = None) -> list[Tensor]:
    numbers = [tensor(number, dtype=torch.float64) for number in (MEAN, VARIANCE, NOISE, threshold)]
    return numbers if count is None else [number.expand(count) for number in numbers]


def value(threshold: float, **departures: str) -> float:
    return float(ScriptedImprovement(ALPHA, **departures)(*moments(threshold), best()))  # type: ignore[arg-type]


def best() -> Tensor:
    return tensor(BEST, dtype=torch.float64)


@pytest.mark.parametrize("threshold", USUAL)
def test_without_departures_it_is_the_text(threshold: float) -> None:
    text = CalibratedPosterior(*moments(threshold), ALPHA).expected_improvement(best()).item()  # type: ignore[arg-type]
    assert value(threshold) == pytest.approx(text, rel=1e-10)
    assert as_written(threshold) == pytest.approx(text, rel=1e-6)


@pytest.mark.parametrize("threshold", USUAL)
@pytest.mark.parametrize("extremes", ["ackley-script", "radio-script"])
def test_the_rules_of_extremes_leave_other_thresholds_alone(threshold: float, extremes: Extremes) -> None:
    assert value(threshold, extremes=extremes) == value(threshold)


@pytest.mark.parametrize("threshold", [*USUAL, *EXTREME])
@pytest.mark.parametrize(("tails", "inside"), itertools.product(["equation-29", "as-coded"], ["uniform", "as-coded"]))
def test_parts_are_those_that_are_written_down(threshold: float, tails: Tails, inside: Inside) -> None:
    scripted = ScriptedImprovement(ALPHA, tails, inside, "ackley-script")
    within, beyond = scripted.parts(*moments(threshold))
    f = np.linspace(-4.0, 5.0, 37)
    at = torch.from_numpy(f)
    assert within.density(at).numpy() == pytest.approx(inside_as_written(f, threshold, inside), rel=1e-9, abs=1e-14)
    assert beyond.density(at).numpy() == pytest.approx(tails_as_written(f, threshold, tails), rel=1e-9, abs=1e-14)
    whole = float(scripted(*moments(threshold), best()))
    assert whole == pytest.approx(as_written(threshold, tails, inside), rel=1e-6)


def test_tails_as_coded_are_what_the_printed_formula_makes_of_squares_of_squares() -> None:
    """They are no slip of rounding: another mass, by a factor of its own at each point."""
    ratios = [
        tails_as_written(np.array([f]), 0.3, "as-coded") / tails_as_written(np.array([f]), 0.3, "equation-29")
        for f in (-1.0, 0.3, 2.0)
    ]
    assert max(ratios) / min(ratios) > 1.2


@pytest.mark.parametrize("tails", ["equation-29", "as-coded"])
def test_another_mean_moves_the_function_and_leaves_the_set(tails: Tails) -> None:
    scripted = ScriptedImprovement(ALPHA, tails, "as-coded")
    within, beyond = scripted.parts(*moments(0.3), tensor(-0.7, dtype=torch.float64))
    f = np.linspace(-4.0, 5.0, 37)
    at = torch.from_numpy(f)
    expected = inside_as_written(f, 0.3, "as-coded", -0.7), tails_as_written(f, 0.3, tails, -0.7)
    assert within.density(at).numpy() == pytest.approx(expected[0], rel=1e-9, abs=1e-14)
    assert beyond.density(at).numpy() == pytest.approx(expected[1], rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("threshold", [0.0, -0.4])
def test_the_radio_script_has_a_set_without_ends_where_the_threshold_is_not_positive(threshold: float) -> None:
    assert value(threshold, extremes="radio-script") == 0.0
    assert value(threshold, extremes="radio-script", inside="as-coded") == math.inf


def test_tails_that_nothing_reaches_are_zero() -> None:
    """Hardly any variance: the coded tails begin a hundred of their standard deviations away."""
    tiny = [tensor(number, dtype=torch.float64) for number in (0.3, 1e-4, 1e-5, 0.2)]
    within, beyond = ScriptedImprovement(ALPHA, tails="as-coded").parts(*tiny)
    assert beyond.expected_improvement(tensor(0.29).double()).abs() < 1e-12
    assert within.expected_improvement(tensor(0.29).double()) > 0


class TestDraws:
    def scripted(self) -> ScriptedImprovement:
        return ScriptedImprovement(ALPHA, "as-coded", "uniform", "ackley-script", torch.Generator().manual_seed(3))

    @pytest.mark.slow
    def test_they_average_the_integral_up_to_where_they_end(self) -> None:
        values = self.scripted()(*moments(0.3, 40_000), best())
        f = np.linspace(BEST, END, 100_001)
        gains = [
            (f - BEST) * part for part in (inside_as_written(f, 0.3, "uniform"), tails_as_written(f, 0.3, "as-coded"))
        ]
        means = [np.trapezoid(gain, f) for gain in gains]
        squares = [np.trapezoid(gain**2, f) * (END - BEST) for gain in gains]
        # Each part has draws of its own.
        sd = sum((square - mean**2) / DRAWS for square, mean in zip(squares, means, strict=True)) ** 0.5
        assert values.std().item() == pytest.approx(sd, rel=0.03)
        assert values.mean().item() == pytest.approx(sum(means), abs=4 * sd / 200)

    def test_each_call_has_its_own(self) -> None:
        scripted = self.scripted()
        first, second = (scripted(*moments(0.3), best()).item() for _ in range(2))
        assert first != second
        assert self.scripted()(*moments(0.3), best()).item() == first

    def test_a_best_beyond_their_end_is_not_improved_on(self) -> None:
        assert self.scripted()(*moments(0.3), tensor(5.5).double()).item() == 0.0

    def test_the_threshold_has_no_slope(self) -> None:
        mean, variance, noise, threshold = (number.clone().requires_grad_() for number in moments(0.3))
        value = self.scripted()(mean, variance, noise, threshold, best())
        slopes = torch.autograd.grad(value, (mean, threshold), allow_unused=True)
        assert slopes[0] is not None
        assert slopes[0] != 0
        assert slopes[1] is None


@pytest.mark.parametrize("tails", ["equation-29", "as-coded"])
def test_its_gradient_is_that_of_finite_differences(tails: Tails) -> None:
    scripted = ScriptedImprovement(ALPHA, tails, "as-coded", "ackley-script")

    def gain(mean: Tensor, variance: Tensor, threshold: Tensor) -> Tensor:
        return scripted(mean, variance, torch.full_like(mean, NOISE), threshold, best())

    numbers = ([0.1, 0.7, 0.3], [1.2, 0.9, 2.0], [0.4, 1.3, 0.1])
    assert torch.autograd.gradcheck(gain, [tensor(one, dtype=torch.float64, requires_grad=True) for one in numbers])

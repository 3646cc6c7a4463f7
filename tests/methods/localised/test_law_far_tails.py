"""Expected improvement far below the incumbent: positive, accurate in relative terms, and in the right order."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from localised_cases import Point, log_improvement, log_inside, log_outside, log_outside_as_coded
from torch import Tensor

from plumbline.methods.localised.as_published import ScriptedImprovement, Tails
from plumbline.methods.localised.locbo import PosteriorImprovement
from plumbline.methods.localised.posterior import CalibratedPosterior

LEAST = math.log(1e-250)
OUTSIDE: dict[Tails, Callable[[Point], float]] = {"equation-29": log_outside, "as-coded": log_outside_as_coded}


def number(x: float) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


def posterior(at: Point) -> CalibratedPosterior[Tensor]:
    return CalibratedPosterior(*map(number, (at.mean, at.variance, at.noise, at.threshold)), at.alpha)


def improvement(at: Point) -> float:
    return posterior(at).expected_improvement(number(at.best)).item()


def parts(at: Point, tails: Tails) -> tuple[float, float]:
    """Return the improvement by labels inside and outside the set, as the scripts compute it."""
    scripted = ScriptedImprovement(at.alpha, tails=tails, extremes="ackley-script")
    numbers = map(number, (at.mean, at.variance, at.noise, at.threshold))
    within, beyond = scripted.parts(*numbers)
    best = number(at.best)
    return within.expected_improvement(best).item(), beyond.expected_improvement(best).item()


@st.composite
def points(draw: st.DrawFn, most: float = 1.0) -> Point:
    """Return a point whose mean is up to thirty standard deviations below the incumbent, or five above."""
    mean, sd = draw(st.floats(-2, 2)), 10 ** draw(st.floats(-2, 0.5))
    share = draw(st.floats(0.01, 0.99) | st.sampled_from([1e-9, 1e-6, 1e-3, 0.999, 0.9999]))
    threshold = draw(st.floats(0.001, most) | st.sampled_from([1e-6, 1e-4, 1 - 1e-5, 1.0]))
    c = draw(st.floats(-30, 5))
    return Point(mean, sd, sd**2 * share / (1 - share), threshold, draw(st.floats(0.01, 0.9)), mean - c * sd)


def agrees(value: float, log: float) -> bool:
    """Whether a value is right in relative terms, where it can be."""
    return value >= 0 if log < LEAST else value > 0 and abs(math.log(value) - log) < 1e-6


@settings(max_examples=150)
@given(points())
def test_it_is_right_however_small(at: Point) -> None:
    assert agrees(improvement(at), log_improvement(at))


@pytest.mark.parametrize("tails", ["equation-29", "as-coded"])
@settings(max_examples=100)
@given(at=points(1.9))
def test_each_part_is_right_however_small(tails: Tails, at: Point) -> None:
    """Thresholds above 1 too, where the tails overlap."""
    within, beyond = parts(at, tails)
    assert agrees(beyond, OUTSIDE[tails](at))
    assert agrees(within, log_inside(at))


def test_the_reference_is_that_of_many_digits() -> None:
    mp = pytest.importorskip("mpmath")
    at = Point(0.3, 0.7, 0.5, 0.15, 0.4, 12.0)
    with mp.workdps(30):
        s, sd, half = mp.sqrt(at.noise), mp.mpf(at.sd), mp.mpf(at.half)

        # mpmath's tolerance is absolute: integrals of about one.
        large = mp.exp(145)

        def gain(f):
            outside = mp.ncdf((f - at.mean - half) / s) + mp.ncdf((at.mean - half - f) / s)
            return large * (f - at.best) * mp.npdf(f, at.mean, sd) * outside

        def mean_gain(y):
            v = s * mp.sqrt(at.gain)
            t = (at.mean + at.gain * y - at.best) / v
            return large**3 * v * (t * mp.ncdf(t) + mp.npdf(t))

        outside = at.alpha / at.threshold / large * mp.quad(gain, mp.linspace(at.best, at.best + 3, 31))
        inside = (1 - at.alpha) / (2 * half) / large**3 * mp.quad(mean_gain, mp.linspace(-half, half, 41))
        assert float(mp.log(outside)) == pytest.approx(log_outside(at), abs=1e-11)
        assert float(mp.log(inside)) == pytest.approx(log_inside(at), abs=1e-11)
    assert improvement(at) == pytest.approx(float(inside + outside), rel=1e-8)


@pytest.mark.parametrize("tails", [None, "equation-29", "as-coded"])
@settings(max_examples=20)
@given(at=points())
def test_it_rises_as_the_incumbent_falls(tails: Tails | None, at: Point) -> None:
    best = torch.linspace(at.mean + 30 * at.sd, at.mean - 5 * at.sd, 200, dtype=torch.float64)
    values = posterior(at).expected_improvement(best)
    if tails is not None:
        numbers = (number(x).expand(200) for x in (at.mean, at.variance, at.noise, at.threshold))
        values = ScriptedImprovement(at.alpha, tails=tails).parts(*numbers)[1].expected_improvement(best)
    assert (values >= 0).all()
    assert (values.diff() > 0)[values[1:] > 1e-250].all()


def slope(log: Callable[[Point], float], at: Point, name: str) -> float:
    """Return the derivative of a log by central differences, by that of f's standard deviation at most."""
    step = 1e-5 * (at.threshold if name == "threshold" else at.sd)
    return (log(at.moved(name, step)) - log(at.moved(name, -step))) / (2 * step)


@settings(max_examples=50)
@given(points(0.99))
def test_slopes_are_those_of_the_log(at: Point) -> None:
    """By hand, by autograd, and by differences of the reference."""
    assume(log_improvement(at) > LEAST and at.threshold < 0.999)
    value, slopes = posterior(at).expected_improvement_with_slopes(number(at.best))
    leaves = [number(x).requires_grad_() for x in (at.mean, at.sd, at.threshold)]
    mean, sd, threshold = leaves
    moving = CalibratedPosterior(mean, sd.square() + at.noise, number(at.noise), threshold, at.alpha)
    automatic = torch.autograd.grad(moving.expected_improvement(number(at.best)), leaves)
    scales = at.sd, at.sd, at.threshold
    for name, by_hand, by_machine, scale in zip(("mean", "sd", "threshold"), slopes(), automatic, scales, strict=True):
        expected = scale * slope(log_improvement, at, name)
        assert (scale * by_hand / value).item() == pytest.approx(expected, rel=1e-5, abs=1e-5)
        assert (scale * by_machine / value).item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


@settings(max_examples=50)
@given(points(0.99))
def test_slopes_of_coded_tails_are_those_of_the_log(at: Point) -> None:
    assume(log_outside_as_coded(at) > LEAST and at.threshold < 0.999)
    mean, sd, threshold = leaves = [number(x).requires_grad_() for x in (at.mean, at.sd, at.threshold)]
    scripted = ScriptedImprovement(at.alpha, tails="as-coded")
    beyond = scripted.parts(mean, sd.square() + at.noise, number(at.noise), threshold)[1]
    value = beyond.expected_improvement(number(at.best))
    found = torch.autograd.grad(value, leaves)
    scales = at.sd, at.sd, at.threshold
    for name, by_machine, scale in zip(("mean", "sd", "threshold"), found, scales, strict=True):
        expected = scale * slope(log_outside_as_coded, at, name)
        assert (scale * by_machine / value).item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def candidates(seed: int) -> list[Point]:
    """Return points of one model, all far below one incumbent."""
    draw = np.random.default_rng(seed)
    means, sds, thresholds = draw.uniform(-1.5, 0.5, 60), draw.uniform(0.4, 0.9, 60), draw.uniform(0.05, 0.9, 60)
    return [Point(m, s, 0.1, t, 0.25, 6.0) for m, s, t in zip(means, sds, thresholds, strict=True)]


def moments(at: list[Point]) -> list[Tensor]:
    rows = [[point.mean, point.variance, point.noise, point.threshold] for point in at]
    return list(torch.tensor(rows, dtype=torch.float64).T)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tails", ["equation-29", "as-coded"])
def test_candidates_far_below_the_incumbent_are_in_order(seed: int, tails: Tails) -> None:
    at = candidates(seed)
    logs = np.array([np.logaddexp(log_inside(point), OUTSIDE[tails](point)) for point in at])
    assert np.median(logs) < math.log(1e-16)
    assert logs.min() > LEAST
    values = ScriptedImprovement(0.25, tails=tails)(*moments(at), number(6.0))
    assert np.log(values.numpy()) == pytest.approx(logs, abs=1e-6)
    assert values.argsort().tolist() == logs.argsort().tolist()


def test_a_batch_is_its_points_and_arrays_are_tensors() -> None:
    at = [replace(point, best=6.0) for point in candidates(7)]
    whole = CalibratedPosterior(*moments(at), 0.25).expected_improvement(number(6.0))
    assert whole.tolist() == pytest.approx([improvement(point) for point in at], rel=1e-12, abs=0.0)
    rows = CalibratedPosterior(*(part.reshape(6, 10) for part in moments(at)), 0.25)
    assert rows.expected_improvement(number(6.0)).flatten().tolist() == pytest.approx(
        whole.tolist(), rel=1e-12, abs=0.0
    )
    mean, variance, noise, threshold = (part.numpy() for part in moments(at))
    form = PosteriorImprovement(0.25)
    sd = np.sqrt(variance - noise)
    values, slopes = form(mean, sd, threshold[:, None], np.full_like(mean, 6.0), noise)
    assert values == pytest.approx(whole.numpy(), rel=1e-9, abs=0.0)
    assert all(np.isfinite(part).all() for part in slopes())
    assert (slopes()[0] > 0).all()

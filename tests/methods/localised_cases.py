"""Logs of integrals of expected improvement, however small: by brute force over values of f and labels."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, logsumexp, ndtri

Array = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)
STEPS = np.linspace(-40.0, 40.0, 81)
GROWING = 10.0 ** np.arange(-6, 2, 0.25)


@dataclass(frozen=True)
class Point:
    """LOCBO's posterior at one point, and what to improve on.

    Attributes:
        mean, sd: of f under the model.
        noise: noise variance.
        threshold: of the set, in (0, 2).
        alpha: mass outside the set.
        best: the incumbent.
    """

    mean: float
    sd: float
    noise: float
    threshold: float
    alpha: float
    best: float

    @property
    def variance(self) -> float:
        return self.sd**2 + self.noise

    @property
    def gain(self) -> float:
        """Slope of the mean of f in a label."""
        return self.sd**2 / self.variance

    @property
    def half(self) -> float:
        """Half the length of the set; negative where its ends are swapped."""
        return float(-ndtri(self.threshold / 2)) * math.sqrt(self.variance)

    def moved(self, name: str, step: float) -> "Point":
        return replace(self, **{name: getattr(self, name) + step})


def log_integral(log: Callable[[Array], Array], low: float, high: float, cuts: Iterable[float]) -> float:
    """Return the log of the integral of `exp(log(x))` from `low` to `high`, smooth between the cuts."""
    inner = [cut for cut in cuts if low < cut < high]
    ends = np.array(sorted({low, high, *inner}))
    half, middle = np.diff(ends) / 2, (ends[1:] + ends[:-1]) / 2
    with np.errstate(divide="ignore"):
        values = log((middle[:, None] + half[:, None] * NODES).ravel())
    return float(logsumexp(values, b=(half[:, None] * WEIGHTS).ravel()))


def log_gaussian(x: Array, mean: float, sd: float) -> Array:
    return -0.5 * ((x - mean) / sd) ** 2 - math.log(sd * math.sqrt(2 * math.pi))


def log_ramp(t: Array) -> Array:
    """Return `log h(t)`, whose terms differ far below zero by a share of `1 / t^2`."""
    left = np.minimum(t, 0.0)
    below = log_gaussian(left, 0.0, 1.0) + np.log1p(left * math.sqrt(math.pi / 2) * erfcx(-left / math.sqrt(2)))
    right = np.maximum(t, 0.0)
    above = np.log(right * np.exp(log_ndtr(right)) + np.exp(log_gaussian(right, 0.0, 1.0)))
    return np.where(t < 0, below, above)


def log_inside(at: Point) -> float:
    """Return the log of the mean gain over a uniform label in the set: over labels, and over f given each at once."""
    v = math.sqrt(at.noise * at.gain)
    # A set of no length is as one of next to none.
    half = max(abs(at.half), 1e-6 * v / at.gain)
    ends = [side * (half - half * step) for side in (-1, 1) for step in GROWING / GROWING[-1]]
    rise = (at.best - at.mean) / at.gain + STEPS * v / at.gain
    log = log_integral(lambda y: log_ramp((at.mean + at.gain * y - at.best) / v), -half, half, [*ends, *rise])
    return math.log((1 - at.alpha) * v / (2 * half)) + log


def log_over_values(at: Point, log_tails: Callable[[Array], Array], sd: float, centres: Iterable[float]) -> float:
    """Return the log of the integral of the gain times a density of f, by its logs.

    Args:
        at: the point.
        log_tails: log density.
        sd: standard deviation of f.
        centres: where the density may bend; each with steps of its own standard deviations.
    """
    top = max(at.best, at.mean + abs(at.half) / at.gain) + 40 * sd
    cuts = [*(at.best + sd * GROWING), *centres]
    return log_integral(lambda f: np.log(f - at.best) + log_tails(f), at.best, top, cuts)


def log_outside(at: Point) -> float:
    """Return the log of the gain by labels outside the set: over f, and over the labels given each at once."""
    s, sd, half = math.sqrt(at.noise), at.sd, at.half

    def log_tails(f: Array) -> Array:
        beyond = np.logaddexp(log_ndtr((f - at.mean - half) / s), log_ndtr((at.mean - half - f) / s))
        return log_gaussian(f, at.mean, sd) + beyond

    given = s * math.sqrt(at.gain)
    centres = [
        at.mean + side * edge + step * width
        for side in (-1, 1)
        for edge, width in ((half, s), (at.gain * half, given), (0.0, sd))
        for step in STEPS
    ]
    return math.log(at.alpha / at.threshold) + log_over_values(at, log_tails, sd, centres)


def log_outside_as_coded(at: Point) -> float:
    """Return the same with the tails of the scripts: `p` and `r` are the squares of what eq. 45 calls A and C."""
    s2 = at.noise * at.gain
    p, r = (at.gain**2 / (2 * s2)) ** 2, (1 / (2 * at.variance)) ** 2
    low, high = at.mean - at.half, at.mean + at.half
    b = (1 - at.gain) * at.mean

    def log_tails(f: Array) -> Array:
        y = (f - b) / at.gain
        peak = -p * r / (p + r) * (y - at.mean) ** 2 + 0.5 * math.log(math.pi / (p + r))
        # `1 - erf(x)` is `2 Phi(-sqrt(2) x)`.
        above, below = (math.sqrt(2 / (p + r)) * ((p + r) * end - p * y - r * at.mean) for end in (high, low))
        factor = math.log(at.alpha / at.threshold / (2 * math.pi * math.sqrt(s2 * at.variance)))
        return factor + peak + np.logaddexp(log_ndtr(-above), log_ndtr(below))

    sd = at.gain * math.sqrt((p + r) / (2 * p * r))
    # Where an argument of Phi is zero, and how fast it moves; and the mean of f given the end of the set.
    bend, width = at.gain * (p + r) / p * at.half, at.gain * math.sqrt((p + r) / 2) / p
    edge, given = at.gain * at.half, at.gain / math.sqrt(2 * p)
    centres = [
        at.mean + side * place + step * its
        for side in (-1, 1)
        for place, its in ((bend, width), (edge, given), (0.0, sd))
        for step in STEPS
    ]
    return log_over_values(at, log_tails, sd, centres)


def log_improvement(at: Point) -> float:
    """Return the log of expected improvement; eq. 30."""
    return float(np.logaddexp(log_inside(at), log_outside(at)))

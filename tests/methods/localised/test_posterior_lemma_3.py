"""LOCBO's Lemma 3 as printed is no density of eq. 29: the numbers of docs/methods/localised-erratum.md."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import pi
from pathlib import Path

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch.special import erf

from plumbline.forecasts import gaussian
from plumbline.methods.localised.posterior import CalibratedPosterior

ERRATUM = (Path(__file__).parents[3] / "docs" / "methods" / "localised-erratum.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Lemma3:
    """Eq. 45 by the letter, each of whose four slips can be repaired on its own.

    Attributes:
        of_value: the variance given a label is that of `f` (the proof), not that of a label (the statement).
        once: A and C are squared once, in their definitions or in the formula, but not in both.
        numerator: `(B - D)^2` multiplies the exponent.
        falling: the error function at L is added.
    """

    of_value: bool = False
    once: bool = False
    numerator: bool = False
    falling: bool = False

    def __call__(self, made: CalibratedPosterior, f: torch.Tensor) -> torch.Tensor:
        mu, variance, noise, lam, alpha = made.mean, made.variance, made.noise, made.threshold, made.alpha
        low, high = mu - made.half_width, mu + made.half_width
        a = made.signal_share
        b = (1 - a) * mu
        given = noise * a + (0.0 if self.of_value else noise)
        squared_a, squared_c = a**2 / (2 * given), 1 / (2 * variance)
        if not self.once:
            squared_a, squared_c = squared_a**2, squared_c**2
        B, D, total = (f - b) / a, mu, squared_a + squared_c
        distance = (B - D) ** 2 if self.numerator else 1 / (B - D) ** 2
        ends = [erf((-squared_a * B - squared_c * D + total * end) / total.sqrt()) for end in (high, low)]
        inside = erf((-f + a * high + b) / (2 * given).sqrt()) - erf((-f + a * low + b) / (2 * given).sqrt())
        outside = (pi / total).sqrt() * torch.exp(-squared_a * squared_c / total * distance)
        outside = outside * (2 - ends[0] + (ends[1] if self.falling else -ends[1]))
        factor = alpha / (4 * pi * lam * (given * variance).sqrt())
        return (1 - alpha) / (2 * a * (high - low)) * inside + factor * outside


Density = Callable[[CalibratedPosterior, torch.Tensor], torch.Tensor]
STATEMENT, PROOF = Lemma3(), Lemma3(of_value=True)
RIGHT: Density = CalibratedPosterior.density
SETTINGS = [(0.0, 1.0, 0.1, 0.1, 0.1), (0.0, 1.0, 0.5, 0.1, 0.1), (0.5, 1.0, 0.01, 0.3, 0.1)]
SETTINGS += [(-1.0, 4.0, 1.0, 0.05, 0.2), (0.0, 1.0, 0.9, 0.5, 0.5)]


def posterior(mean: float, variance: float, noise: float, threshold: float, alpha: float) -> CalibratedPosterior:
    numbers = (torch.tensor(x, dtype=torch.float64) for x in (mean, variance, noise, threshold))
    return CalibratedPosterior(*numbers, alpha)


def at(made: CalibratedPosterior, sds: float) -> torch.Tensor:
    return made.mean + sds * made.variance.sqrt()


def mass(density: Density, made: CalibratedPosterior, sds: float) -> float:
    """Return the integral over that many standard deviations of a label to either side."""
    ends = made.mean + sds * made.variance.sqrt() * torch.linspace(-1, 1, 801, dtype=torch.float64)
    return gaussian.integral(lambda f: density(made, f), ends[:-1], ends[1:]).sum().item()


def brute_force(made: CalibratedPosterior, f: float) -> float:
    """Return eq. 29 by adaptive quadrature over labels."""
    mu, sd, g, half = (x.item() for x in (made.mean, made.variance.sqrt(), made.signal_share, made.half_width))
    given, lam = (made.noise.item() * g) ** 0.5, made.threshold.item()

    def blurred(y: float) -> float:
        return norm.pdf(f, g * y + (1 - g) * mu, given)

    # What the kernel weighs, split at its peak.
    peak = min(max(mu + (f - mu) / g, mu - half), mu + half)
    inside = sum(quad(blurred, *ends, epsabs=1e-13)[0] for ends in ((mu - half, peak), (peak, mu + half)))
    tails = ((mu - 10 * sd, mu - half), (mu + half, mu + 10 * sd))
    outside = sum(quad(lambda y: blurred(y) * norm.pdf(y, mu, sd), *t, epsabs=1e-13, limit=200)[0] for t in tails)
    return (1 - made.alpha) / (2 * half) * inside + made.alpha / lam * outside


def in_other_units(made: CalibratedPosterior, scale: float) -> CalibratedPosterior:
    return replace(made, mean=scale * made.mean, variance=scale**2 * made.variance, noise=scale**2 * made.noise)


def ratio(density: Density, made: CalibratedPosterior, sds: float) -> float:
    """Return ten times a density in units a tenth as large over the density: one for a density."""
    other = in_other_units(made, 10.0)
    return (10 * density(other, at(other, sds)) / density(made, at(made, sds))).item()


def table(heading: str) -> list[list[float]]:
    """Return the numbers of a table of the document."""
    rows = [line for line in ERRATUM.split(f"### {heading}\n", 1)[1].split("\n#", 1)[0].splitlines() if line[:1] == "|"]
    return [[float(cell) for cell in row.strip("|").split("|")] for row in rows[2:]]


@pytest.mark.parametrize("setting", SETTINGS)
class TestAsPrinted:
    def test_the_right_form_is_eq_29(self, setting):
        made = posterior(*setting)
        for sds in (-2.5, -0.7, 0.0, 1.0, 2.0):
            expected = brute_force(made, at(made, sds).item())
            assert RIGHT(made, at(made, sds)).item() == pytest.approx(expected, rel=1e-8)

    def test_each_slip_matters_and_no_other_is_left(self, setting):
        made = posterior(*setting)
        f = torch.stack([at(made, sds) for sds in (-1.5, -0.4, 0.3, 2.0)])
        for repairs in product([False, True], repeat=4):
            # In logarithms, so that far tails do not count for less.
            distance = (Lemma3(*repairs)(made, f) / RIGHT(made, f)).log().abs().max().item()
            if all(repairs):
                assert distance < 1e-6
            else:
                assert distance > 1e-3, repairs

    @pytest.mark.parametrize("printed", [STATEMENT, PROOF])
    def test_its_mass_is_infinite(self, setting, printed):
        """To the right it tends to a positive constant."""
        made = posterior(*setting)
        given = made.noise * (made.signal_share + (0 if printed.of_value else 1))
        total = (made.signal_share**2 / (2 * given)) ** 2 + (1 / (2 * made.variance)) ** 2
        constant = made.alpha / (made.threshold * (pi * given * made.variance * total).sqrt())
        torch.testing.assert_close(printed(made, at(made, 1e5)), constant, rtol=1e-4, atol=0.0)
        growth = (mass(printed, made, 400.0) - mass(printed, made, 200.0)) / (200 * made.variance.sqrt().item())
        assert growth == pytest.approx(constant.item(), rel=0.01)
        # The right form has all its mass within ten standard deviations.
        assert mass(RIGHT, made, 10.0) == pytest.approx(1.0, abs=1e-10)

    @pytest.mark.parametrize("printed", [STATEMENT, PROOF])
    def test_it_depends_on_units(self, setting, printed):
        made = posterior(*setting)
        assert abs(ratio(printed, made, 2.0) - 1) > 0.1
        assert ratio(RIGHT, made, 2.0) == pytest.approx(1.0, rel=1e-10)


def test_the_masses_of_the_document():
    rows = table("Mass")
    assert [tuple(row[:5]) for row in rows] == SETTINGS
    for row in rows:
        made = posterior(*row[:5])
        computed = [mass(d, made, sds) for d in (STATEMENT, PROOF, RIGHT) for sds in (10.0, 20.0)]
        assert row[5:] == pytest.approx(computed, rel=1e-3)


@pytest.mark.slow
def test_the_values_of_the_document():
    rows = table("Values")
    assert [tuple(row[:5]) for row in rows[::2]] == SETTINGS
    for row in rows:
        made = posterior(*row[:5])
        f = at(made, row[5])
        computed = [density(made, f).item() for density in (STATEMENT, PROOF, RIGHT)]
        assert row[6:] == pytest.approx([*computed, brute_force(made, f.item())], rel=1e-3)


def test_the_units_of_the_document():
    rows = table("Units")
    assert [tuple(row[:5]) for row in rows] == SETTINGS
    for row in rows:
        computed = [ratio(density, posterior(*row[:5]), 2.0) for density in (STATEMENT, PROOF, RIGHT)]
        assert row[5:] == pytest.approx(computed, rel=1e-3)

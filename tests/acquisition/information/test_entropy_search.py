"""Entropy searches against draws that are thrown away, integrals, and BoTorch where it has the same."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from botorch.acquisition import qMaxValueEntropy
from exact_gpytorch import gpytorch_model
from processes import made, somewhere
from scipy.integrate import quad
from scipy.stats import norm, truncnorm
from torch import Generator, Tensor

from plumbline.acquisition.information.entropy_search import (
    EntropySearch,
    JointEntropySearch,
    MaxValueEntropySearch,
    PredictiveEntropySearch,
)
from plumbline.acquisition.information.paths import Peaks, peaks, standardised
from plumbline.models.gp.pathwise import draw_paths
from plumbline.models.gp.process import GP
from plumbline.spaces.box import Box
from plumbline.spaces.search import SearchOptions

ALL = [MaxValueEntropySearch, JointEntropySearch, PredictiveEntropySearch]
Search = Callable[[GP, Peaks], EntropySearch]
NOISES = [1e-4, 0.01, 0.2]


def optimum(process: GP, draws: int = 4) -> Peaks:
    paths = draw_paths(process, draws, Generator().manual_seed(0))
    d = process.U.shape[-1]
    box = Box(torch.stack([-2 * torch.ones(d), 3 * torch.ones(d)]).double())
    return peaks(paths, box, SearchOptions(restarts=4, raw_samples=64), 0)


def restandardised(process: GP, *points: Tensor) -> tuple[Tensor, Tensor]:
    """Return means of f and covariances, standardised, at points in the problem's bounds."""
    mean, covariance = process.posterior_moments(torch.cat(points))
    return process.standardisation.outputs(mean), covariance / process.standardisation.scale**2


@pytest.mark.parametrize("search", ALL)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (8, 2), (20, 6)])
def test_gradients_are_slopes(search: Search, n: int, d: int) -> None:
    process = made(n, d, "matern52", 0)
    utility, X = search(process, optimum(process)), somewhere(5, 1, d, seed=3)
    value, gradient = utility.value_and_gradient(X)
    torch.testing.assert_close(value, utility.values(X))
    assert value.shape == (5,)
    assert (gradient != 0).any()
    step = 1e-5 * torch.eye(d, dtype=torch.float64)
    slopes = torch.stack([(utility.values(X + e) - utility.values(X - e)) / 2e-5 for e in step], dim=-1)
    torch.testing.assert_close(gradient.squeeze(-2), slopes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("search", ALL)
def test_units_make_no_difference(search: Search) -> None:
    """What is learnt of an optimum is the same in whatever units the box and the observations are."""
    process = made(8, 2, "matern52", 0)
    standardisation = replace(
        process.standardisation,
        low=process.standardisation.low * 10,
        width=process.standardisation.width * 10,
        scale=3.0,
        location=-5.0,
    )
    other = replace(process, standardisation=standardisation)
    X, drawn = somewhere(5, 1, 2, seed=3), optimum(process)
    moved = Peaks(
        standardisation.points(process.standardisation.inputs(drawn.X)),
        standardisation.observations(process.standardisation.outputs(drawn.f)),
    )
    theirs = search(other, moved)(standardisation.points(process.standardisation.inputs(X)))
    torch.testing.assert_close(search(process, drawn)(X), theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("search", ALL)
def test_a_recalibrated_deviation_is_that_of_a_wider_process(search: Search) -> None:
    process = made(8, 2, "matern52", 0)
    drawn, X = optimum(process), somewhere(5, 1, 2, seed=3)
    wide = replace(process, deviation=2.0)
    absorbed = search(wide.absorbed, drawn)(X)
    torch.testing.assert_close(search(wide, drawn)(X), absorbed)
    assert not torch.allclose(search(process, drawn)(X), absorbed)


@pytest.mark.parametrize("search", ALL)
def test_pending_points_say_less_when_asked_again(search: Search) -> None:
    process = made(8, 2, "matern52", 0)
    utility, X = search(process, optimum(process)), somewhere(5, 1, 2, seed=3)
    before = utility(X)
    best = int(before.argmax())
    utility.set_X_pending(X[best])
    assert utility(X)[best] < before[best]
    utility.set_X_pending(None)
    torch.testing.assert_close(utility(X), before)


def entropy_lost(mean: float, sd: float, noise: float, bound: float) -> float:
    """Return how much less the entropy of an observation is where f is below a bound, by adaptive quadrature."""
    wide = (sd**2 + noise) ** 0.5
    left = (sd**2 * noise / wide**2) ** 0.5
    chance = norm.logcdf((bound - mean) / sd)

    def part(z: float) -> float:
        log_density = norm.logpdf(z) + norm.logcdf((bound - mean - sd**2 / wide * z) / left) - chance
        return -math.exp(log_density) * log_density

    return norm.entropy() - quad(part, -9, 9, points=[(bound - mean) / wide], limit=400)[0]


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_max_value_entropy_is_an_integral(noise: float) -> None:
    process = made(8, 2, "matern52", 0, noise=noise)
    X, drawn = somewhere(6, 1, 2, seed=3), optimum(process)
    maxima = standardised(process, drawn).f.tolist()
    for x, found in zip(X, MaxValueEntropySearch(process, drawn)(X).tolist(), strict=True):
        mean, variance = restandardised(process, x)
        moments = float(mean), float(variance) ** 0.5, noise
        expected = sum(entropy_lost(*moments, bound) for bound in maxima) / len(maxima)
        assert found == pytest.approx(expected, rel=0.02, abs=2e-3)


def test_max_value_entropy_is_about_botorchs() -> None:
    """Theirs is a mean over draws of an observation, given the same maxima."""
    process = made(8, 2, "matern52", 0, noise=0.05)
    X, drawn = somewhere(30, 1, 2, seed=3), optimum(process, 8)

    class Given(qMaxValueEntropy):
        def _sample_max_values(self, num_samples: int, X_pending: Tensor | None = None) -> None:
            self.posterior_max_values = drawn.f.unsqueeze(-1)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        theirs = Given(gpytorch_model(process), X.squeeze(-2), num_mv_samples=8, num_y_samples=1024)(X).detach()
    torch.testing.assert_close(MaxValueEntropySearch(process, drawn)(X), theirs, rtol=0.1, atol=0.02)


@pytest.mark.parametrize("noise", NOISES)
def test_joint_entropy_is_of_the_cut_law_given_each_optimum(noise: float) -> None:
    process = made(8, 2, "matern52", 0, noise=noise)
    X, drawn = somewhere(6, 1, 2, seed=3), optimum(process)
    values = standardised(process, drawn).f
    for x, found in zip(X, JointEntropySearch(process, drawn)(X).tolist(), strict=True):
        lost = []
        for place, value in zip(drawn.X, values, strict=True):
            mean, covariance = restandardised(process, x, place.unsqueeze(0))
            gain = covariance[0, 1] / covariance[1, 1]
            given, left = mean[0] + gain * (value - mean[1]), covariance[0, 0] - gain * covariance[0, 1]
            share = truncnorm.var(-float("inf"), float((value - given) / left.sqrt()))
            lost.append(0.5 * ((covariance[0, 0] + noise) / (share * left + noise)).log())
        assert found == pytest.approx(float(torch.stack(lost).mean()), rel=1e-5)


def rejected(process: GP, drawn: Peaks, x: Tensor, noise: float) -> float:
    """Return the information of draws whose greatest value among the data, `x` and an optimum is at the optimum."""
    data, lost = process.standardisation.points(process.U), []
    for place in drawn.X:
        mean, covariance = restandardised(process, data, x, place.unsqueeze(0))
        root = torch.linalg.cholesky(covariance + 1e-10 * torch.eye(len(mean)).double())
        z = torch.randn(60_000, len(mean), generator=Generator().manual_seed(1), dtype=torch.float64)
        f = mean + z @ root.T
        left = f[(f[:, -1:] >= f[:, :-1]).all(dim=1), -2]
        assert len(left) > 500
        lost.append(0.5 * ((covariance[-2, -2] + noise) / (left.var() + noise)).log())
    return float(torch.stack(lost).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("n", "greatest", "average"), [(8, 0.12, 0.02), (20, 0.02, 0.005)])
@pytest.mark.parametrize("noise", NOISES)
def test_predictive_entropy_is_about_that_of_draws_whose_optimum_is_there(
    n: int, greatest: float, average: float, noise: float
) -> None:
    """With few data expectation propagation is off at some points by more than the information is on average."""
    errors = []
    for seed in range(4):
        process = made(n, 2, "matern52", seed, noise=noise)
        X, drawn = somewhere(6, 1, 2, seed=3), optimum(process)
        found = PredictiveEntropySearch(process, drawn)(X).tolist()
        errors += [abs(ours - rejected(process, drawn, x, noise)) for x, ours in zip(X, found, strict=True)]
    assert max(errors) < greatest
    assert sum(errors) / len(errors) < average


def test_where_the_optimum_was_drawn_nothing_is_no_number() -> None:
    process = made(8, 2, "matern52", 0)
    drawn = optimum(process)
    there = torch.cat([drawn.X, process.standardisation.points(process.U)]).unsqueeze(-2)
    for search in ALL:
        value, gradient = search(process, drawn).value_and_gradient(there)
        assert torch.isfinite(value).all()
        assert torch.isfinite(gradient).all()

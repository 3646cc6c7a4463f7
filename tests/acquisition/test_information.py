"""Entropy searches: what BoTorch is given, and what must be so whatever it makes of it."""

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from scipy.stats import norm
from test_analytic import made, somewhere
from torch import Generator, Tensor

from plumbline.acquisition.information import (
    InUnitCube,
    degenerate,
    informed,
    joint_entropy,
    max_value_entropy,
    predictive_entropy,
    standardised,
)
from plumbline.acquisition.paths import Peaks, peaks
from plumbline.models.exact_process import ExactProcess
from plumbline.models.pathwise import draw_paths
from plumbline.spaces.box import Box
from plumbline.spaces.search import SearchOptions

BOUNDS = torch.stack([-2 * torch.ones(2), 3 * torch.ones(2)]).double()
ALL = {"mes": max_value_entropy, "jes": joint_entropy, "pes": predictive_entropy}


def optimum(process: ExactProcess, draws: int = 4) -> Peaks:
    paths = draw_paths(process, draws, Generator().manual_seed(0))
    return peaks(paths, Box(BOUNDS), SearchOptions(restarts=4, raw_samples=64), 0)


def seeded(process: ExactProcess, drawn: Peaks, name: str, samples: int = 64):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return informed(process, drawn, ALL[name], samples)


@pytest.mark.parametrize("name", ALL)
def test_values_and_gradients_are_numbers(name: str) -> None:
    process = made(8, 2, "matern52", 0)
    X = somewhere(5, 1, 2, seed=3).requires_grad_()
    value = seeded(process, optimum(process), name)(X)
    assert value.shape == (5,)
    (slope,) = torch.autograd.grad(value.sum(), X)
    assert torch.isfinite(value).all()
    assert torch.isfinite(slope).all()
    assert (slope != 0).any()


def test_a_gradient_that_is_no_number_ends_its_own_climb_alone() -> None:
    class Rooted(AcquisitionFunction):
        def forward(self, X: Tensor) -> Tensor:
            return X.sqrt().sum((-2, -1))

    process = made(8, 2, "matern52", 0)
    utility = InUnitCube(process, Rooted(process.model))
    U = torch.tensor([[[0.25, 0.25]], [[0.25, 0.0]], [[0.25, 0.25]]], dtype=torch.float64)
    X = process.units.points(U).requires_grad_()
    (slope,) = torch.autograd.grad(utility(X).sum(), X)
    torch.testing.assert_close(5 * slope.sum((-2, -1)), torch.tensor([2.0, 0.0, 2.0], dtype=torch.float64))
    assert utility.lost == 1


@pytest.mark.parametrize("name", ALL)
def test_units_make_no_difference(name: str) -> None:
    """What is learnt of an optimum is the same in whatever units the box and the observations are."""
    process = made(8, 2, "matern52", 0)
    units = replace(process.units, low=process.units.low * 10, width=process.units.width * 10, scale=3.0, location=-5.0)
    other = replace(process, units=units)
    X, drawn = somewhere(5, 1, 2, seed=3), optimum(process)
    moved = Peaks(units.points(process.units.inputs(drawn.X)), units.observations(process.units.outputs(drawn.f)))
    theirs = seeded(other, moved, name)(units.points(process.units.inputs(X)))
    torch.testing.assert_close(seeded(process, drawn, name)(X).detach(), theirs.detach(), rtol=1e-6, atol=1e-6)


def wang_and_jegelka(mean: Tensor, sd: Tensor, maxima: Tensor) -> Tensor:
    """Return the information about the greatest value in closed form, without noise: `b`."""
    gamma = ((maxima - mean.unsqueeze(-1)) / sd.unsqueeze(-1)).numpy()
    below = norm.cdf(gamma)
    return torch.from_numpy((gamma * norm.pdf(gamma) / (2 * below) - norm.logcdf(gamma)).mean(-1))


def test_without_noise_max_value_entropy_has_a_closed_form() -> None:
    process = made(8, 2, "matern52", 0, noise=1e-4)
    X, drawn = somewhere(20, 1, 2, seed=3), optimum(process, 8)
    seen, maxima = process.at_points(X.squeeze(-2)), standardised(process, drawn).f
    found = seeded(process, drawn, "mes", 1024)(X).detach()
    torch.testing.assert_close(found, wang_and_jegelka(seen.location, seen.spread, maxima), rtol=0.15, atol=0.05)


def test_joint_entropy_is_conditioned_on_each_optimum() -> None:
    process = made(8, 2, "matern52", 0)
    drawn = optimum(process)
    utility = seeded(process, drawn, "jes")
    assert isinstance(utility.inner, qJointEntropySearch)
    expected = standardised(process, drawn)
    U = expected.X.unsqueeze(-2)
    means = utility.inner.conditional_model.posterior(U).mean.flatten()
    before = process.at_points(drawn.X).location
    assert ((means - expected.f).abs() < 0.2 * (before - expected.f).abs().max()).all()


@pytest.mark.parametrize("name", ALL)
def test_a_recalibrated_deviation_counts(name: str) -> None:
    process = made(8, 2, "matern52", 0)
    drawn, X = optimum(process), somewhere(5, 1, 2, seed=3)
    plain, wide = (seeded(one, drawn, name)(X) for one in (process, replace(process, deviation=2.0)))
    assert not torch.allclose(plain, wide)


@pytest.mark.parametrize("name", ALL)
def test_pending_points_tell_something(name: str) -> None:
    process = made(8, 2, "matern52", 0)
    utility, X = seeded(process, optimum(process), name), somewhere(5, 1, 2, seed=3)
    before = utility(X)
    utility.set_X_pending(X[0])
    assert not torch.allclose(utility(X), before)
    utility.set_X_pending(None)
    torch.testing.assert_close(utility(X), before)


def test_draws_that_are_alike_or_no_numbers_say_nothing() -> None:
    draws = torch.rand(5, 3, generator=Generator().manual_seed(0), dtype=torch.float64)
    assert not degenerate(draws)
    assert degenerate(draws[:1].expand(5, 3))
    assert degenerate(draws[:1] + 1e-8 * draws)
    draws[2, 1] = torch.nan
    assert degenerate(draws)

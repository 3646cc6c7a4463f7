"""Numbers of LOCBO's lemmas, worked out by hand."""

import math

import pytest
import torch

from plumbline.methods.localised.thresholds import CoverageBound, OnlineOptions, kernel_lipschitz

BOUNDS = torch.tensor([[-3.0, -4.0], [1.0, 2.0]], dtype=torch.float64)


def test_beta_term_by_term() -> None:
    options = OnlineOptions(eta0=0.5, decay=0.0, forgetting=0.1, kappa=2.0, lengthscale=4.0)
    bound = CoverageBound.of(options, 0.2, BOUNDS)
    assert bound.diameter == 5.0
    rho = 2.0 * math.sqrt(2 / math.e) / 4.0
    assert bound.rho == pytest.approx(rho)
    assert bound.beta == pytest.approx(2 / 0.5 + 4 * math.sqrt(rho * 2.0 * 5.0) / (0.5 * 0.1) + 2 * (2 * 2.0 + 1))
    assert bound.of_observations(25) == pytest.approx(0.2 + bound.beta / 5 + 2.0)
    assert bound.of_function(25) == pytest.approx(2 * bound.of_observations(25))


def test_no_kernel_leaves_the_bound_of_online_conformal_prediction() -> None:
    bound = CoverageBound.of(OnlineOptions(eta0=0.5, decay=0.0, kappa=0.0), 0.2, BOUNDS)
    assert bound.beta == pytest.approx(2 / 0.5 + 2)
    assert bound.of_observations(10**10) == pytest.approx(0.2, abs=1e-4)


def test_a_flat_kernel_has_no_slope() -> None:
    assert kernel_lipschitz(5.0, math.inf) == 0.0


def test_a_localised_threshold_that_forgets_nothing_has_no_bound() -> None:
    options = OnlineOptions(forgetting=0.0, kappa=1.0, lengthscale=1.0)
    assert CoverageBound.of(options, 0.2, BOUNDS).beta == math.inf


@pytest.mark.parametrize("kappa", [0.0, 2.0])
def test_a_threshold_that_never_learns_has_no_bound(kappa: float) -> None:
    assert CoverageBound.of(OnlineOptions(eta0=0.0, kappa=kappa, lengthscale=1.0), 0.2, BOUNDS).beta == math.inf


@pytest.mark.parametrize(("kappa", "lengthscale"), [(1.0, 1.0), (5.0, 0.3)])
def test_the_lipschitz_constant_is_the_steepest_slope(kappa: float, lengthscale: float) -> None:
    z = torch.linspace(0, 5 * lengthscale, 200_001, dtype=torch.float64)
    slopes = (kappa * torch.exp(-((z / lengthscale) ** 2))).diff().abs() / z.diff()
    assert kernel_lipschitz(kappa, lengthscale) == pytest.approx(slopes.max().item(), rel=1e-4)

"""Divergences against integrals."""

import pytest
import torch
from torch.special import log_ndtr, ndtr

from plumbline.acquisition.information.divergence import divergence_of_sign, divergence_of_value

Z = torch.linspace(-9, 9, 200_001, dtype=torch.float64)
DENSITY = torch.exp(-Z.square() / 2) / (2 * torch.pi) ** 0.5 * (Z[1] - Z[0])


@pytest.mark.parametrize("mean", [-3.0, -0.5, 0.0, 1.0, 4.0])
@pytest.mark.parametrize("r2", [1e-6, 0.1, 0.499, 0.501, 0.9, 0.999])
def test_that_of_a_sign_is_the_integral(r2: float, mean: float) -> None:
    u = (mean + r2**0.5 * Z) / (1 - r2) ** 0.5
    log_ratio = log_ndtr(u) - log_ndtr(torch.tensor(mean).double())
    expected = (DENSITY * log_ratio.exp() * log_ratio).sum()
    found = divergence_of_sign(torch.tensor([[r2]]).double(), torch.tensor([mean]).double())
    assert found.item() == pytest.approx(expected.item(), rel=2e-3, abs=1e-7)


@pytest.mark.parametrize("mean", [-2.0, 0.0, 3.0])
def test_that_of_a_sign_that_is_seen_is_that_of_an_event(mean: float) -> None:
    chance = ndtr(torch.tensor(mean).double())
    found = divergence_of_sign(torch.tensor([[1.0]]).double(), torch.tensor([mean]).double())
    assert found.item() == pytest.approx(-chance.log().item(), rel=1e-4)


@pytest.mark.parametrize("away", [-2.0, 0.0, 1.0])
@pytest.mark.parametrize("r2", [0.0, 0.3, 0.95])
def test_that_of_a_value_is_that_of_two_normal_laws(r2: float, away: float) -> None:
    after = torch.distributions.Normal(r2**0.5 * away, (1 - r2) ** 0.5)
    expected = torch.distributions.kl_divergence(after, torch.distributions.Normal(0.0, 1.0))
    found = divergence_of_value(torch.tensor(r2).double(), torch.tensor(away).double())
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)


def test_what_is_not_related_says_nothing() -> None:
    none = torch.zeros(1, 3).double()
    away = torch.tensor([-4.0, 0.0, 4.0]).double()
    assert divergence_of_sign(none, away).abs().max() < 1e-9
    assert divergence_of_value(none, away).abs().max() == 0

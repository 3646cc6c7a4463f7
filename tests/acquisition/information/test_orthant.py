"""Expectation propagation against draws that are thrown away where they are not positive."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import truncnorm
from torch import Generator, Tensor

from plumbline.acquisition.information.orthant import correction, cut, positive_sites


def law(n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = Generator().manual_seed(seed)
    A = torch.randn(n, n, generator=generator, dtype=torch.float64)
    return torch.randn(n, generator=generator, dtype=torch.float64), A @ A.T + 0.3 * torch.eye(n).double()


def positive(mean: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and covariances of the positive ones, as expectation propagation has them."""
    sites = positive_sites(mean.unsqueeze(0), covariance.unsqueeze(0))
    w, M = (part.squeeze(0) for part in correction(mean.unsqueeze(0), covariance.unsqueeze(0), sites))
    return mean + covariance @ w, covariance - covariance @ M @ covariance


@given(bound=st.floats(-30.0, 30.0))
def test_a_cut_normal_variable_is_scipys(bound: float) -> None:
    mean, variance = cut(torch.tensor(bound).double())
    expected = truncnorm(-bound, float("inf"))
    assert mean.item() == pytest.approx(expected.mean(), rel=1e-6, abs=1e-12)
    assert variance.item() == pytest.approx(expected.var(), rel=1e-4)


@settings(max_examples=25)
@given(mean=st.floats(-3.0, 3.0), variance=st.floats(0.01, 9.0))
def test_one_variable_is_cut_exactly(mean: float, variance: float) -> None:
    m, S = positive(torch.tensor([mean]).double(), torch.tensor([[variance]]).double())
    sd = variance**0.5
    expected = truncnorm(-mean / sd, float("inf"), loc=mean, scale=sd)
    assert m.item() == pytest.approx(expected.mean(), rel=1e-6)
    assert S.item() == pytest.approx(expected.var(), rel=1e-5)


@pytest.mark.parametrize(("n", "seed"), [(2, 1), (2, 4), (3, 2), (4, 3)])
def test_several_variables_are_as_their_positive_draws(n: int, seed: int) -> None:
    mean, covariance = law(n, seed)
    z = torch.randn(2_000_000, n, generator=Generator().manual_seed(9), dtype=torch.float64)
    draws = mean + z @ torch.linalg.cholesky(covariance).T
    draws = draws[(draws > 0).all(dim=1)]
    assert len(draws) > 10_000
    m, S = positive(mean, covariance)
    deviations = S.diagonal().sqrt()
    assert ((m - draws.mean(0)).abs() < 0.05 * deviations).all()
    assert ((S - torch.cov(draws.T)).abs() < 0.1 * deviations.outer(deviations)).all()


def test_laws_of_a_batch_have_nothing_to_do_with_each_other() -> None:
    laws = [law(3, seed) for seed in range(4)]
    means, covariances = (torch.stack(part) for part in zip(*laws, strict=True))
    together = positive_sites(means, covariances)
    for i in range(4):
        alone = positive_sites(means[i : i + 1], covariances[i : i + 1])
        torch.testing.assert_close(together.tau[i], alone.tau[0], rtol=1e-2, atol=1e-3)


def test_what_is_positive_anyway_stays_as_it_is() -> None:
    _, covariance = law(3, 0)
    mean = 20 * covariance.diagonal().sqrt()
    m, S = positive(mean, covariance)
    torch.testing.assert_close(m, mean)
    torch.testing.assert_close(S, covariance)


def test_variables_that_are_nearly_one_are_cut_too_often() -> None:
    """As in all of expectation propagation; the mean is not far off for that, and nothing is infinite or negative."""
    covariance = torch.ones(40, 40).double() + 1e-9 * torch.eye(40).double()
    m, S = positive(torch.full((40,), -1.0).double(), covariance)
    expected = truncnorm(1.0, float("inf"), loc=-1.0)
    torch.testing.assert_close(m, torch.full_like(m, expected.mean()), rtol=0.15, atol=0.0)
    assert (S.diagonal() > 0).all()
    assert (S.diagonal() < expected.var()).all()


def test_a_variable_that_is_certain_makes_nothing_infinite() -> None:
    mean, covariance = law(3, 0)
    covariance[0], covariance[:, 0] = 0.0, 0.0
    m, S = positive(mean.abs(), covariance)
    assert torch.isfinite(m).all()
    assert torch.isfinite(S).all()

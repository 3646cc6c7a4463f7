"""Priors against scipy's densities, and ways to write positive numbers against finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.models.gp.priors import (
    Between,
    Bounded,
    Gamma,
    Hyperparameter,
    Logarithm,
    LogNormal,
    Positive,
    Prior,
    Softplus,
)

PRIORS = [
    (LogNormal(-4.0, 1.0), stats.lognorm(s=1.0, scale=np.exp(-4.0))),
    (LogNormal(1.7, 1.73), stats.lognorm(s=1.73, scale=np.exp(1.7))),
    (Gamma(3, 6.0), stats.gamma(3, scale=1 / 6)),
    (Gamma(2, 0.15), stats.gamma(2, scale=1 / 0.15)),
]
WRITTEN = [Bounded(0.025), Softplus(), Softplus(1e-6), Between(5e-4, 0.5), Logarithm(0.2, 5.0)]


def slope(of, x: float) -> float:
    h = 1e-6 * max(abs(x), 1e-3)
    return float((of(np.array([x + h])) - of(np.array([x - h])))[0] / (2 * h))


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
@pytest.mark.parametrize("x", [0.01, 0.3, 1.0, 7.0])
def test_densities_are_scipys(prior: Prior, reference, x: float) -> None:
    density, score = prior.log_density(np.array([x]))
    assert density[0] == pytest.approx(reference.logpdf(x), rel=1e-12)
    assert score[0] == pytest.approx(slope(lambda at: prior.log_density(at)[0], x), rel=1e-6)


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
def test_draws_follow_the_density(prior: Prior, reference) -> None:
    draws = prior.draw(2000, np.random.default_rng(0))
    assert stats.kstest(draws, reference.cdf).pvalue > 1e-3


def test_the_mode_of_a_log_normal_is_where_its_density_is_greatest() -> None:
    prior = LogNormal(0.4, 0.7)
    assert prior.log_density(np.array([prior.mode]))[1][0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("written", WRITTEN)
@given(raw=st.floats(0.03, 20.0))
def test_a_positive_number_is_written_and_read(written: Positive, raw: float) -> None:
    value, derivative = written.value(np.array([raw]))
    assert value[0] > 0
    assert derivative[0] == pytest.approx(slope(lambda at: written.value(at)[0], raw), rel=1e-4, abs=1e-8)
    again = written.value(written.raw(value))[0]
    least, greatest = written.range
    if least <= raw <= greatest:
        np.testing.assert_allclose(again, value, rtol=1e-6)


def test_numbers_outside_of_what_can_be_written_become_the_nearest_that_can() -> None:
    assert Bounded(0.1).raw(np.array([0.01]))[0] == 0.1
    low, high = Between(1.0, 2.0).value(Between(1.0, 2.0).raw(np.array([0.0, 9.0])))[0]
    assert (low, high) == (pytest.approx(1.0), pytest.approx(2.0))
    low, high = np.exp(Logarithm(0.5, 4.0).raw(np.array([0.1, 9.0])))
    assert (low, high) == (pytest.approx(0.5), pytest.approx(4.0))


@pytest.mark.parametrize("prior", [None, Gamma(3, 6.0)])
def test_another_start_is_another(prior: Prior | None) -> None:
    hyperparameter = Hyperparameter(3, Softplus(), 0.7, prior)
    generator = np.random.default_rng(1)
    starts = [hyperparameter.start(), *(hyperparameter.another_start(generator) for _ in range(2))]
    assert all(len(start) == 3 for start in starts)
    assert not np.allclose(starts[0], starts[1])
    assert not np.allclose(starts[1], starts[2])

"""Priors against scipy's densities, and starts of hyperparameters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.models.gp.priors import Gamma, Hyperparameter, LogNormal, Prior

PRIORS = [
    (LogNormal(-4.0, 1.0), stats.lognorm(s=1.0, scale=np.exp(-4.0))),
    (LogNormal(1.7, 1.73), stats.lognorm(s=1.73, scale=np.exp(1.7))),
    (Gamma(3, 6.0), stats.gamma(3, scale=1 / 6)),
    (Gamma(2, 0.15), stats.gamma(2, scale=1 / 0.15)),
]


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
@given(log=st.floats(-6.0, 3.0))
def test_densities_are_scipys_and_slopes_those_in_the_logarithm(prior: Prior, reference, log: float) -> None:
    density, slope = prior.log_density(np.array([log]))
    assert density[0] == pytest.approx(reference.logpdf(np.exp(log)), rel=1e-10, abs=1e-12)
    above, below = (prior.log_density(np.array([log + h]))[0][0] for h in (1e-6, -1e-6))
    assert slope[0] == pytest.approx((above - below) / 2e-6, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
def test_draws_follow_the_density(prior: Prior, reference) -> None:
    draws = prior.draw(2000, np.random.default_rng(0))
    assert stats.kstest(draws, reference.cdf).pvalue > 1e-3


@pytest.mark.parametrize("prior", [LogNormal(0.4, 0.7), Gamma(3, 6.0)])
def test_the_density_is_greatest_at_the_mode(prior: LogNormal | Gamma) -> None:
    around = np.log(prior.mode * np.array([0.999, 1.0, 1.001]))
    assert prior.log_density(around)[0].argmax() == 1


@pytest.mark.parametrize("prior", [None, Gamma(3, 6.0)])
def test_another_start_is_another(prior: Prior | None) -> None:
    hyperparameter = Hyperparameter(3, 0.7, prior)
    generator = np.random.default_rng(1)
    starts = [hyperparameter.start(), *(hyperparameter.another_start(generator) for _ in range(2))]
    assert np.exp(starts[0]) == pytest.approx(0.7)
    assert all(len(start) == 3 for start in starts)
    assert not np.allclose(starts[0], starts[1])
    assert not np.allclose(starts[1], starts[2])


@given(low=st.floats(1e-6, 1.0), width=st.floats(1.0, 100.0), initial=st.floats(1e-9, 1e6))
def test_starts_are_in_the_bounds(low: float, width: float, initial: float) -> None:
    hyperparameter = Hyperparameter(2, initial, None, low, low * width)
    for start in (hyperparameter.start(), hyperparameter.another_start(np.random.default_rng(0))):
        assert (np.log(low) <= start).all()
        assert (start <= np.log(low * width)).all()

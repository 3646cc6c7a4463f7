import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from plumbline.forecasts.predictive import GaussianPredictive, JointGaussianPredictive

means = st.floats(-50, 50)
sds = st.floats(0.05, 20)
scores = st.floats(-6, 6)


def forecast(mean: float, sd: float) -> GaussianPredictive:
    return GaussianPredictive(one(mean), one(sd))


def one(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


@given(means, sds, scores)
@settings(max_examples=50)
def test_cdf_and_density_are_scipys(mean: float, sd: float, z: float) -> None:
    y = mean + z * sd
    predictive = forecast(mean, sd)
    assert predictive.cdf(one(y)).item() == pytest.approx(norm.cdf(y, mean, sd), rel=1e-9)
    assert predictive.log_prob(one(y)).item() == pytest.approx(norm.logpdf(y, mean, sd), rel=1e-9)


@pytest.mark.slow
@given(means, sds, scores)
@settings(max_examples=25)
def test_crps_is_the_integral_that_defines_it(mean: float, sd: float, z: float) -> None:
    below, _ = quad(lambda t: norm.cdf(t) ** 2, -40, z, epsabs=1e-12)
    above, _ = quad(lambda t: norm.sf(t) ** 2, z, 40, epsabs=1e-12)
    found = forecast(mean, sd).crps(one(mean + z * sd)).item()
    assert found == pytest.approx(sd * (below + above), rel=1e-7, abs=1e-9)


@given(means, sds, scores, st.floats(0.001, 0.999))
@settings(max_examples=50)
def test_intervals_are_central_quantiles(mean: float, sd: float, z: float, alpha: float) -> None:
    low, high = norm.interval(1 - alpha, mean, sd)
    y = mean + z * sd
    predictive = forecast(mean, sd)
    assert predictive.width(alpha).item() == pytest.approx(high - low, rel=1e-8)
    if min(abs(y - low), abs(y - high)) > 1e-7 * sd:
        assert predictive.covers(one(y), alpha).item() == (low <= y <= high)


def test_coverage_is_the_level() -> None:
    y = torch.from_numpy(norm.ppf((np.arange(20_000) + 0.5) / 20_000) * 3 - 1)
    predictive = GaussianPredictive(torch.full_like(y, -1.0), torch.full_like(y, 3.0))
    for alpha in (0.05, 0.2, 0.5):
        assert predictive.covers(y, alpha).double().mean().item() == pytest.approx(1 - alpha, abs=1e-3)


def test_shapes_are_those_of_the_points() -> None:
    predictive = GaussianPredictive(torch.zeros(4).double(), torch.arange(1.0, 5.0).double())
    y = torch.ones(4, dtype=torch.float64)
    for result in (predictive.cdf(y), predictive.log_prob(y), predictive.crps(y), predictive.covers(y, 0.1)):
        assert result.shape == (4,)
    assert predictive.width(0.1).shape == (4,)
    assert (predictive.width(0.1).diff() > 0).all()


@pytest.mark.parametrize("m", [1, 2, 3])
def test_joint_sets_hold_their_level_of_draws(m: int) -> None:
    n = 20_000
    generator = torch.Generator().manual_seed(m)
    mean, sd = torch.arange(1.0, m + 1).double().expand(n, m), torch.linspace(0.5, 3.0, m).double().expand(n, m)
    y = mean + sd * torch.randn(n, m, generator=generator, dtype=torch.float64)
    for alpha in (0.05, 0.2, 0.5):
        share = JointGaussianPredictive(mean, sd).covers(y, alpha).mean().item()
        assert share == pytest.approx(1 - alpha, abs=3 * (alpha * (1 - alpha) / n) ** 0.5)


@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_the_joint_sets_volume_is_that_on_a_grid(alpha: float) -> None:
    mean, sd = torch.tensor([3.0, -1.0]).double(), torch.tensor([0.5, 4.0]).double()
    axis = torch.linspace(-4, 4, 1_001, dtype=torch.float64)
    y = mean + sd * torch.cartesian_prod(axis, axis)
    many = JointGaussianPredictive(mean.expand_as(y), sd.expand_as(y))
    area = many.covers(y, alpha).mean().item() * 64 * sd.prod().item()
    found = JointGaussianPredictive(mean[None], sd[None]).width(alpha)
    assert found.shape == (1,)
    assert found.item() == pytest.approx(area, rel=1e-2)


def test_the_joint_set_of_one_outcome_is_the_central_interval() -> None:
    mean, sd = one(2.0), one(3.0)
    joint, plain = JointGaussianPredictive(mean[:, None], sd[:, None]), GaussianPredictive(mean, sd)
    assert joint.width(0.1).item() == pytest.approx(plain.width(0.1).item())
    torch.testing.assert_close(joint.log_prob(one(5.0)[:, None]), plain.log_prob(one(5.0)))


def test_the_joint_density_is_the_product() -> None:
    mean, sd = torch.tensor([[3.0, -1.0]]).double(), torch.tensor([[0.5, 4.0]]).double()
    found = JointGaussianPredictive(mean, sd).log_prob(torch.zeros_like(mean)).item()
    assert found == pytest.approx(norm.logpdf(0, 3, 0.5) + norm.logpdf(0, -1, 4))

"""The marginal likelihood and its gradient against a dense Gaussian."""

import math

import numpy as np
import pytest
import torch
from exact_cases import standardised
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal

from plumbline.models.algebra import CORRELATIONS, Kernel, squared_distances
from plumbline.models.gp import likelihood
from plumbline.models.gp.likelihood import Covariances, DataSets

KERNELS: list[Kernel] = ["matern52", "rbf", "matern32", "matern12"]
SEEDS = range(5)


def some(d: int, noise: np.ndarray, lengthscale: float = 0.4) -> Covariances:
    """Hyperparameters of one data set; `noise`: `n`, or `1`."""
    return Covariances(noise[None], np.array([[1.3]]), (lengthscale * (1 + np.arange(d) / d))[None])


def dense(data: DataSets, constant: float, at: Covariances, kernel: Kernel) -> tuple[float, list[Tensor]]:
    """The same by torch's own Gaussian, with its derivatives in noise, outputscale and lengthscales."""
    X, y = torch.from_numpy(data.X[0]), torch.from_numpy(data.y[0])
    leaves = [torch.tensor(part[0], requires_grad=True) for part in at]
    noise, outputscale, lengthscale = leaves
    r2 = ((X.unsqueeze(1) - X.unsqueeze(0)) / lengthscale).square().sum(-1)
    if kernel == "rbf":
        correlation = torch.exp(-0.5 * r2)
    else:
        order = {"matern12": 1, "matern32": 3, "matern52": 5}[kernel]
        r = torch.sqrt(order * r2 + 1e-300)
        polynomial = {"matern12": 1.0, "matern32": 1 + r, "matern52": 1 + r + r.square() / 3}[kernel]
        correlation = polynomial * torch.exp(-r)
    covariance = outputscale * correlation + torch.diag(noise.expand(len(y)))
    value = MultivariateNormal(torch.full_like(y, constant), covariance).log_prob(y)
    return value.item(), list(torch.autograd.grad(value, leaves))


@settings(max_examples=60)
@given(
    n=st.integers(1, 25),
    d=st.sampled_from([1, 2, 5, 30]),
    kernel=st.sampled_from(KERNELS),
    ard=st.booleans(),
    noise=st.sampled_from([1e-4, 5e-4, 0.1, 0.5]),
    known=st.booleans(),
    doubles=st.booleans(),
    lengthscale=st.sampled_from([0.025, 0.3, 3.0]),
    constant=st.sampled_from([None, 0.0, 0.2]),
    seed=st.integers(0, 1000),
)
def test_value_and_gradient_are_those_of_a_dense_gaussian(
    n: int,
    d: int,
    kernel: Kernel,
    ard: bool,
    noise: float,
    known: bool,
    doubles: bool,
    lengthscale: float,
    constant: float | None,
    seed: int,
) -> None:
    data = standardised(n, d, seed)
    X = data.X.copy()
    if doubles and n > 1 and kernel in ("matern52", "rbf"):
        X[:, -1] = X[:, 0]
        X[:, 0] += 1e-9
    data = DataSets(X, data.y, constant)
    at = some(d if ard else 1, np.full(n if known else 1, noise), lengthscale)
    (value,), (mean,), gradient = data.log_likelihoods(at, kernel)
    assert constant is None or mean == constant
    expected, slopes = dense(data, float(mean), at, kernel)
    # Observations that contradict each other at one place make the noise all that matters.
    steepest = max(float(slope.abs().max()) for slope in slopes)
    assert value == pytest.approx(expected, rel=1e-8, abs=1e-8 + 1e-11 * steepest)
    # Two such rows weigh 1e8 each and cancel; squares that are multiplied out leave 1.1e-11 of that at most, measured.
    atol = 1e-7 + 3e-11 * steepest
    for found, slope in zip(gradient, slopes, strict=True):
        np.testing.assert_allclose(found[0], slope.numpy(), rtol=1e-7, atol=atol)


@given(n=st.integers(1, 20), seed=st.integers(0, 1000), by=st.sampled_from([-0.3, -1e-3, 1e-3, 0.3]))
def test_a_fitted_mean_is_the_best_one(n: int, seed: int, by: float) -> None:
    data = standardised(n, 2, seed)
    at = some(2, np.array([1e-2]))
    (value,), (mean,), _ = data.log_likelihoods(at, "matern52")
    (other,), _, _ = DataSets(data.X, data.y, float(mean) + by).log_likelihoods(at, "matern52")
    assert other < value


@settings(max_examples=40)
@given(
    n=st.integers(1, 70),
    d=st.sampled_from([1, 2, 6, 20]),
    kernel=st.sampled_from(KERNELS),
    ard=st.booleans(),
    rows=st.lists(st.sampled_from(list(SEEDS)), min_size=1, max_size=5, unique=True),
)
def test_each_data_set_has_the_numbers_that_it_has_alone_to_the_last_bit(
    n: int, d: int, kernel: Kernel, ard: bool, rows: list[int]
) -> None:
    data = standardised(n, d, *SEEDS)
    draws = np.random.default_rng(n)
    at = Covariances(*(np.exp(draws.normal(size=(len(SEEDS), k)) - 1) for k in (1, 1, d if ard else 1)))
    together = data.only(rows).log_likelihoods(Covariances(*(part[rows] for part in at)), kernel)
    for i, row in enumerate(rows):
        alone = data.only([row]).log_likelihoods(Covariances(*(part[[row]] for part in at)), kernel)
        for one, other in zip((*together[:2], *together[2]), (*alone[:2], *alone[2]), strict=True):
            assert one[i].tobytes() == other[0].tobytes()


@pytest.mark.parametrize("block", [1, 30, 60, 150])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_blocks_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch, kernel: Kernel, known: bool, block: int) -> None:
    data = standardised(14, 3, *SEEDS)
    draws = np.random.default_rng(1)
    at = Covariances(*(np.exp(draws.normal(size=(len(SEEDS), k)) - 1) for k in (14 if known else 1, 1, 3)))
    whole = data.log_likelihoods(at, kernel)
    monkeypatch.setattr(likelihood, "BLOCK", block)
    parts = DataSets(data.X, data.y).log_likelihoods(at, kernel)
    for one, other in zip((*parts[:2], *parts[2]), (*whole[:2], *whole[2]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 14, 128, 129, 300, 40_000])
def test_blocks_hold_the_upper_triangle_once(n: int) -> None:
    places = list(likelihood._places(n))
    assert [rows.start for rows, _ in places] == [0, *(rows.stop for rows, _ in places[:-1])]
    assert places[-1][0].stop == n
    assert all(columns == slice(rows.start, n) for rows, columns in places)
    assert (len(places) == 1) == (n <= 128)
    assert all(
        rows.stop - rows.start == 1 or (rows.stop - rows.start) * (n - rows.start) <= 2**14 for rows, _ in places
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_larger_data_set_has_the_likelihood_of_a_dense_gaussian_and_the_numbers_that_it_has_alone(
    kernel: Kernel,
) -> None:
    data, at = standardised(200, 3, 0, 1), some(3, np.array([1e-2]))
    both = data.log_likelihoods(Covariances(*(part.repeat(2, 0) for part in at)), kernel)
    for row in range(2):
        alone = data.only([row])
        (value,), (mean,), gradient = found = alone.log_likelihoods(at, kernel)
        expected, slopes = dense(alone, float(mean), at, kernel)
        assert value == pytest.approx(expected, rel=1e-9)
        for part, slope in zip(gradient, slopes, strict=True):
            np.testing.assert_allclose(part[0], slope.numpy(), rtol=1e-7, atol=1e-7)
        for one, other in zip((*both[:2], *both[2]), (*found[:2], *found[2]), strict=True):
            assert one[row].tobytes() == other[0].tobytes()


def test_prior_means_alone_are_those_of_the_likelihood_to_the_last_bit() -> None:
    data = standardised(14, 2, *SEEDS)
    at = Covariances(*(np.exp(np.random.default_rng(0).normal(size=(len(SEEDS), k)) - 1) for k in (1, 1, 2)))
    for one in (data, DataSets(data.X, data.y, 0.3)):
        assert one.constants(at, "matern52").tobytes() == one.log_likelihoods(at, "matern52")[1].tobytes()


def singular(n: int = 5) -> DataSets:
    return DataSets(np.zeros((1, n, 1)), np.linspace(-1, 1, n)[None], 0.0)


@pytest.mark.parametrize("block", [1, 2**14])
def test_a_covariance_without_a_factor_gets_jitter_and_the_others_none(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(likelihood, "BLOCK", block)
    X = torch.zeros(5, 1, dtype=torch.float64)
    assert torch.linalg.cholesky_ex(CORRELATIONS["rbf"](squared_distances(X[None], X[None]))[0][0])[1] != 0
    other = standardised(5, 1, 3)
    both = DataSets(np.concatenate([singular().X, other.X]), np.concatenate([singular().y, other.y]), 0.0)
    at = Covariances(np.full((2, 1), 1e-18), np.ones((2, 1)), np.full((2, 1), 0.2))
    with pytest.warns(match="not p.d., added jitter"):
        values, _, gradients = both.log_likelihoods(at, "rbf")
    alone = Covariances(*(part[1:] for part in at))
    expected, _, slopes = both.only([1]).log_likelihoods(alone, "rbf")
    assert math.isfinite(values[0])
    assert all(np.isfinite(part).all() for part in gradients)
    assert values[1] == expected[0]
    assert all((one[1] == own[0]).all() for one, own in zip(gradients, slopes, strict=True))

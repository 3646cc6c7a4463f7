"""The marginal likelihood against a dense Gaussian and against GPyTorch, its gradient against both, its maximum."""

import math

import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch_cases import untrained_model
from exact_cases import CHOICES, standardised
from gpytorch import ExactMarginalLogLikelihood
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal

from plumbline.models.algebra import CORRELATIONS, Kernel, squared_distances
from plumbline.models.gp import likelihood
from plumbline.models.gp.fit import ModelOptions, unknowns_of
from plumbline.models.gp.likelihood import ATTEMPTS, Covariances, DataSets, Maximum, Start, Unknowns, maximise

KERNELS: list[Kernel] = ["matern52", "rbf", "matern32", "matern12"]
SEEDS = range(5)


def cube(d: int) -> Tensor:
    return torch.stack([torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)])


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


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_the_penalised_likelihood_and_its_gradient_are_gpytorchs(options: ModelOptions) -> None:
    """The gradient by the chain rule, since GPyTorch's parameters are others."""
    data = standardised(12, 3)
    unknowns = unknowns_of(3, options)
    coordinates = unknowns.start() + 0.3
    _, (constant,), _ = data.log_likelihoods(unknowns.covariances(coordinates[None]), options.kernel)
    at = unknowns.values(coordinates, float(constant))
    X, y = torch.from_numpy(data.X[0]), torch.from_numpy(data.y[0])
    model = untrained_model(X, y.unsqueeze(-1), cube(3), options)
    base = getattr(model.covar_module, "base_kernel", model.covar_module)
    base.lengthscale = at.lengthscale
    if options.priors != "botorch":
        model.covar_module.outputscale = torch.tensor(at.outputscale, dtype=torch.float64)
    model.likelihood.noise = at.noise
    model.mean_module.initialize(constant=torch.tensor(at.constant, dtype=torch.float64))
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    model.train()
    expected = mll(model(*model.train_inputs), model.train_targets)
    (value,), (gradient,) = unknowns.penalised(coordinates[None], data, options.kernel)
    assert value == pytest.approx(expected.item(), rel=1e-8)  # GPyTorch's rate of .15 has single precision
    expected.backward()
    assert model.mean_module.raw_constant.grad.abs() < 1e-9
    parts = [(model.likelihood.noise_covar, "raw_noise")]
    if options.priors != "botorch":
        parts.append((model.covar_module, "raw_outputscale"))
    parts.append((base, "raw_lengthscale"))
    slopes = []
    for module, name in parts:
        raw = getattr(module, name)
        raw = raw.detach().clone().requires_grad_()
        number = getattr(module, f"{name}_constraint").transform(raw)
        (by_raw,) = torch.autograd.grad(number.log().sum(), raw)
        slopes.append((getattr(module, name).grad / by_raw).flatten())
    np.testing.assert_allclose(gradient, unknowns.unit * torch.cat(slopes).numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", [*CHOICES, ModelOptions(priors="none", ard=False, lengthscale=0.3)], ids=str)
def test_finite_differences(options: ModelOptions) -> None:
    data = standardised(9, 2, 0, 1)
    unknowns = unknowns_of(2, options)
    coordinates = np.stack([unknowns.start() + 0.05, unknowns.start() - 0.1])
    _, gradients = unknowns.penalised(coordinates, data, options.kernel)
    for i in range(coordinates.shape[1]):
        step = np.zeros_like(coordinates)
        step[:, i] = 1e-5
        above, below = (unknowns.penalised(coordinates + sign * step, data, options.kernel)[0] for sign in (1, -1))
        assert gradients[:, i] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-8)


def fitted(data: DataSets, options: ModelOptions) -> list[Maximum]:
    unknowns = unknowns_of(data.X.shape[-1], options)
    maxima = maximise(lambda at, rows: unknowns.penalised(at, data.only(rows), options.kernel), unknowns, len(data.y))
    assert all(maximum.failed == [] for maximum in maxima)
    return maxima


def botorchs(data: DataSets, options: ModelOptions) -> float:
    X, y = torch.from_numpy(data.X[0]), torch.from_numpy(data.y[0])
    model = untrained_model(X, y.unsqueeze(-1), cube(X.shape[1]), options)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    model.train()
    return mll(model(*model.train_inputs), model.train_targets).item()


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_maxima_are_as_great_as_botorchs_on_most_data(options: ModelOptions) -> None:
    """Where there are several, either may find a greater one; where a ridge is flat, either may stop first."""
    samples = [standardised(14, 2, seed) for seed in SEEDS]
    gains = [fitted(data, options)[0].value - botorchs(data, options) for data in samples]
    assert sum(gain > -2e-6 for gain in gains) >= len(SEEDS) - 1


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_the_maxima_are_those_that_each_has_alone_to_the_last_bit(options: ModelOptions) -> None:
    data = standardised(14, 2, *SEEDS)
    for seed, maximum in zip(SEEDS, fitted(data, options), strict=True):
        (alone,) = fitted(standardised(14, 2, seed), options)
        assert alone.coordinates.tobytes() == maximum.coordinates.tobytes()


@pytest.mark.parametrize("priors", ["botorch", "conformal", "none"])
def test_one_observation_and_equal_ones(priors: str) -> None:
    equal = DataSets(standardised(6, 2).X, np.zeros((1, 6)))
    for data in (standardised(1, 2), equal):
        (maximum,) = fitted(data, ModelOptions(priors=priors))
        assert math.isfinite(maximum.value)


def test_noise_free_observations_of_a_smooth_function_are_not_taken_for_noise() -> None:
    """Maximum likelihood has a second maximum there, at a lengthscale below all distances."""
    X = np.sort(np.random.default_rng(0).uniform(size=(1, 60, 1)), axis=1)
    y = np.sin(6 * X[..., 0])
    data = DataSets(X, (y - y.mean()) / y.std(ddof=1))
    (maximum,) = fitted(data, ModelOptions(priors="none", kernel="rbf"))
    unknowns = unknowns_of(1, ModelOptions(priors="none", kernel="rbf"))
    assert float(unknowns.values(maximum.coordinates).lengthscale) > 0.05


def test_prior_means_alone_are_those_of_the_likelihood_to_the_last_bit() -> None:
    data = standardised(14, 2, *SEEDS)
    at = Covariances(*(np.exp(np.random.default_rng(0).normal(size=(len(SEEDS), k)) - 1) for k in (1, 1, 2)))
    for one in (data, DataSets(data.X, data.y, 0.3)):
        assert one.constants(at, "matern52").tobytes() == one.log_likelihoods(at, "matern52")[1].tobytes()


def near(data: DataSets, options: ModelOptions) -> Start:
    """Return the start that the fit to all of one data set gives to fits to parts of it."""
    unknowns, (maximum,) = unknowns_of(data.X.shape[-1], options), fitted(data, options)
    return unknowns.near(unknowns.values(maximum.coordinates), data, options.kernel)


def without_each_row(data: DataSets) -> DataSets:
    n = data.y.shape[-1]
    rows = [[j for j in range(n) if j != i] for i in range(n)]
    return DataSets(data.X[0][rows], data.y[0][rows])


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_fits_that_start_near_take_fewer_evaluations_and_end_as_high(options: ModelOptions) -> None:
    data = standardised(20, 2, 3)
    splits, unknowns, ends, evaluations = without_each_row(data), unknowns_of(2, options), [], []

    def objective(at: np.ndarray, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        evaluations[-1] += len(rows)
        return unknowns.penalised(at, splits.only(rows), options.kernel)

    for start in (None, near(data, options)):
        evaluations.append(0)
        ends.append(np.array([maximum.value for maximum in maximise(objective, unknowns, len(splits.y), start)]))
    assert evaluations[1] < 0.8 * evaluations[0]
    # All but a few end at one maximum, to the tolerance of the slopes.
    assert np.sort(ends[1] - ends[0])[2] > -1e-6


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_maxima_near_a_start_do_not_depend_on_other_data_sets(options: ModelOptions) -> None:
    data = standardised(9, 2, 3)
    splits, unknowns, start = without_each_row(data), unknowns_of(2, options), near(data, options)

    def of(rows: list[int]) -> list[Maximum]:
        sets = splits.only(rows)
        return maximise(
            lambda at, some: unknowns.penalised(at, sets.only(some), options.kernel), unknowns, len(rows), start
        )

    for i, maximum in enumerate(of(list(range(9)))):
        (alone,) = of([i])
        assert alone.coordinates.tobytes() == maximum.coordinates.tobytes()


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_units_of_a_start_make_curvatures_one(options: ModelOptions) -> None:
    data = standardised(20, 2, 3)
    unknowns, start = unknowns_of(2, options), near(data, options)
    step = 1e-3 * np.diag(start.units)
    above, below = (
        unknowns.penalised(start.coordinates + sign * step, data.only([0] * len(step)), options.kernel)[1]
        for sign in (1, -1)
    )
    curvatures = (below - above).diagonal() * start.units / 2e-3
    inside = (start.units * unknowns.unit > 0.11) & (start.units * unknowns.unit < 9.9)
    assert inside.any()
    np.testing.assert_allclose(curvatures[inside], 1.0, rtol=0.1)


def flat(coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(len(coordinates)), np.zeros_like(coordinates)


@pytest.fixture
def unknowns() -> Unknowns:
    return unknowns_of(2, ModelOptions())


def test_where_the_first_start_fails_another_one_is_tried_for_that_data_set_alone(unknowns: Unknowns) -> None:
    seen: list[list[int]] = []
    first = unknowns.start().tobytes()

    def fails_once(coordinates: np.ndarray, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        seen.append(rows)
        values, gradients = flat(coordinates)
        for i, (row, own) in enumerate(zip(rows, coordinates, strict=True)):
            if row == 1 and own.tobytes() == first:
                values[i], gradients[i] = math.nan, math.nan
        return values, gradients

    maxima = maximise(fails_once, unknowns, 3)
    assert [len(maximum.failed) for maximum in maxima] == [0, 1, 0]
    assert [maximum.coordinates.tobytes() == first for maximum in maxima] == [True, False, True]
    assert seen[0] == [0, 1, 2]
    assert seen[-1] == [1]


def test_where_a_start_nearby_fails_the_usual_one_follows(unknowns: Unknowns) -> None:
    seen: list[bytes] = []
    start = Start(unknowns.start() + 1.0, np.full(len(unknowns.start()), 2.0))

    def fails_once(coordinates: np.ndarray, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        seen.append(coordinates.tobytes())
        values, gradients = flat(coordinates)
        return values + (math.nan if len(seen) == 1 else 0.0), gradients

    (maximum,) = maximise(fails_once, unknowns, 1, start)
    assert seen == [start.coordinates.tobytes(), unknowns.start().tobytes()]
    assert len(maximum.failed) == 1


def test_where_no_attempt_converges_the_best_end_is_taken(unknowns: Unknowns) -> None:
    def misleading(coordinates: np.ndarray, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        return -np.square(coordinates).sum(-1), 2 * coordinates + 1.0

    (maximum,) = maximise(misleading, unknowns, 1)
    assert len(maximum.failed) == ATTEMPTS
    generator = np.random.default_rng(0)
    starts = [unknowns.start(), *(unknowns.another_start(generator) for _ in range(ATTEMPTS - 1))]
    assert maximum.value >= max(-float(np.square(start).sum()) for start in starts)


def test_where_there_is_no_number_anywhere_there_is_no_maximum(unknowns: Unknowns) -> None:
    def broken(coordinates: np.ndarray, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(rows), math.nan), np.full_like(coordinates, math.nan)

    (maximum,) = maximise(broken, unknowns, 1)
    assert maximum.coordinates is None
    assert len(maximum.failed) == ATTEMPTS


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


def test_where_there_is_no_number_it_is_nan_and_the_others_are_fitted() -> None:
    data = standardised(12, 1, 0, 1)
    data.X[1] = math.nan
    unknowns = unknowns_of(1, ModelOptions(priors="none", kernel="rbf"))
    values, gradients = unknowns.penalised(np.stack([unknowns.start()] * 2), data, "rbf")
    assert np.isfinite(values).tolist() == [True, False]
    assert np.isfinite(gradients).all(-1).tolist() == [True, False]
    found = maximise(lambda at, rows: unknowns.penalised(at, data.only(rows), "rbf"), unknowns, 2)
    assert found[0].coordinates is not None
    assert found[1].coordinates is None


def test_nothing_is_fitted_where_all_is_known() -> None:
    options = ModelOptions(lengthscale=0.3)
    unknowns = unknowns_of(1, options, torch.full((4,), 0.1, dtype=torch.float64))
    (maximum,) = maximise(lambda at, rows: flat(at), unknowns, 1)
    assert unknowns.values(maximum.coordinates).lengthscale.tolist() == [0.3]
    assert unknowns.values(maximum.coordinates).noise.tolist() == [0.1] * 4

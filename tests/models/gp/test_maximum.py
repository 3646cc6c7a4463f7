"""The penalised likelihood and its gradient against GPyTorch's, and where fits start and end."""

import math

import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch_cases import untrained_model
from exact_cases import CHOICES, standardised
from gpytorch import ExactMarginalLogLikelihood
from torch import Tensor

from plumbline.models.gp.fit import ModelOptions, unknowns_of
from plumbline.models.gp.likelihood import DataSets
from plumbline.models.gp.maximum import ATTEMPTS, Maximum, Start, Unknowns, maximise

SEEDS = range(5)


def cube(d: int) -> Tensor:
    return torch.stack([torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)])


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


@pytest.mark.slow
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

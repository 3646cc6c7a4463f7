"""The marginal likelihood against a dense Gaussian and against GPyTorch, its gradient against both, its maximum."""

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch_cases import untrained_model
from exact_cases import CHOICES, standardised
from gpytorch import ExactMarginalLogLikelihood
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_operator.utils.errors import NotPSDError
from torch import Tensor
from torch.distributions import MultivariateNormal

from plumbline.models.algebra import CORRELATIONS, Kernel, squared_distances
from plumbline.models.gp.fit import ModelOptions, unknowns_of
from plumbline.models.gp.likelihood import ATTEMPTS, Hyperparameters, Sample, Unknowns, maximise

KERNELS: list[Kernel] = ["matern52", "rbf"]


def cube(d: int) -> Tensor:
    return torch.stack([torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)])


def some(d: int, noise: Tensor, lengthscale: float = 0.4) -> Hyperparameters:
    return Hyperparameters(0.2, noise, 1.3, lengthscale * (1 + torch.arange(d, dtype=torch.float64) / d))


def dense(sample: Sample, at: Hyperparameters, kernel: Kernel) -> Tensor:
    """The same, differentiable, by torch's own Gaussian."""
    difference = (sample.X.unsqueeze(1) - sample.X.unsqueeze(0)) / at.lengthscale
    r2 = difference.square().sum(-1)
    if kernel == "rbf":
        correlation = torch.exp(-0.5 * r2)
    else:
        order = {"matern12": 1, "matern32": 3, "matern52": 5}[kernel]
        r = torch.sqrt(order * r2 + 1e-300)
        polynomial = {"matern12": 1.0, "matern32": 1 + r, "matern52": 1 + r + r.square() / 3}[kernel]
        correlation = polynomial * torch.exp(-r)
    covariance = at.outputscale * correlation + torch.diag(at.noise.expand(len(sample.y)))
    return MultivariateNormal(at.constant.expand(len(sample.y)), covariance).log_prob(sample.y)


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
    seed: int,
) -> None:
    sample = standardised(n, d, seed)
    if doubles and n > 1:
        sample = Sample(torch.cat([sample.X[:1] + 1e-9, sample.X[1:-1], sample.X[:1]]), sample.y)
    noises = torch.full((n if known else 1,), noise, dtype=torch.float64)
    at = some(d if ard else 1, noises, lengthscale)
    value, gradient = sample.log_likelihood(at, kernel)
    leaves = [torch.as_tensor(part, dtype=torch.float64).clone().requires_grad_() for part in at]
    expected = dense(sample, Hyperparameters(*leaves), kernel)
    slopes = torch.autograd.grad(expected, leaves)
    # Observations that contradict each other at one place make the noise all that matters.
    steepest = max(float(slope.abs().max()) for slope in slopes)
    assert value == pytest.approx(expected.item(), rel=1e-8, abs=1e-8 + 1e-11 * steepest)
    # Two such rows weigh 1e8 each and cancel; squares that are multiplied out leave 1.1e-11 of that at most, measured.
    atol = 1e-7 + 3e-11 * steepest
    for found, slope in zip(gradient, slopes, strict=True):
        found = torch.as_tensor(found, dtype=torch.float64).view_as(slope)
        torch.testing.assert_close(found, slope, rtol=1e-7, atol=atol)


@pytest.mark.parametrize("kernel", ["matern12", "matern32"])
@pytest.mark.parametrize(("n", "d", "ard"), [(1, 1, True), (12, 3, True), (12, 3, False), (25, 30, True)])
def test_rough_kernels_too(kernel: Kernel, n: int, d: int, ard: bool) -> None:
    sample = standardised(n, d, 3)
    at = some(d if ard else 1, torch.tensor([1e-3], dtype=torch.float64))
    value, gradient = sample.log_likelihood(at, kernel)
    leaves = [torch.as_tensor(part, dtype=torch.float64).clone().requires_grad_() for part in at]
    expected = dense(sample, Hyperparameters(*leaves), kernel)
    assert value == pytest.approx(expected.item(), rel=1e-8)
    for found, slope in zip(gradient, torch.autograd.grad(expected, leaves), strict=True):
        torch.testing.assert_close(
            torch.as_tensor(found, dtype=torch.float64).view_as(slope), slope, rtol=1e-7, atol=1e-7
        )


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_the_penalised_likelihood_and_its_gradient_are_gpytorchs(options: ModelOptions) -> None:
    sample = standardised(12, 3)
    unknowns = unknowns_of(3, options)
    model = untrained_model(sample.X, sample.y.unsqueeze(-1), cube(3), options)
    raw = unknowns.start()
    raw[1:] *= 1.1
    raw[0] = 0.3
    at = unknowns.values(raw)
    base = getattr(model.covar_module, "base_kernel", model.covar_module)
    base.lengthscale = at.lengthscale
    if options.priors != "botorch":
        model.covar_module.outputscale = at.outputscale
    model.likelihood.noise = at.noise
    model.mean_module.initialize(constant=at.constant)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    model.train()
    expected = mll(model(*model.train_inputs), model.train_targets)
    value, gradient = unknowns.penalised(raw, sample, options.kernel)
    assert value == pytest.approx(expected.item(), rel=1e-8)  # GPyTorch's rate of .15 has single precision
    expected.backward()
    found = dict(model.named_parameters())
    names = ["mean_module.raw_constant", "likelihood.noise_covar.raw_noise"]
    names += [name for name in found if name.endswith("raw_outputscale")]
    names += [name for name in found if name.endswith("raw_lengthscale")]
    theirs = torch.cat([found[name].grad.flatten() for name in names])
    np.testing.assert_allclose(gradient, theirs.numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_finite_differences(options: ModelOptions) -> None:
    sample = standardised(9, 2)
    unknowns = unknowns_of(2, options)
    raw = unknowns.start() + 0.05
    _, gradient = unknowns.penalised(raw, sample, options.kernel)
    for i in range(len(raw)):
        step = np.zeros_like(raw)
        step[i] = 1e-6
        above, below = (unknowns.penalised(raw + sign * step, sample, options.kernel)[0] for sign in (1, -1))
        assert gradient[i] == pytest.approx((above - below) / 2e-6, rel=1e-5, abs=1e-7)


def fitted(sample: Sample, options: ModelOptions) -> float:
    unknowns = unknowns_of(sample.X.shape[1], options)
    raw, failed = maximise(
        lambda at: unknowns.penalised(at, sample, options.kernel), unknowns, np.random.default_rng(0)
    )
    assert failed == []
    return unknowns.penalised(raw, sample, options.kernel)[0]


def botorchs(sample: Sample, options: ModelOptions) -> float:
    model = untrained_model(sample.X, sample.y.unsqueeze(-1), cube(sample.X.shape[1]), options)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    model.train()
    return mll(model(*model.train_inputs), model.train_targets).item()


@pytest.mark.parametrize("options", CHOICES, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_the_maximum_is_botorchs(options: ModelOptions, seed: int) -> None:
    """From one start to one summit; where a ridge is flat, either may stop first."""
    sample = standardised(14, 2, seed)
    assert fitted(sample, options) == pytest.approx(botorchs(sample, options), abs=1e-6)


@pytest.mark.parametrize("priors", ["botorch", "conformal", "none"])
def test_one_observation_and_equal_ones(priors: str) -> None:
    for sample in (standardised(1, 2), Sample(standardised(6, 2).X, torch.zeros(6, dtype=torch.float64))):
        assert math.isfinite(fitted(sample, ModelOptions(priors=priors)))


def flat(raw: np.ndarray) -> tuple[float, np.ndarray]:
    return 0.0, np.zeros_like(raw)


@pytest.fixture
def unknowns() -> Unknowns:
    return unknowns_of(2, ModelOptions())


def test_where_the_first_start_fails_another_one_is_tried(unknowns: Unknowns) -> None:
    starts: list[bytes] = []

    def fails_once(raw: np.ndarray) -> tuple[float, np.ndarray]:
        starts.append(raw.tobytes())
        if raw.tobytes() == starts[0]:
            raise NotPSDError("not here")
        return flat(raw)

    raw, failed = maximise(fails_once, unknowns, np.random.default_rng(0))
    assert len(failed) == 1
    assert raw.tobytes() != starts[0]


def test_where_no_attempt_converges_the_best_end_is_taken(unknowns: Unknowns) -> None:
    def misleading(raw: np.ndarray) -> tuple[float, np.ndarray]:
        return -float(np.square(raw).sum()), 2 * raw + 1.0

    raw, failed = maximise(misleading, unknowns, np.random.default_rng(0))
    assert len(failed) == ATTEMPTS
    generator = np.random.default_rng(0)
    starts = [unknowns.start(), *(unknowns.another_start(generator) for _ in range(ATTEMPTS - 1))]
    assert misleading(raw)[0] >= max(misleading(start)[0] for start in starts)


def test_where_there_is_no_number_anywhere_it_says_so(unknowns: Unknowns) -> None:
    def broken(raw: np.ndarray) -> tuple[float, np.ndarray]:
        raise NotPSDError("nowhere")

    with pytest.raises(ModelFittingError, match="NaN or infinite"):
        maximise(broken, unknowns, np.random.default_rng(0))


def test_a_covariance_without_a_factor_gets_jitter() -> None:
    X = torch.zeros(5, 1, dtype=torch.float64)
    sample = Sample(X, torch.linspace(-1, 1, 5, dtype=torch.float64))
    at = Hyperparameters(0.0, torch.tensor([1e-18], dtype=torch.float64), 1.0, torch.ones(1, dtype=torch.float64))
    assert torch.linalg.cholesky_ex(CORRELATIONS["rbf"](squared_distances(X[None], X[None]))[0][0])[1] != 0
    with pytest.warns(match="not p.d., added jitter"):
        assert math.isfinite(sample.log_likelihood(at, "rbf")[0])

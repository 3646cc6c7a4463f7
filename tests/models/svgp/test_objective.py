"""Sparse processes: objectives and gradients beside GPyTorch's, moments by dense algebra, units."""

import math

import pytest
import torch
from gpytorch.likelihoods import GaussianLikelihood
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_cases import (
    CUBE,
    KERNELS,
    batch,
    gpytorch_objective,
    gpytorch_objective_in_evaluation,
    normal,
    objective_gradient,
    random_rows,
    uniform,
)
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from plumbline.models.algebra import SparseKernel, squared_distances
from plumbline.models.svgp.cross_covariance import JITTER, factorise
from plumbline.models.svgp.objective import (
    NOISE_FLOOR,
    Batch,
    Layout,
    Objective,
    Parameters,
    expected_log_likelihood,
    fidelity,
    forward,
    initial_row,
    inverse_softplus,
    predictive_log_likelihood,
    prepare,
    rescaled,
)
from plumbline.models.svgp.process import SVGP

LAYOUT = Layout(7, 3)
positive = st.floats(0.05, 20)


@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("objective", ["elbo", "ppgpr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_objectives_and_gradients_are_gpytorchs(kernel: SparseKernel, objective: Objective, b: int) -> None:
    rows, one = random_rows(b, LAYOUT), batch(b, 9, 3)
    value, gradient = objective_gradient(rows, LAYOUT, one, kernel, objective)
    for i in range(b):
        there, slope = gpytorch_objective(rows[i], LAYOUT, one, i, kernel, objective)
        assert value[i].item() == pytest.approx(there.item(), abs=1e-8)
        assert slope.abs().max() > 0.1
        torch.testing.assert_close(gradient[i], slope, rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore::gpytorch.utils.warnings.NumericalWarning")
@pytest.mark.parametrize(("objective", "far"), [("elbo", False), ("elbo", True), ("ppgpr", False)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_frozen_factors_are_those_of_gpytorch_in_evaluation_mode(
    kernel: SparseKernel, objective: Objective, far: bool
) -> None:
    """Far from where the factor was right, it leaves less than no variance of some data, and both bound it."""
    first, one = random_rows(1, LAYOUT), batch(1, 9, 3)
    rows = first + 0.3 * normal(1, LAYOUT.size, seed=5)
    LAYOUT.parts(first).factor.mul_(0.2)
    LAYOUT.parts(rows).factor.copy_(LAYOUT.parts(first).factor)
    if far:
        LAYOUT.parts(rows).raw_outputscale.add_(3.0)
    there, slopes = gpytorch_objective_in_evaluation(first[0], rows[0], LAYOUT, one, kernel, objective)
    frozen = prepare(first, LAYOUT, kernel).inducing.L
    passed = prepare(rows, LAYOUT, kernel, frozen).at(one.X)
    assert (passed.variance < 0).any().item() == far
    assert (passed.variance > 0).any()
    value, cotangents = fidelity(passed, one, objective)
    gradient = LAYOUT.parts(passed.vjp(*cotangents, divergence=-1 / one.data))
    assert value.item() == pytest.approx(there.item(), abs=1e-8)
    assert value.item() != pytest.approx(objective_gradient(rows, LAYOUT, one, kernel, objective)[0].item(), abs=1e-4)
    for name, own, slope in zip(Parameters._fields, gradient, slopes, strict=True):
        if name == "factor":
            assert slope is None, "GPyTorch does not train it"
        else:
            assert slope is not None
            torch.testing.assert_close(own.flatten(), slope.flatten(), rtol=1e-8, atol=1e-8, msg=name)


@pytest.mark.parametrize("objective", ["elbo", "ppgpr"])
def test_gradients_against_differences_where_inducing_points_coincide(objective: Objective) -> None:
    rows, one = random_rows(1, LAYOUT), batch(1, 9, 3)
    Z = LAYOUT.parts(rows).inducing
    Z[:, 1] = Z[:, 0]
    one.X[:, 0] = Z[:, 2]
    for kernel in KERNELS:
        _, gradient = objective_gradient(rows, LAYOUT, one, kernel, objective)
        for seed in range(3):
            direction, h = normal(1, LAYOUT.size, seed=seed), 1e-7
            # The pair moves as one: what pulls it apart has curvature of a million.
            LAYOUT.parts(direction).inducing[:, 1] = LAYOUT.parts(direction).inducing[:, 0]
            up, down = (
                objective_gradient(rows + step * direction, LAYOUT, one, kernel, objective)[0] for step in (h, -h)
            )
            numerical = ((up - down) / (2 * h)).item()
            assert (gradient * direction).sum().item() == pytest.approx(numerical, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_moments_by_dense_algebra(kernel: SparseKernel) -> None:
    """`f | u` and `u ~ N(constant + L mean, L C C' L')`, with inverses, not factors."""
    rows, X = random_rows(1, LAYOUT), uniform(1, 6, 3, seed=4)
    passed, parts = forward(rows, LAYOUT, X, kernel), LAYOUT.parts(rows)
    whitened = factorise(parts.inducing, parts.lengthscale, parts.outputscale, kernel).whiten(X)
    L, Kzx = whitened.inducing.L[0], whitened.covariances.value[0]
    Kzz, C = L @ L.mT, parts.factor[0].tril()
    gain = Kzx.mT @ torch.linalg.inv(Kzz)
    S = L @ C @ C.mT @ L.mT
    mean = parts.constant + gain @ (L @ parts.mean[0])
    prior = parts.outputscale + JITTER
    variance = prior - (gain * Kzx.mT).sum(-1) + torch.einsum("nm,mk,nk->n", gain, S, gain)
    torch.testing.assert_close(passed.mean[0], mean, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(passed.variance[0], variance, rtol=1e-7, atol=1e-7)


def test_divergence_is_that_of_two_gaussians() -> None:
    rows = random_rows(3, LAYOUT)
    passed, parts = forward(rows, LAYOUT, uniform(3, 1, 3), "rbf"), LAYOUT.parts(rows)
    signs = parts.factor.tril().diagonal(dim1=-2, dim2=-1).sign()
    q = MultivariateNormal(parts.mean, scale_tril=parts.factor.tril() * signs.unsqueeze(-2))
    p = MultivariateNormal(torch.zeros_like(parts.mean), torch.eye(LAYOUT.m, dtype=torch.float64))
    torch.testing.assert_close(passed.divergence(), kl_divergence(q, p), rtol=1e-10, atol=1e-10)


def test_what_begins_is_gpytorchs_default_with_the_prior_as_belief() -> None:
    row = initial_row(uniform(7, 3)).unsqueeze(0)
    parts = LAYOUT.parts(row)
    assert torch.equal(parts.inducing[0], uniform(7, 3))
    assert torch.equal(parts.factor[0], torch.eye(7, dtype=torch.float64))
    log2 = math.log(2)
    assert (parts.lengthscale.item(), parts.outputscale.item()) == pytest.approx((log2, log2))
    assert parts.noise.item() == pytest.approx(GaussianLikelihood().noise.item())
    passed = forward(row, LAYOUT, uniform(1, 5, 3, seed=2), "rbf")
    assert passed.divergence().item() == pytest.approx(0.0, abs=1e-12)
    assert passed.mean.abs().max() == 0
    torch.testing.assert_close(passed.variance, torch.full((1, 5), log2 + JITTER).double())


@settings(max_examples=30)
@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(0.01, 4), st.floats(0.01, 4))
def test_terms_against_quadrature(y: float, mean: float, variance: float, noise: float) -> None:
    given_y, at, spread = (torch.tensor([[one]], dtype=torch.float64) for one in (y, mean, variance))
    noise_ = torch.tensor([[noise]], dtype=torch.float64)
    f = torch.linspace(-10, 10, 4001, dtype=torch.float64) * math.sqrt(variance) + mean
    density = Normal(at[0], spread[0].sqrt()).log_prob(f).exp()
    likelihood = Normal(f, noise_[0].sqrt()).log_prob(given_y[0])
    expected = torch.trapezoid(density * likelihood, f)
    predictive = Normal(at, (spread + noise_).sqrt()).log_prob(given_y)
    found = expected_log_likelihood(given_y, at, spread, noise_)
    assert found.value.item() == pytest.approx(expected.item(), rel=1e-8, abs=1e-8)
    other = predictive_log_likelihood(given_y, at, spread, noise_)
    assert other.value.item() == pytest.approx(predictive.item(), rel=1e-10, abs=1e-10)
    for terms in (expected_log_likelihood, predictive_log_likelihood):
        leaves = [one.clone().requires_grad_() for one in (at, spread, noise_)]
        value = terms(given_y, *leaves)
        slopes = torch.autograd.grad(value.value.sum(), leaves)
        for slope, own in zip(slopes, value[1:], strict=True):
            assert own.item() == pytest.approx(slope.item(), rel=1e-9, abs=1e-9)


@given(st.floats(1e-6, 50))
def test_inverse_softplus_goes_back(value: float) -> None:
    there = inverse_softplus(torch.tensor(value, dtype=torch.float64))
    assert torch.nn.functional.softplus(there).item() == pytest.approx(value, rel=1e-9)


@settings(max_examples=30)
@given(positive, st.floats(-20, 20))
def test_other_units_say_the_same(ratio: float, shift: float) -> None:
    """All but the jitter, a millionth in any units."""
    row, X = random_rows(1, LAYOUT)[0], uniform(1, 5, 3, seed=4)
    before = forward(row.unsqueeze(0), LAYOUT, X, "matern52")
    after = forward(rescaled(row, LAYOUT, ratio, shift).unsqueeze(0), LAYOUT, X, "matern52")
    torch.testing.assert_close((after.mean - shift) / ratio, before.mean, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(after.variance / ratio**2, before.variance, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(after.parameters.noise / ratio**2, before.parameters.noise, rtol=1e-8, atol=1e-8)


def test_units_without_change_and_there_and_back() -> None:
    row = random_rows(1, LAYOUT)[0]
    torch.testing.assert_close(rescaled(row, LAYOUT, 1.0, 0.0), row, rtol=1e-10, atol=1e-10)
    back = rescaled(rescaled(row, LAYOUT, 4.0, 3.0), LAYOUT, 1 / 4, -3 / 4)
    torch.testing.assert_close(back, row, rtol=1e-8, atol=1e-8)


def test_noise_does_not_leave_its_floor() -> None:
    row = rescaled(random_rows(1, LAYOUT)[0], LAYOUT, 1e-4, 0.0)
    assert torch.isfinite(row).all()
    assert LAYOUT.parts(row.unsqueeze(0)).noise.item() == pytest.approx(NOISE_FLOOR, rel=1e-3)


def test_parts_of_a_row_are_views_in_its_order() -> None:
    rows = torch.arange(2.0 * LAYOUT.size).view(2, -1)
    parts = LAYOUT.parts(rows)
    torch.testing.assert_close(torch.cat([part.reshape(2, -1) for part in parts], 1), rows)
    parts.constant.fill_(-1.0)
    assert (rows[:, -4] == -1).all()


def test_a_broken_process_leaves_the_others_alone() -> None:
    rows, one = random_rows(2, LAYOUT), batch(2, 5, 3)
    rows[0] = torch.nan
    value, gradient = objective_gradient(rows, LAYOUT, one, "rbf", "elbo")
    assert torch.isnan(value[0])
    other = Batch(*(part[1:] for part in one))
    alone = objective_gradient(rows[1:], LAYOUT, other, "rbf", "elbo")
    torch.testing.assert_close(value[1:], alone[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient[1:], alone[1], rtol=1e-10, atol=1e-10)


def test_joint_prior_of_a_process_is_its_kernel() -> None:
    own = SVGP(random_rows(1, LAYOUT)[0], LAYOUT, "rbf", CUBE)
    X = uniform(4, 3)
    parts = own.parameters
    r2 = squared_distances((X / parts.lengthscale).unsqueeze(0), (X / parts.lengthscale).unsqueeze(0))[0]
    torch.testing.assert_close(own.prior(X, X), parts.outputscale * (-0.5 * r2).exp())

"""A sparse process in the problem's units."""

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, PosteriorMean
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from hypothesis import given
from hypothesis import strategies as st
from linear_operator.utils.errors import NotPSDError
from sparse_cases import CUBE, ELSEWHERE, KERNELS, process, random_rows, uniform
from sparse_gpytorch import gpytorch_model

from plumbline.models.algebra import SparseKernel
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.standardisation import Standardisation, standardisation_of
from plumbline.models.svgp.cross_covariance import JITTER
from plumbline.models.svgp.objective import Layout, forward
from plumbline.models.svgp.process import SVGP


def somewhere(*size: int, seed: int = 3) -> torch.Tensor:
    return ELSEWHERE.points(uniform(*size, 3, seed=seed))


@pytest.mark.parametrize("kernel", KERNELS)
def test_moments_are_those_of_a_forward_pass(kernel: SparseKernel) -> None:
    own, X = process(kernel), somewhere(4, 5)
    mean, covariance = own.posterior_moments(X)
    same, variance = own.posterior_moments(X, joint=False)
    passed = forward(own.row[None], own.layout, ELSEWHERE.inputs(X).reshape(1, 20, 3), kernel)
    torch.testing.assert_close(mean, -70 + 12 * passed.mean.reshape(4, 5), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(variance, 144 * passed.variance.reshape(4, 5), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(covariance.diagonal(dim1=-2, dim2=-1), variance, rtol=1e-9, atol=1e-9)
    assert torch.equal(same, mean)
    torch.testing.assert_close(covariance, covariance.mT, rtol=1e-9, atol=1e-9)
    assert (torch.linalg.eigvalsh(covariance) > 0).all()


def test_moments_of_single_points_and_of_deep_batches() -> None:
    own, X = process(), somewhere(2, 3, 4)
    mean, covariance = own.posterior_moments(X)
    assert (mean.shape, covariance.shape) == ((2, 3, 4), (2, 3, 4, 4))
    alone, spread = own.posterior_moments(X[1, 2])
    torch.testing.assert_close(mean[1, 2], alone)
    torch.testing.assert_close(covariance[1, 2], spread)


def test_far_from_the_inducing_points_it_is_the_prior() -> None:
    own = process()
    mean, variance = own.posterior_moments(ELSEWHERE.points(50 + uniform(1, 3)), joint=False)
    parts = own.parameters
    assert mean.item() == pytest.approx(-70 + 12 * parts.constant.item())
    assert variance.item() == pytest.approx(144 * (parts.outputscale.item() + JITTER))


def test_posterior_through_an_acquisition_is_gpytorchs() -> None:
    own, X = process("matern52"), somewhere(6, 1)
    here, there = (LogExpectedImprovement(model, -65.0)(X) for model in (ProcessModel(own), gpytorch_model(own)))
    torch.testing.assert_close(here, there, rtol=1e-7, atol=1e-7)


def test_noise_is_added_where_it_is_asked_for() -> None:
    own, X = process(), somewhere(3, 2)
    quiet = ProcessModel(own).posterior(X).covariance_matrix
    noise = own.noise_variance * torch.eye(2).double()
    assert own.noise_variance == pytest.approx(144 * own.parameters.noise.item())
    torch.testing.assert_close(ProcessModel(own).posterior(X, observation_noise=True).covariance_matrix, quiet + noise)
    torch.testing.assert_close(ProcessModel(own, noisy=True).posterior(X).covariance_matrix, quiet + noise)


def test_posteriors_are_transformed() -> None:
    own, X = process(), somewhere(3, 1)
    turned = ScalarizedPosteriorTransform(torch.tensor([-2.0]).double(), offset=1.0)
    plain = PosteriorMean(ProcessModel(own))(X)
    torch.testing.assert_close(PosteriorMean(ProcessModel(own), posterior_transform=turned)(X), 1 - 2 * plain)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_in_points_are_finite_on_inducing_points_and_right_elsewhere(kernel: SparseKernel) -> None:
    own = process(kernel)
    X = somewhere(3, 2)
    assert torch.autograd.gradcheck(
        lambda one: own.posterior_moments(one), X.clone().requires_grad_(), atol=1e-3, rtol=1e-4
    )
    there = ELSEWHERE.points(own.parameters.inducing[0, :2]).requires_grad_()
    mean, covariance = own.posterior_moments(there)
    (slope,) = torch.autograd.grad(mean.sum() + covariance.sum(), there)
    assert torch.isfinite(slope).all()


def test_other_units_are_other_words_for_the_same_beliefs() -> None:
    own, X = process(), somewhere(4, 3)
    other = own.restandardised(Standardisation(ELSEWHERE.low, ELSEWHERE.width, 3.0, 40.0))
    assert other.standardisation.scale == 40.0
    (mean, covariance), (here, spread) = own.posterior_moments(X), other.posterior_moments(X)
    torch.testing.assert_close(mean, here, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(covariance, spread, rtol=1e-3, atol=2e-2)
    assert other.noise_variance == pytest.approx(own.noise_variance)


def test_a_process_without_a_factor_says_so() -> None:
    layout = Layout(60, 3)
    rows = random_rows(1, layout)
    parts = layout.parts(rows)
    parts.raw_lengthscale.fill_(10.0)
    parts.raw_outputscale.fill_(1e13)
    with pytest.raises(NotPSDError, match="no Cholesky factor"):
        SVGP(rows[0], layout, "rbf", CUBE).posterior_moments(uniform(2, 3))


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_units_of_a_box_and_of_observations(location: float, scale: float) -> None:
    bounds = torch.tensor([[-2.0, 5.0], [2.0, 6.0]]).double()
    y = location + scale * torch.tensor([-1.0, 0.0, 1.0]).double()
    standardisation = standardisation_of(bounds, y)
    assert torch.equal(standardisation.inputs(bounds), torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double())
    torch.testing.assert_close(standardisation.points(standardisation.inputs(bounds)), bounds)
    standard = standardisation.outputs(y)
    assert standard.mean().item() == pytest.approx(0, abs=1e-6)
    assert standard.std().item() == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("y", [[5.0], [1e9] * 4, [0.0, 0.0], [0.1 + 0.2, 0.3]])
def test_equal_observations_are_zero_in_units_of_their_own(y: list[float]) -> None:
    standardisation = standardisation_of(torch.tensor([[0.0], [1.0]]).double(), torch.tensor(y).double())
    assert standardisation.scale == 1.0
    assert standardisation.outputs(torch.tensor(y).double()).abs().max() < 1e-9

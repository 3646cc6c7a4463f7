"""The conversion of a sparse process to a model of GPyTorch."""

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import ExpectedImprovement, qExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import VariationalELBO
from sparse_cases import ELSEWHERE, KERNELS, normal, process, uniform
from sparse_gpytorch import gpytorch_model, parameters_of

from plumbline.models.algebra import SparseKernel
from plumbline.models.botorch_model import ProcessModel

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning")


def somewhere(*size: int, seed: int = 3) -> torch.Tensor:
    return ELSEWHERE.points(uniform(*size, 3, seed=seed))


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_same_posterior(kernel: SparseKernel, noisy: bool) -> None:
    own = process(kernel)
    X = somewhere(5, 4)
    here = ProcessModel(own).posterior(X, observation_noise=noisy)
    there = gpytorch_model(own).posterior(X, observation_noise=noisy)
    assert here.mean.std() > 0.1  # it has something to say
    torch.testing.assert_close(here.mean, there.mean, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(here.covariance_matrix, there.covariance_matrix, rtol=1e-8, atol=1e-8 * 12**2)


@pytest.mark.parametrize("kernel", KERNELS)
def test_acquisitions_are_equal_and_so_are_their_gradients(kernel: SparseKernel) -> None:
    own = process(kernel)
    best = ProcessModel(own).posterior(somewhere(20)).mean.max()
    for q in (1, 3):
        found = []
        for model in (ProcessModel(own), gpytorch_model(own)):
            X = somewhere(6, q).requires_grad_()
            sampler = SobolQMCNormalSampler(torch.Size([64]), seed=0)
            utility = qExpectedImprovement(model, best, sampler=sampler) if q > 1 else ExpectedImprovement(model, best)
            value = utility(X)
            found.append((value.detach(), torch.autograd.grad(value.sum(), X)[0]))
        (here, slope), (there, other) = found
        assert here.max() > 0.1
        torch.testing.assert_close(here, there, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(slope, other, rtol=1e-6, atol=1e-8)


class Indefinite:
    """A process whose covariance of two points has a negative eigenvalue."""

    noise_variance = 0.0

    def posterior_moments(self, X: torch.Tensor, joint: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
        covariance = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64)
        return torch.zeros(2, dtype=torch.float64), covariance


def test_a_posterior_may_have_no_factor_as_long_as_nobody_samples_it() -> None:
    posterior = ProcessModel(Indefinite()).posterior(uniform(2, 3))
    torch.testing.assert_close(posterior.variance.squeeze(-1), torch.ones(2, dtype=torch.float64))


def test_it_can_be_trained_on() -> None:
    own = process()
    model = gpytorch_model(own)
    model.train()
    X, y = uniform(30, 3, seed=5), normal(30, seed=6)
    objective = VariationalELBO(model.likelihood, model.model, 30)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    values = []
    for _ in range(5):
        optimiser.zero_grad()
        loss = -objective(model.model(X), y)
        loss.backward()
        optimiser.step()
        values.append(-loss.item())
    assert values[-1] > values[0]
    row = torch.cat([parameter.detach().flatten() for parameter in parameters_of(model)])
    assert (row - own.row).abs().max() > 0.01
    points = somewhere(4)
    there = model.eval().posterior(points).mean
    torch.testing.assert_close(ProcessModel(replace(own, row=row)).posterior(points).mean, there, rtol=1e-8, atol=1e-8)


def test_the_process_stays_as_it_is() -> None:
    own = process()
    before = own.row.clone()
    model = gpytorch_model(own)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert torch.equal(own.row, before)

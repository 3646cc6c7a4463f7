"""Joint draws of f against the posterior's moments."""

import math

import pytest
import torch
from torch import Tensor

from plumbline.methods.conformal.augmented import augment
from plumbline.methods.conformal.baseline import BaselineDraws, draw_baseline
from plumbline.models.gp.process import GP

K = 40_000
NEW = torch.tensor([[[0.2, 0.7], [0.8, 0.3]]], dtype=torch.float64)
"""A batch of two points."""


@pytest.fixture(scope="module")
def draws(process: GP) -> BaselineDraws:
    return draw_baseline([process], K, torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def at_new(draws: BaselineDraws, process: GP) -> tuple[Tensor, Tensor]:
    """Labels (whitened) and f at the new points, `K x 2` each."""
    generator = torch.Generator().manual_seed(1)
    for_noise, for_f = (torch.randn(K, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    labels, f, _ = draws.draw(0, augment(process, NEW), for_noise, for_f)
    return labels.detach().reshape(K, 2), f.detach().reshape(K, 2)


@pytest.fixture(scope="module")
def posterior(process: GP) -> tuple[Tensor, Tensor]:
    """Mean and covariance of f at the data and the new points, by linear algebra."""
    with torch.no_grad():
        inputs = torch.cat([process.U, NEW[0]])
        n = len(process.y)
        prior, mean = (
            process.prior(inputs, inputs),
            torch.full((len(inputs),), process.at.constant, dtype=torch.float64),
        )
        gains = prior[:, :n] @ torch.linalg.inv(prior[:n, :n] + process.noise * torch.eye(n).double())
        return mean + gains @ (process.y - mean[:n]), prior - gains @ prior[:n]


def assert_moments(found: Tensor, mean: Tensor, covariance: Tensor) -> None:
    """Within 4.5 standard errors of a Gaussian's."""
    variance = covariance.diagonal()
    assert ((found.mean(dim=0) - mean).abs() <= 4.5 * (variance / K).sqrt()).all()
    errors = ((variance[:, None] * variance + covariance.square()) / K).sqrt()
    assert ((found.mT.cov() - covariance).abs() <= 4.5 * errors).all()


def test_draws_at_the_data_have_the_posteriors_moments(draws: BaselineDraws, posterior: tuple[Tensor, Tensor]) -> None:
    n = draws.values.shape[1]
    assert draws.values.shape == (K, 7, 1)
    assert_moments(draws.values.squeeze(-1), posterior[0][:n], posterior[1][:n, :n])


def test_draws_at_new_points_are_joint_with_those_at_the_data(
    draws: BaselineDraws, at_new: tuple[Tensor, Tensor], posterior: tuple[Tensor, Tensor]
) -> None:
    """All means, variances and covariances at once."""
    assert_moments(torch.cat([draws.values.squeeze(-1), at_new[1]], dim=-1), *posterior)


def test_labels_are_noisy_draws_of_the_prediction(
    at_new: tuple[Tensor, Tensor], process: GP, posterior: tuple[Tensor, Tensor]
) -> None:
    """Whitened, they are standard normal; unwhitened, f and noise."""
    assert_moments(at_new[0], torch.zeros(2).double(), torch.eye(2).double())
    system = augment(process, NEW)
    noise = (system.mean[0] + at_new[0] @ system.root[0].mT - at_new[1]).detach()
    assert_moments(noise, torch.zeros(2).double(), process.noise * torch.eye(2).double())
    correlation = torch.cat([noise, at_new[1]], dim=-1).mT.corrcoef()[:2, 2:]
    assert correlation.abs().max() < 4.5 / math.sqrt(K)


def test_a_new_point_at_the_data_has_the_value_there(draws: BaselineDraws, process: GP) -> None:
    U = process.U[2:3].unsqueeze(0)
    zero = torch.zeros(K, 1, dtype=torch.float64)
    _, f, _ = draws.draw(0, augment(process, U), zero, zero)
    torch.testing.assert_close(f[0, :, 0], draws.values[:, 2, 0], rtol=0, atol=1e-5)


def test_dual_is_the_solution_of_the_prior_system(process: GP, draws: BaselineDraws) -> None:
    values = process.at.constant + draws.dual[:50, :, 0] @ process.prior(process.U, process.U)
    torch.testing.assert_close(values, draws.values[:50, :, 0])


def test_distinct_draws_take_turns(process: GP) -> None:
    few = draw_baseline([process, process], 10, torch.Generator().manual_seed(0), distinct=4)
    assert few.values.shape == few.dual.shape == (10, 7, 2)
    assert torch.equal(few.values[4:8], few.values[:4])
    assert torch.equal(few.dual[8:], few.dual[:2])
    assert len({tuple(row) for row in few.values[..., 0].tolist()}) == 4
    assert not torch.allclose(few.values[..., 0], few.values[..., 1]), "outcomes are independent"


def test_same_generator_same_draws(process: GP) -> None:
    first, second, other = (draw_baseline([process], 5, torch.Generator().manual_seed(s)).values for s in (3, 3, 4))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)

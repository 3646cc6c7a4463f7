"""Draws of f: the moments that they have, and what known values do to them."""

import pytest
import torch
from botorch.sampling import SobolQMCNormalSampler
from torch import Size, Tensor

from plumbline.acquisition.draws import KnownDraws, draws_at, normal_draws
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned

BOUNDS = torch.tensor([[-2.0, -2.0], [3.0, 3.0]], dtype=torch.float64)


def somewhere(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 - 2


@pytest.fixture
def process() -> GP:
    X = somewhere(7, 2)
    at = Hyperparameters(0.1, X.new_tensor([0.05]), 1.4, X.new_tensor([0.4, 0.6]))
    return conditioned(X, 70 + 9 * torch.sin(X.sum(-1, keepdim=True)), BOUNDS, "matern52", at)


def test_base_samples_are_those_of_botorchs_sampler(process: GP) -> None:
    X = somewhere(3, 2, seed=1)
    drawn = SobolQMCNormalSampler(Size([16]), seed=7)(process.model.posterior(X)).detach()
    f, _ = draws_at(process, X.unsqueeze(0), normal_draws(16, 7)(3))
    torch.testing.assert_close(f[0].mT, drawn[..., 0])


def test_no_points_have_no_base_samples() -> None:
    assert normal_draws(16, 7)(0).shape == (0, 16)


def test_given_its_draws_f_is_what_it_would_be_jointly(process: GP) -> None:
    """Moments of many draws of both are the joint ones."""
    known, X = somewhere(2, 2, seed=1), somewhere(3, 2, seed=2)
    z = normal_draws(2**14, 7)(5)
    draws = KnownDraws(process, known, z[:2])
    f, _ = draws.at(X.unsqueeze(0), z[2:])
    both = torch.cat([draws.values, f[0]])
    mean, covariance = process.posterior_moments(torch.cat([known, X]))
    torch.testing.assert_close(both.mean(-1), mean, rtol=0.0, atol=0.01)
    torch.testing.assert_close(torch.cov(both), covariance, rtol=0.0, atol=0.02 * float(covariance.diagonal().max()))


def test_a_known_value_is_drawn_again(process: GP) -> None:
    known = somewhere(2, 2, seed=1)
    z = normal_draws(16, 7)(3)
    draws = KnownDraws(process, known, z[:2])
    f, _ = draws.at(known[:1].unsqueeze(0), z[2:])
    torch.testing.assert_close(f[0], draws.values[:1], rtol=0.0, atol=1e-2)


def test_where_nothing_is_known_draws_are_fresh(process: GP) -> None:
    X, z = somewhere(4, 3, 2, seed=2), normal_draws(16, 7)(3)
    grad_f = somewhere(4, 3, 16, seed=3)
    (f, vjp), (fresh, pull_fresh) = (
        KnownDraws(process, X[0, :0], z[:0]).at(X, z),
        draws_at(process, X, z),
    )
    torch.testing.assert_close(f, fresh)
    torch.testing.assert_close(vjp(grad_f), pull_fresh(grad_f))


@pytest.mark.parametrize("known", [0, 2])
def test_gradients_are_those_of_finite_differences(process: GP, known: int) -> None:
    X, z, grad_f = somewhere(1, 2, 2, seed=2), normal_draws(8, 7)(known + 2), somewhere(1, 2, 8, seed=3)
    draws = KnownDraws(process, somewhere(known, 2, seed=1), z[:known])
    _, vjp = draws.at(X, z[known:])
    direction, step = somewhere(1, 2, 2, seed=4), 1e-6
    ends = [float((draws.at(X + s * direction, z[known:])[0] * grad_f).sum()) for s in (step, -step)]
    assert float((vjp(grad_f) * direction).sum()) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)

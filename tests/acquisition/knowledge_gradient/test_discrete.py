"""The knowledge gradient over finitely many points, against its definition and BoTorch's."""

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient
from botorch.sampling import SobolQMCNormalSampler
from exact_gpytorch import gpytorch_model
from processes import made, somewhere

from plumbline.acquisition.knowledge_gradient.discrete import DiscreteKnowledgeGradient
from plumbline.acquisition.knowledge_gradient.mean_update import Targets, standard_normal


def test_values_are_the_expected_gain_of_the_greatest_mean() -> None:
    process, points, X = made(8, 2, "matern52", 0, noise=0.1), somewhere(20, 2, seed=1), somewhere(50, 1, 2, seed=2)
    utility = DiscreteKnowledgeGradient(process, points, 32)
    targets = Targets(process, points)
    gain, _ = targets.mean_changes(X.squeeze(-2))
    means = targets.mean + gain.unsqueeze(-2) * standard_normal(32).unsqueeze(-1)
    torch.testing.assert_close(utility(X), means.amax(-1).mean(-1) - targets.mean.max())
    assert (utility(X) >= -1e-6).all()
    assert torch.equal(utility.value_and_gradient(X)[0], utility(X))


def test_finite_differences() -> None:
    utility = DiscreteKnowledgeGradient(made(8, 2, "rbf", 1, noise=0.1), somewhere(20, 2, seed=1), 16)
    assert torch.autograd.gradcheck(utility, (somewhere(4, 1, 2, seed=2).requires_grad_(),), rtol=1e-3)


@pytest.mark.slow
def test_over_a_fine_grid_it_is_botorchs() -> None:
    process = made(5, 1, "matern52", 3, noise=0.05)
    grid = torch.linspace(-2, 3, 201, dtype=torch.float64).unsqueeze(-1)
    ours = DiscreteKnowledgeGradient(process, grid, 512)
    X = somewhere(3, 1, 1, seed=5)
    one_shot = qKnowledgeGradient(
        gpytorch_model(process), 256, SobolQMCNormalSampler(torch.Size([256]), seed=0), current_value=ours.best
    )
    for x, found in zip(X, ours(X), strict=True):
        fantasies = one_shot.model.fantasize(x, one_shot.sampler)
        means = fantasies.posterior(grid).mean.reshape(256, len(grid))
        # One-shot, at the maximisers of the fantasies.
        value = one_shot(torch.cat([x, grid[means.argmax(-1)]]).unsqueeze(0))
        torch.testing.assert_close(found, value.detach().squeeze(), rtol=0.03, atol=0.01)


def test_pending_points_count_as_seen() -> None:
    process, points, X = made(8, 2, "matern52", 0, noise=0.1), somewhere(20, 2, seed=1), somewhere(5, 1, 2, seed=2)
    utility = DiscreteKnowledgeGradient(process, points, 16)
    before = utility(X)
    utility.set_X_pending(X[0])
    torch.testing.assert_close(utility(X), DiscreteKnowledgeGradient(process.kriging_believer(X[0]), points, 16)(X))
    assert utility(X)[0] < before[0]
    utility.set_X_pending(None)
    assert utility(X).tolist() == pytest.approx(before.tolist())

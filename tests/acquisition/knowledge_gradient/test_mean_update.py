"""What an observation does to means, against processes that are conditioned on it."""

from dataclasses import replace

import pytest
import torch
from processes import made, somewhere

from plumbline.acquisition.knowledge_gradient.mean_update import (
    Targets,
    standard_normal,
    updated_means,
)
from plumbline.models.gp.process import GP


def process_of(kernel: str = "matern52", deviation: float = 1.0) -> GP:
    return replace(made(9, 3, kernel, 1, noise=0.1), deviation=deviation)


def after(process: GP, query: torch.Tensor, Z: float, X: torch.Tensor) -> torch.Tensor:
    """Return the means at X once an observation at a query came Z deviations above its mean."""
    wide = process.absorbed
    mean, variance = wide.posterior_moments(query, joint=False)
    noise = wide.at.noise[0] * wide.standardisation.scale**2
    return (
        wide.condition_on_observations(query, (mean + Z * (variance + noise).sqrt()).unsqueeze(-1))
        .marginal_posterior(X)
        .mean
    )


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("deviation", [1.0, 1.7])
def test_gains_are_those_of_conditioning(kernel: str, deviation: float) -> None:
    process, queries, X = process_of(kernel, deviation), somewhere(4, 3, seed=2), somewhere(6, 3, seed=3)
    targets = Targets(process, X)
    gains, _ = targets.mean_changes(queries)
    for query, gain in zip(queries, gains, strict=True):
        torch.testing.assert_close(targets.mean + 1.3 * gain, after(process, query.unsqueeze(0), 1.3, X))


def test_each_query_may_have_targets_of_its_own() -> None:
    process, queries, X = process_of(), somewhere(4, 3, seed=2), somewhere(4, 5, 3, seed=3)
    gains, _ = Targets(process, X).mean_changes(queries)
    alone = [Targets(process, X[i]).mean_changes(queries[i : i + 1])[0][0] for i in range(4)]
    torch.testing.assert_close(gains, torch.stack(alone))
    assert Targets(process, X).mean.shape == (4, 5)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("deviation", [1.0, 1.7])
def test_gradients_of_gains_are_finite_differences(own: bool, deviation: float) -> None:
    process, queries = process_of(deviation=deviation), somewhere(4, 3, seed=2)
    targets = Targets(process, somewhere(4, 5, 3, seed=3) if own else somewhere(5, 3, seed=3))
    weights = torch.randn(4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gradient = targets.mean_changes(queries)[1](weights)
    for j in range(3):
        aside = 1e-5 * torch.eye(3, dtype=torch.float64)[j]
        slope = (targets.mean_changes(queries + aside)[0] - targets.mean_changes(queries - aside)[0]) / 2e-5
        torch.testing.assert_close(gradient[:, j], (weights * slope).sum(-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("deviation", [1.0, 1.7])
def test_updated_means_and_their_gradients(deviation: float) -> None:
    process, queries, X = process_of(deviation=deviation), somewhere(4, 3, seed=2), somewhere(4, 3, seed=3)
    Z = torch.tensor([1.3, -0.4, 0.0, 2.0], dtype=torch.float64)
    means = updated_means(process, queries, Z)
    value, gradient = means(X)
    for i in range(4):
        expected = after(process, queries[i : i + 1], Z[i].item(), X[i : i + 1])
        torch.testing.assert_close(value[i : i + 1], expected)
    for j in range(3):
        aside = 1e-5 * torch.eye(3, dtype=torch.float64)[j]
        slope = (means(X + aside)[0] - means(X - aside)[0]) / 2e-5
        torch.testing.assert_close(gradient[:, j], slope, rtol=1e-5, atol=1e-5)


def test_what_is_believed_moves_no_mean_and_narrows_the_rest() -> None:
    process, X, at = process_of(), somewhere(2, 3, seed=2), somewhere(20, 3, seed=3)
    before, now = process.marginal_posterior(at), process.kriging_believer(X).marginal_posterior(at)
    torch.testing.assert_close(now.mean, before.mean)
    assert (now.sd <= before.sd + 1e-9).all()
    assert (now.sd < 0.999 * before.sd).any()


def test_quantiles_are_a_normal_sample() -> None:
    Z = standard_normal(64)
    assert Z.mean().item() == pytest.approx(0.0, abs=1e-12)
    assert Z.square().mean().item() == pytest.approx(1.0, abs=0.03)

"""Stochastic gradients of the knowledge gradient, against differences of what they are gradients of."""

import pytest
import torch
from processes import made, somewhere
from torch import Generator

from plumbline.acquisition.knowledge_gradient import stochastic
from plumbline.acquisition.knowledge_gradient.discrete import DiscreteKnowledgeGradient
from plumbline.acquisition.knowledge_gradient.mean_update import Targets, updated_means
from plumbline.acquisition.knowledge_gradient.stochastic import (
    AscentOptions,
    ascend,
    envelope_gradient,
    greatest_updated,
)

BOUNDS = torch.tensor([[-2.0], [3.0]], dtype=torch.float64)
GRID = torch.linspace(-2, 3, 2001, dtype=torch.float64).unsqueeze(-1)


def process():
    return made(5, 1, "matern52", 3, noise=0.05)


def test_the_updated_mean_is_greatest_where_the_climb_ends() -> None:
    queries, few = somewhere(3, 1, seed=1), GRID[::100]
    Z = torch.randn(3, 4, generator=Generator().manual_seed(0), dtype=torch.float64)
    found = greatest_updated(process(), queries, Z, few, BOUNDS, 50)
    gain, _ = Targets(process(), GRID).mean_changes(queries)
    greatest = (Targets(process(), GRID).mean + gain.unsqueeze(-2) * Z.unsqueeze(-1)).amax(-1)
    there, _ = updated_means(process(), queries.repeat_interleave(4, 0), Z.flatten())(found.flatten(0, 1))
    assert found.shape == (3, 4, 1)
    torch.testing.assert_close(there.view(3, 4), greatest, atol=1e-3, rtol=0)


def test_the_maximiser_may_be_held_where_it_is() -> None:
    """The envelope theorem: the gradient of a maximum is that at its maximiser."""
    queries, Z, step = somewhere(6, 1, seed=1), torch.full((6, 1), 0.8, dtype=torch.float64), 1e-4

    def greatest(at: torch.Tensor) -> torch.Tensor:
        found = greatest_updated(process(), at, Z, GRID[::20], BOUNDS, 100)
        return updated_means(process(), at, Z.flatten())(found.squeeze(1))[0]

    found = greatest_updated(process(), queries, Z, GRID[::20], BOUNDS, 100)
    _, vjp = Targets(process(), found).mean_changes(queries)
    slope = (greatest(queries + step) - greatest(queries - step)) / (2 * step)
    torch.testing.assert_close(vjp(Z).squeeze(-1), slope, rtol=1e-2, atol=1e-3)


@pytest.mark.slow
def test_the_estimate_has_the_mean_of_the_gradient_and_less_noise() -> None:
    judge = DiscreteKnowledgeGradient(process(), GRID[::4], 256)
    queries = somewhere(4, 1, seed=6)
    _, exact = judge.value_and_gradient(queries.unsqueeze(-2))
    Z = torch.randn(4, 4000, generator=Generator().manual_seed(0), dtype=torch.float64)
    gain, _ = judge.targets.mean_changes(queries)
    found = GRID[::4][(judge.targets.mean + gain.unsqueeze(-2) * Z.unsqueeze(-1)).argmax(-1)]
    best = GRID[::4][judge.targets.mean.argmax()]
    estimate = envelope_gradient(process(), queries, Z, found, best)
    torch.testing.assert_close(estimate, exact.squeeze(-2), rtol=0.15, atol=0.02)
    single = [envelope_gradient(process(), queries, Z[:, i : i + 1], found[:, i : i + 1], best) for i in range(200)]
    _, plain = Targets(process(), found[:, :200]).mean_changes(queries)
    noisy = [plain(Z[:, :200] * (torch.arange(200) == i)) for i in range(200)]
    assert torch.stack(single).std(0).mean() < torch.stack(noisy).std(0).mean()


@pytest.mark.slow
def test_the_best_end_is_near_the_maximum() -> None:
    judge = DiscreteKnowledgeGradient(process(), GRID[::10], 64)
    values = judge(GRID[::10].unsqueeze(-2))
    starts = torch.linspace(-1.9, 2.9, 8, dtype=torch.float64).unsqueeze(-1)
    options = AscentOptions(steps=60)
    ends, met = ascend(process(), starts, GRID[::50], BOUNDS, options, Generator().manual_seed(0))
    assert ((ends >= BOUNDS[0]) & (ends <= BOUNDS[1])).all()
    assert met.shape == (64, 1)
    assert judge(ends.unsqueeze(-2)).max() > 0.95 * values.max()


@pytest.mark.slow
def test_inner_climbs_begin_where_those_of_the_step_before_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one iteration each, they come to the top together; alone none would."""
    monkeypatch.setattr(stochastic, "INNER", 1)
    options = AscentOptions(steps=30)
    _, met = ascend(process(), somewhere(2, 1, seed=4), GRID[:1], BOUNDS, options, Generator().manual_seed(0))
    mean, ends = Targets(process(), GRID).mean, Targets(process(), met).mean
    alone = greatest_updated(process(), GRID[:1], torch.zeros(1, 1, dtype=torch.float64), GRID[:1], BOUNDS, 1)
    span = mean.max() - mean.min()
    assert mean.max() - ends.median() < 0.1 * span
    assert mean.max() - Targets(process(), alone.view(1, 1)).mean > 0.3 * span


def test_starts_are_left_as_they_were_and_one_seed_has_one_end() -> None:
    starts = somewhere(2, 1, seed=4)
    before, options = starts.clone(), AscentOptions(steps=3)
    first, again = (
        ascend(process(), starts, GRID[::50], BOUNDS, options, Generator().manual_seed(7))[0] for _ in range(2)
    )
    assert torch.equal(starts, before)
    assert torch.equal(first, again)

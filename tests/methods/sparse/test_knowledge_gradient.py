"""The knowledge gradient of a sparse process over given maximisers."""

import pytest
import torch
from point_posteriors import KERNELS, LAYOUT, READINGS, normal, rows_of, sight_of, uniform

from plumbline.methods.sparse import knowledge_gradient
from plumbline.methods.sparse.knowledge_gradient import SparseKnowledgeGradient
from plumbline.methods.sparse.reading import Reading
from plumbline.methods.sparse.soft_knowledge_gradient import imagined, mean_update
from plumbline.models.algebra import SparseKernel
from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp.process import SVGP

UNITS = Standardisation(torch.tensor([-2.0, 0.0]).double(), torch.tensor([4.0, 10.0]).double(), 40.0, 8.0)


def case(
    kernel: SparseKernel = "rbf", q: int = 2, reading: Reading = "noise-free"
) -> tuple[SparseKnowledgeGradient, torch.Tensor]:
    """Return the gradient of a process, and five batches of queries."""
    process = SVGP(rows_of(1)[0], LAYOUT, kernel, UNITS)
    maximisers = UNITS.points(uniform(6, 2, seed=3))
    return SparseKnowledgeGradient(process, maximisers, normal(7, 3), reading), UNITS.points(uniform(5, q, 2, seed=5))


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_it_is_the_mean_update_by_brute_force(kernel: SparseKernel, reading: Reading) -> None:
    gradient, X = case(kernel, reading=reading)
    values = gradient(X)
    for n in range(5):
        points = UNITS.inputs(torch.cat([X[n], gradient.maximisers])).unsqueeze(0)
        posteriors = sight_of(gradient.process.row[None], points, kernel)
        queries = posteriors.part(slice(2))
        update = mean_update(posteriors, queries, imagined(queries, gradient.base[None, :, :2], reading), reading)
        every = torch.stack(
            [
                torch.stack([update.mean[0] + update.gain[0, :, j] * update.surprise[0, i, j] for j in range(2)])
                for i in range(7)
            ]
        )
        torch.testing.assert_close(gradient.means(X)[n], every, rtol=1e-9, atol=1e-9)
        assert values[n].item() == pytest.approx(every.amax((-1, -2)).mean().item(), rel=1e-9)
        best = gradient.best_maximisers(X[n])
        for i in range(7):
            winner = max(range(6), key=lambda t: every[i, :, t].max().item())
            assert torch.equal(best[i], gradient.maximisers[winner])


def test_the_memory_is_bounded_and_the_values_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient, X = case()
    whole = gradient(X)
    monkeypatch.setattr(knowledge_gradient, "AT_ONCE", 2)
    torch.testing.assert_close(gradient(X), whole, rtol=1e-12, atol=1e-12)


def test_pending_points_are_queries_too() -> None:
    gradient, X = case()
    pending = UNITS.points(uniform(1, 2, seed=9))
    joined = gradient(torch.cat([X, pending.expand(5, 1, 2)], 1))
    plain = gradient(X)
    gradient.set_X_pending(pending)
    assert torch.equal(gradient(X), joined)
    assert (joined >= plain).all()
    assert (joined > plain).any()


def test_an_observation_is_never_worth_less_than_none() -> None:
    gradient, X = case(q=1)
    base = gradient.base
    gradient.base = torch.cat([base, -base])  # in pairs, so that no sample is lucky
    none = gradient._at.location.max()
    assert (gradient(X) >= none - 1e-12).all()
    assert gradient(X).max() > none + 1e-3


@pytest.mark.parametrize("reading", READINGS)
def test_gradients_in_the_queries(reading: Reading) -> None:
    gradient, X = case("matern52", reading=reading)
    assert torch.autograd.gradcheck(gradient, X[:2].clone().requires_grad_(), atol=1e-5, rtol=1e-4)
    there = UNITS.points(gradient.process.parameters.inducing[0, :2])[None].requires_grad_()
    (slope,) = torch.autograd.grad(gradient(there).sum(), there)
    assert torch.isfinite(slope).all()

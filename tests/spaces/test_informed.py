"""A box whose search starts at the incumbent, at maximisers of posterior samples, and everywhere."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from plumbline.acquisition.analytic import AnalyticAcquisition, log_expected_improvement
from plumbline.core.history import History
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.process import GP
from plumbline.spaces.box import Box
from plumbline.spaces.informed import InformedBox, in_turn, sample_maximisers
from plumbline.spaces.search import MultiStart, SearchOptions

D = 20
BOUNDS = torch.tensor([[-1.0] * D, [2.0] * D], dtype=torch.float64)
NOTHING = History(BOUNDS[:0], BOUNDS[:0, :1])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def value(X: Tensor) -> Tensor:
    return -(X - 0.3).square().sum(-1, keepdim=True)


def data() -> Tensor:
    """Some points everywhere, and some where it is best."""
    spread = Box(BOUNDS).draw(40, NOTHING, generator())
    return torch.cat([spread, 0.3 + 0.05 * torch.randn(20, D, generator=generator(), dtype=torch.float64)])


@pytest.fixture(scope="module")
def process() -> GP:
    X = data()
    return fit_process(X, value(X), BOUNDS, ModelOptions())


@pytest.fixture(scope="module")
def informed(process: GP) -> InformedBox:
    X = data()
    return InformedBox(BOUNDS, ProcessModel(process), X[value(X).argmax()])


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 64])
def test_raw_samples_are_of_three_kinds(informed: InformedBox, n: int, q: int) -> None:
    kinds = informed.raw_samples(q, n, seed=4)
    assert all(kind.shape[1:] == (q, D) for kind in kinds)
    assert n <= sum(map(len, kinds)) <= n + 1, "at least one of a kind"
    if n >= 8:
        assert [len(kind) / n for kind in kinds] == [0.5, 0.25, 0.25]
        around = kinds[1]
        assert torch.equal(around[0], informed.incumbent.expand(q, D))
        assert (around - informed.incumbent).abs().mean() < (kinds[0] - informed.incumbent).abs().mean() / 3
    for kind, again in zip(kinds, informed.raw_samples(q, n, seed=4), strict=True):
        assert torch.equal(kind, again)
        assert ((BOUNDS[0] <= kind) & (BOUNDS[1] >= kind)).all()


def test_half_of_the_examined_points_differ_from_the_incumbent_in_some_inputs(process: GP) -> None:
    bounds = torch.tensor([[0.0] * 100, [1.0] * 100], dtype=torch.float64)
    space = InformedBox(bounds, ProcessModel(process), torch.full((100,), 0.5, dtype=torch.float64))
    differ = (space.examined(512, 0) != 0.5).sum(-1)
    assert (differ[256:] == 100).all()
    assert 15 < differ[:256].double().mean() < 25


@pytest.mark.parametrize("q", [1, 4])
def test_maximisers_of_samples_are_distinct_and_where_the_posterior_is_high(process: GP, q: int) -> None:
    points = Box(BOUNDS).draw(60, NOTHING, generator(1))
    found = sample_maximisers(ProcessModel(process), points, 50, q, seed=0)
    assert found.shape == (50, q, D)
    for batch in found:
        assert len({tuple(point) for point in batch.tolist()}) == q
    model = ProcessModel(process)
    means = [model.posterior(X).mean.mean() for X in (found.reshape(-1, D), points)]
    assert means[0] > means[1]


def test_a_posterior_that_is_known_has_the_same_maximisers_in_every_sample() -> None:
    X = torch.linspace(0, 1, 30, dtype=torch.float64).unsqueeze(-1)
    Y = torch.sin(6 * X)
    process = fit_process(X, Y, torch.tensor([[0.0], [1.0]]).double(), ModelOptions(), torch.zeros(1).double())
    found = sample_maximisers(ProcessModel(process), X, 20, 2, seed=0)
    best = Y[:, 0].topk(2).indices
    assert (found.squeeze(-1).sort(-1).values == X[best, 0].sort().values).all()


@settings(max_examples=40)
@given(st.lists(st.lists(st.floats(-9, 9), min_size=1, max_size=6), min_size=1, max_size=3))
def test_kinds_take_turns_and_the_best_comes_first(values: list[list[float]]) -> None:
    given_values = [torch.tensor(one, dtype=torch.float64) for one in values]
    kinds = [torch.stack([torch.full_like(one, i), one], -1).unsqueeze(1) for i, one in enumerate(given_values)]
    order = in_turn(kinds, given_values).squeeze(1)
    assert len(order) == sum(map(len, values))
    for i, one in enumerate(values):
        assert order[order[:, 0] == i][:, 1].tolist() == sorted(one, reverse=True)
    least = min(map(len, values))
    turns = order[: least * len(values), 0].view(least, len(values))
    assert (turns == torch.arange(len(values))).all()


def test_a_region_of_it_has_its_posterior_and_cuts_the_incumbent(informed: InformedBox) -> None:
    region = torch.stack([BOUNDS[1] - 0.1, BOUNDS[1]])
    inner = informed.within(region, NOTHING, 1)
    assert type(inner) is InformedBox
    assert inner.model is informed.model
    assert torch.equal(inner.bounds, region)
    assert ((region[0] <= inner.incumbent) & (region[1] >= inner.incumbent)).all()


def test_a_search_finds_more_than_one_that_starts_everywhere(process: GP, informed: InformedBox) -> None:
    """A few steps from where EI is next to nothing lead nowhere: it is great in a small part of twenty dimensions."""
    best = value(informed.incumbent.unsqueeze(0)).squeeze()
    options, found = SearchOptions(restarts=3, raw_samples=32, maxiter=3), []
    for space in (informed, Box(BOUNDS)):
        utility = AnalyticAcquisition(process, log_expected_improvement(best))
        found.append(
            [utility(space.maximise(utility, MultiStart(1, options, seed)).unsqueeze(0)).item() for seed in range(5)]
        )
    assert all(mine > other + 0.5 for mine, other in zip(*found, strict=True)), found

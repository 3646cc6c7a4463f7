"""Both searches of the knowledge gradient find its maximum, and a table's is the best row."""

import pytest
import torch
from situations import LINE, Situation, ask, on_a_line, table

from plumbline.acquisition.knowledge_gradient.discrete import DiscreteKnowledgeGradient
from plumbline.core.history import History
from plumbline.methods.base import build_method

THOROUGH = {"search": {"restarts": 6, "raw_samples": 64}, "fantasies": 32}


def noisy_line() -> Situation:
    place = on_a_line()
    noise = torch.randn(5, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Situation(place.domain, History(place.history.X, place.history.Y + 2 * noise))


@pytest.mark.parametrize("name", ["kg", "kg-sgd"])
def test_it_asks_where_the_mean_is_expected_to_gain_most(name: str) -> None:
    place = noisy_line()
    method = build_method(name, THOROUGH, place.domain)
    X = ask(method, place.history, 1).X
    grid = torch.linspace(*LINE[:, 0].tolist(), 401, dtype=torch.float64).unsqueeze(-1)
    exact = DiscreteKnowledgeGradient(method.fit(place.history), grid, 128)
    values = exact(grid.unsqueeze(-2))
    assert exact(X.unsqueeze(-2)).item() > 0.9 * values.max().item()


@pytest.mark.parametrize("name", ["kg", "kg-sgd"])
def test_in_a_table_all_rows_are_looked_at(name: str) -> None:
    place = table()
    method = build_method(name, THOROUGH, place.domain)
    proposal = ask(method, place.history, 1)
    points = torch.cat([place.domain.space.remaining(place.history), place.history.X])
    exact = DiscreteKnowledgeGradient(method.fit(place.history), points, 32)
    rest = place.domain.space.remaining(place.history)
    assert torch.equal(proposal.X[0], rest[exact(rest.unsqueeze(-2)).argmax()])

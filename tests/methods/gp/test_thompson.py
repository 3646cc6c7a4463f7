"""Thompson sampling asks where its draws are greatest."""

import pytest
import torch
from situations import ask, box, table

from plumbline.methods.base import build_method

THOROUGH = {"search": {"restarts": 8, "raw_samples": 128}}


def test_it_asks_where_its_draw_is_greatest() -> None:
    place = box()
    proposal = ask(build_method("ts", THOROUGH, place.domain), place.history, 1)
    axes = [torch.linspace(float(a), float(b), 81, dtype=torch.float64) for a, b in place.domain.bounds.mT]
    values = proposal.acquisition(torch.cartesian_prod(*axes))
    assert proposal.acquisition(proposal.X).item() >= values.max().item() - 1e-3 * values.std().item()


def test_each_point_of_a_batch_has_a_draw_of_its_own() -> None:
    place = box(3)
    X = ask(build_method("ts", THOROUGH, place.domain), place.history, 4).X
    assert torch.pdist(X).min() > 1e-3


@pytest.mark.parametrize("q", [1, 3])
def test_one_draw_is_the_same_whatever_the_batch(q: int) -> None:
    place = table()
    one, some = (ask(build_method("ts", THOROUGH, place.domain), place.history, size).X for size in (1, q))
    assert torch.equal(one[0], some[0])


def test_draws_differ_from_round_to_round() -> None:
    place = box(3)
    found = [ask(build_method("ts", THOROUGH, place.domain), place.history, 1, seed=seed).X for seed in range(4)]
    assert torch.pdist(torch.cat(found)).max() > 1e-2

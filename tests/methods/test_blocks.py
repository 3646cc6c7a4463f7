"""Blocks of inputs that take turns."""

from typing import Any

import pytest
import torch
from situations import BOX, QUICK, QUICK_CONFORMAL, ask, objective, rows

from plumbline.methods.base import Blocks, Domain, History, build_method

START = torch.tensor([1.0, 2.0], dtype=torch.float64)
BLOCKS = Blocks(((0,), (1,)), START, candidates=7)


def history(rounds: int, initial: int = 4) -> History:
    X = rows(initial + rounds, 0)
    return History(X, objective(X), initial)


def draw(rounds: int, seed: int = 0) -> torch.Tensor:
    return BLOCKS.draw(history(rounds), BOX, torch.Generator().manual_seed(seed))


def test_the_first_block_moves_about_the_start() -> None:
    X = draw(0)
    assert X.shape == (7, 2)
    assert (X[:, 1] == START[1]).all()
    assert len(X[:, 0].unique()) == 7
    assert (BOX[0] <= X).all()
    assert (BOX[1] >= X).all()


def test_blocks_take_turns_and_keep_what_was_evaluated_last() -> None:
    for rounds in (1, 2, 3):
        X, last = draw(rounds), history(rounds).X[-1]
        moving = rounds % 2
        assert (X[:, 1 - moving] == last[1 - moving]).all()
        assert len(X[:, moving].unique()) == 7


def test_candidates_come_from_the_generator_alone() -> None:
    assert torch.equal(draw(1, seed=3), draw(1, seed=3))
    assert not torch.equal(draw(1, seed=3), draw(1, seed=4))


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize(("name", "options"), [("ei", QUICK), ("ucb", QUICK), ("cei", QUICK_CONFORMAL)])
def test_methods_that_search_stay_in_the_block(name: str, options: dict[str, Any], q: int) -> None:
    known = {field: value for field, value in options.items() if field != "mc_samples" or name != "cei"}
    method = build_method(name, known, Domain(BOX, blocks=BLOCKS))
    X = ask(method, history(1), q).X
    assert X.shape == (q, 2)
    assert (X[:, 0] == history(1).X[-1, 0]).all()
    assert len(X[:, 1].unique()) == q

"""Blocks of inputs that take turns."""

from pathlib import Path

import pytest
import torch
from handy import Make
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.spaces.blocks import Blocks
from plumbline.trials.trial import Trial

BOX = torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)
START = torch.tensor([1.0, 2.0], dtype=torch.float64)
BLOCKS = Blocks(BOX, ((0,), (1,)), START, candidates=7)
VALUES = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)
ASKED = torch.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], dtype=torch.float64)


def draw(rounds: int, seed: int = 0) -> Tensor:
    """Return the candidates after an initial point that is better than all, and so many rounds."""
    X = torch.cat([torch.zeros(1, 2, dtype=torch.float64), ASKED[:rounds]])
    Y = torch.cat([torch.tensor([9.0], dtype=torch.float64), VALUES[:rounds]]).unsqueeze(-1)
    return BLOCKS.settle(History(X, Y, 1), torch.Generator().manual_seed(seed)).rows


def test_the_first_block_moves_about_the_start() -> None:
    X = draw(0)
    assert X.shape == (7, 2)
    assert (X[:, 1] == START[1]).all()
    assert len(X[:, 0].unique()) == 7
    assert (BOX[0] <= X).all()
    assert (BOX[1] >= X).all()


def test_blocks_take_turns_and_keep_the_best_that_was_asked_for() -> None:
    for rounds, best in ((1, 0), (2, 1), (3, 1)):
        X = draw(rounds)
        moving = rounds % 2
        assert (X[:, 1 - moving] == ASKED[best, 1 - moving]).all()
        assert len(X[:, moving].unique()) == 7


def test_a_round_has_one_query(cheap_spec: Make, tmp_path: Path) -> None:
    """Blocks would take their turns by queries, so that some would never move."""
    spec = cheap_spec("radio", "random")
    with pytest.raises(PlumblineError, match="a round has one query, not 3: set q to 1"):
        Trial(spec.model_copy(update={"budget": spec.budget.model_copy(update={"q": 3})}), tmp_path)


def test_candidates_come_from_the_generator_alone() -> None:
    assert torch.equal(draw(1, seed=3), draw(1, seed=3))
    assert not torch.equal(draw(1, seed=3), draw(1, seed=4))

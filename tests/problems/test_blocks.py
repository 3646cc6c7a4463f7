"""Blocks of inputs that take turns."""

import torch
from torch import Tensor

from plumbline.problems.blocks import Blocks

BOX = torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)
START = torch.tensor([1.0, 2.0], dtype=torch.float64)
BLOCKS = Blocks(((0,), (1,)), START, candidates=7)
VALUES = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)
ASKED = torch.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], dtype=torch.float64)


def draw(rounds: int, seed: int = 0) -> Tensor:
    return BLOCKS.draw(ASKED[:rounds], VALUES[:rounds], BOX, torch.Generator().manual_seed(seed))


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


def test_candidates_come_from_the_generator_alone() -> None:
    assert torch.equal(draw(1, seed=3), draw(1, seed=3))
    assert not torch.equal(draw(1, seed=3), draw(1, seed=4))

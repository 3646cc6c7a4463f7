"""Methods that search, where inputs change in blocks."""

from typing import Any

import pytest
import torch
from situations import BOX, QUICK, QUICK_CONFORMAL, ask, objective, rows

from plumbline.core.history import History
from plumbline.methods.base import Domain, build_method
from plumbline.spaces.blocks import Blocks

BLOCKS = Blocks(BOX, ((0,), (1,)), torch.tensor([1.0, 2.0], dtype=torch.float64), candidates=7)


def history(rounds: int, initial: int = 4) -> History:
    X = rows(initial + rounds, 0)
    return History(X, objective(X), initial)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize(
    ("name", "options"), [("ei", QUICK), ("ucb", QUICK), ("cei", QUICK_CONFORMAL), ("locbo", QUICK), ("ocbo", QUICK)]
)
def test_methods_that_search_stay_in_the_block(name: str, options: dict[str, Any], q: int) -> None:
    known = {field: value for field, value in options.items() if field != "mc_samples" or name != "cei"}
    method = build_method(name, known, Domain(BLOCKS))
    X = ask(method, history(1), q).X
    assert X.shape == (q, 2)
    assert (X[:, 0] == history(1).X[-1, 0]).all()
    assert len(X[:, 1].unique()) == q

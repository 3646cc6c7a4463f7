"""What has been observed, and what of it is whole."""

import torch

from plumbline.core.history import History
from plumbline.methods.composed import complete_rows, since

NAN = torch.nan
X = torch.arange(8.0, dtype=torch.float64).reshape(4, 2)
Y = torch.tensor([[1.0, 2.0], [NAN, 3.0], [4.0, NAN], [5.0, 6.0]], dtype=torch.float64)


def test_rows_with_every_outcome_are_whole() -> None:
    found = complete_rows(History(X, Y, initial=2))
    assert torch.equal(found.X, X[[0, 3]])
    assert torch.equal(found.Y, Y[[0, 3]])
    assert found.initial == 1


def test_a_whole_history_is_itself() -> None:
    history = History(X, X, initial=1)
    assert complete_rows(history) is history
    assert since(history, 0) is history


def test_queries_are_what_follows_the_initial_design() -> None:
    history = History(X, Y, initial=1)
    assert torch.equal(history.queries, X[1:])
    later = since(history, 2)
    assert torch.equal(later.X, X[2:])
    assert later.initial == 0

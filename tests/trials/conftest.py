"""Toy problems for trials."""

from collections.abc import Callable

import pytest
import torch
from botorch.test_functions import SyntheticTestFunction
from handy import Register


class Constant(SyntheticTestFunction):
    """Zero everywhere, until `calls` say otherwise."""

    dim = 2
    continuous_inds = [0, 1]  # noqa: RUF012
    _bounds = [(0.0, 1.0), (0.0, 1.0)]  # noqa: RUF012
    _optimal_value = 0.0
    _check_grad_at_opt = False
    bad: float | Exception = 0.0
    after = 5
    count = 0

    def _evaluate_true(self, X: torch.Tensor) -> torch.Tensor:
        Constant.count += len(X)
        if Constant.count <= Constant.after:
            return torch.zeros(len(X), dtype=X.dtype)
        if isinstance(Constant.bad, Exception):
            raise Constant.bad
        return torch.full((len(X),), Constant.bad, dtype=X.dtype)


@pytest.fixture
def toy_problem(register: Register, monkeypatch: pytest.MonkeyPatch) -> Callable[..., type[Constant]]:
    """Return what registers the problem `toy`, and gives its class: `bad` from evaluation `after` on."""

    def make(bad: float | Exception, after: int) -> type[Constant]:
        monkeypatch.setattr(Constant, "bad", bad)
        monkeypatch.setattr(Constant, "after", after)
        monkeypatch.setattr(Constant, "count", 0)
        register("problem", "toy", lambda options, context: Constant(), "plumbline.problems.synthetic")
        return Constant

    return make

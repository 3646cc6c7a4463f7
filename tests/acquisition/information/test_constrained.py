"""Constrained entropy search: its sum against information counted in samples."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from outcome_cases import ROLES, made, somewhere
from torch import Tensor

from plumbline.acquisition.information.constrained import ConstrainedInformation, OutcomeGroup
from plumbline.acquisition.information.paths import Peaks
from plumbline.core.outcomes import Role
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned

ONE_BY_ONE: list[OutcomeGroup] = [(0,), (1,), (2,)]
ALL: list[OutcomeGroup] = [(0, 1, 2)]


def optima(d: int, draws: int = 7) -> Peaks:
    return Peaks(somewhere(draws, d, seed=3), 20 + somewhere(draws, seed=4) / 4)


def utility(processes: list[GP], questions: list[OutcomeGroup], costs: tuple[float, ...] = (1.0, 1.0, 1.0)):  # type: ignore[no-untyped-def]
    return ConstrainedInformation(processes, ROLES, optima(processes[0].U.shape[-1]), costs, questions)


@settings(max_examples=15)
@given(
    n=st.integers(1, 12),
    d=st.sampled_from([1, 2, 5]),
    separately=st.booleans(),
    seed=st.integers(0, 100),
)
def test_its_gradient_is_that_of_differences(n: int, d: int, separately: bool, seed: int) -> None:
    found = utility(made(n, d, seed), ONE_BY_ONE if separately else ALL, (1.0, 2.0, 0.5))
    X = somewhere(3, 1, d, seed=seed + 1)
    _, gradient = found.value_and_gradient(X)
    for i in range(d):
        step = 1e-5 * torch.eye(d, dtype=torch.float64)[i]
        ahead, behind = found.of_requests((X + step).squeeze(-2)), found.of_requests((X - step).squeeze(-2))
        asked = found.of_requests(X.squeeze(-2)).argmax(0)
        slope = ((ahead - behind) / 2e-5).gather(0, asked.unsqueeze(0))[0]
        torch.testing.assert_close(gradient[:, 0, i], slope, rtol=1e-3, atol=1e-5)


def test_together_outcomes_say_the_sum_of_what_each_says() -> None:
    processes, X = made(6, 2), somewhere(5, 2)
    one_by_one = utility(processes, ONE_BY_ONE).of_requests(X)
    torch.testing.assert_close(3 * utility(processes, ALL).of_requests(X)[0], one_by_one.sum(0))


def test_information_is_divided_by_cost_and_the_best_question_is_asked() -> None:
    processes, X = made(6, 2), somewhere(40, 2)
    cheap, dear = (utility(processes, ONE_BY_ONE, costs) for costs in ((1.0, 1.0, 1.0), (1.0, 10.0, 100.0)))
    each = cheap.of_requests(X)
    assert (each.argmax(0) != 0).any()
    torch.testing.assert_close(dear.of_requests(X), each / torch.tensor([[1.0], [10.0], [100.0]]).double())
    torch.testing.assert_close(cheap(X.unsqueeze(-2)), each.amax(0))
    i = int((each.argmax(0) != 0).nonzero()[0])
    assert cheap.best_request(X[i : i + 1]) == (int(each[:, i].argmax()),)
    assert dear.best_request(X[i : i + 1]) == (0,)


def test_what_was_told_says_no_more() -> None:
    """The process of the outcome that was asked for knows f there; the others are as they were."""
    processes, x = made(6, 2), somewhere(1, 2, seed=9)
    before = utility(processes, ONE_BY_ONE)
    after = before.under([processes[0].condition_on_mean(x), *processes[1:]])
    there, then = before.of_requests(x), after.of_requests(x)
    assert then[0] < 1e-3 * there[0]
    torch.testing.assert_close(then[1:], there[1:])


def in_bins(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return in which of as many bins of alike counts values are."""
    return np.searchsorted(np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1])), values)


def counted(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    """Return the mutual information of two lists of bins, less its bias (Miller & Madow)."""
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    p = table / len(a)
    rows, columns = p.sum(1, keepdims=True), p.sum(0, keepdims=True)
    there = p > 0
    bias = (there.sum() - (rows > 0).sum() - (columns > 0).sum() + 1) / (2 * len(a))
    return float((p[there] * np.log(p[there] / (rows * columns)[there])).sum() - bias)


def on_a_line(seed: int, variance: float) -> list[GP]:
    """Return an objective and an inequality on [0, 1], with noise, after three and four observations."""
    generator = torch.Generator().manual_seed(seed)
    bounds, found = torch.tensor([[0.0], [1.0]]).double(), []
    for n in (4, 5):
        X, y = (draw(n, 1, generator=generator).double() for draw in (torch.rand, torch.randn))
        at = Hyperparameters(0.0, X.new_tensor([variance]), 1.0, X.new_tensor([0.2]))
        found.append(conditioned(X, y, bounds, "matern52", at))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3, 6, 7])
def test_on_a_line_it_is_near_what_40_000_joint_draws_say(seed: int) -> None:
    """Brute force: draws of all values on a grid, the optimum of each, and how an observation and it go together.

    Counted in bins, which take some of it away; and that no other point is better is left out of ours. To have no
    optimum is a bin of its own.
    """
    roles: list[Role] = ["objective", "at_least_zero"]
    processes, draws = on_a_line(seed, 0.1), 40_000
    grid = torch.linspace(0, 1, 33, dtype=torch.float64).unsqueeze(-1)
    generator = torch.Generator().manual_seed(1)

    def normal() -> Tensor:
        return torch.randn(draws, len(grid), generator=generator, dtype=torch.float64)

    F = []
    for process in processes:
        mean, covariance = process.posterior_moments(grid)
        root = torch.linalg.cholesky(covariance + 1e-8 * torch.eye(len(grid)))
        F.append(mean + normal() @ root.mT)
    f, best = F[0].where(F[1] >= 0, -torch.inf).max(1)
    feasible = torch.isfinite(f)
    known = Peaks(grid[best[feasible][:400]], f[feasible][:400])
    ours = ConstrainedInformation(processes, roles, known, (1.0, 1.0), [(0,), (1,)]).of_requests(grid)
    ours = (ours * feasible.double().mean()).numpy()
    optimum = np.zeros(draws, dtype=np.int64)
    optimum[feasible] = 1 + 8 * in_bins(f[feasible].numpy(), 8) + in_bins(grid[best[feasible], 0].numpy(), 8)
    for i, process in enumerate(processes):
        Y = (F[i] + process.noise_variance**0.5 * normal()).numpy()
        brute = np.array([counted(in_bins(y, 20), optimum) for y in Y.T])
        assert np.corrcoef(ours[i], brute)[0, 1] > 0.8
        assert brute[ours[i].argmax()] > 0.65 * brute.max()
        assert ours[i].mean() == pytest.approx(brute.mean(), rel=0.5)

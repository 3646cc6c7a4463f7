import math
from collections.abc import Callable

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.problems.evaluation import evaluate
from plumbline.problems.synthetic import Alpine, Forrester

MakeContext = Callable[[int], Context]


def tensor(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("x", [0.0, 0.3, 1 / 3, 0.5, 0.757248757841856, 1.0])
def test_forrester_is_its_formula(x: float) -> None:
    value = Forrester()(tensor([x])).item()
    assert value == pytest.approx((6 * x - 2) ** 2 * math.sin(12 * x - 4), abs=1e-12)


def test_forresters_optimum_is_the_best_of_a_fine_grid() -> None:
    problem = Forrester(negate=True)
    grid = torch.linspace(0, 1, 200_001, dtype=torch.float64).unsqueeze(-1)
    values = problem(grid)
    assert values.max().item() == pytest.approx(problem.optimal_value, abs=1e-7)
    assert values.max().item() <= problem.optimal_value + 1e-12
    assert grid[values.argmax()].item() == pytest.approx(problem.optimizers.item(), abs=5e-6)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_alpine_is_its_formula(dim: int) -> None:
    X = tensor([0.0] * dim, [1.5] * dim, [-7.0] * dim)
    expected = [dim * abs(x * math.sin(x) + 0.1 * x) for x in (0.0, 1.5, -7.0)]
    assert Alpine(dim)(X).tolist() == pytest.approx(expected)
    assert Alpine(dim).bounds.T.tolist() == [[-10.0, 10.0]] * dim


@pytest.mark.parametrize(
    ("name", "options", "optimum"),
    [
        ("forrester", {}, 6.02074),
        ("branin", {}, -0.397887),
        ("six-hump-camel", {}, 1.0316),
        ("hartmann", {"dim": 3}, 3.86278),
        ("hartmann", {"dim": 6}, 3.32237),
        ("ackley", {"dim": 2}, 0.0),
        ("alpine", {"dim": 2}, 0.0),
        ("levy", {"dim": 5}, 0.0),
        ("rosenbrock", {"dim": 6}, 0.0),
        ("styblinski-tang", {"dim": 6}, 6 * 39.166166),
    ],
)
def test_published_optima_negated(name: str, options: dict[str, int], optimum: float, context: MakeContext) -> None:
    assert build_problem(name, options, context(0)).optimum == pytest.approx(optimum, abs=1e-4)


def test_noise_is_kept_out_of_the_noise_free_value(context: MakeContext) -> None:
    problem = build_problem("branin", {"noise_std": 2.0}, context(0))
    X = tensor([math.pi, 2.275])
    Y, F = evaluate(problem, X, tensor([1.5]))
    assert F.item() == pytest.approx(-0.397887, abs=1e-6)
    assert (Y - F).item() == pytest.approx(3.0)


def test_rosenbrocks_box_may_be_another(context: MakeContext) -> None:
    usual = build_problem("rosenbrock", {"dim": 3}, context(0))
    small = build_problem("rosenbrock", {"dim": 3, "interval": [-2.048, 2.048]}, context(0))
    assert usual.bounds.T.tolist() == [[-5.0, 10.0]] * 3
    assert small.bounds.T.tolist() == [[-2.048, 2.048]] * 3
    X = tensor([0.5, -1.0, 2.0])
    assert evaluate(small, X, tensor([0.0]))[0].item() == evaluate(usual, X, tensor([0.0]))[0].item()


def test_rosenbrocks_box_holds_its_optimum(context: MakeContext) -> None:
    with pytest.raises(PlumblineError, match="the optimum, which is at 1 in every input") as caught:
        build_problem("rosenbrock", {"dim": 3, "interval": [-2, 0]}, context(0))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["ackley", "rosenbrock", "rkhs"])
@pytest.mark.parametrize("dim", [0, 21_202, 10**9, 10**20])
def test_dimensions_without_sobol_points_are_refused(context: MakeContext, name: str, dim: int) -> None:
    """Before any memory is asked for."""
    with pytest.raises(PlumblineError, match=r"dim: Input should be (less than or equal to|greater than)"):
        build_problem(name, {"dim": dim}, context(0))

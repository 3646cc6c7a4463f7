import math

import pytest
import torch
from scipy.optimize import minimize

from plumbline.core.errors import PlumblineError
from plumbline.problems.build import build_problem, problem_of
from plumbline.problems.evaluation import evaluate, noise_std
from plumbline.problems.heteroscedastic import DoubleKnot, Heteroscedastic, NoisyAckley, Rippled, Sinc
from plumbline.problems.heteroscedastic_as_published import PublishedSinc
from plumbline.spaces.box import uniform

EACH = {"sinc": Sinc(1.0), "double-knot": DoubleKnot(0.1), "rippled": Rippled(1.0), "ackley-noisy": NoisyAckley(1.0)}


def column(*x: float) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64).unsqueeze(-1)


@pytest.mark.parametrize("x", [-10.0, -3.3, -1e-3, 1e-6, 0.4, 2.5, 10.0])
def test_sinc_is_its_formula(x: float) -> None:
    expected = (10 * math.sin(x) + 1) * math.sin(3 * x) / x
    assert Sinc(1.0)(column(x), noise=False).item() == pytest.approx(expected, rel=1e-12)


def test_sinc_is_smooth_at_zero() -> None:
    X = column(0.0).requires_grad_()
    value = Sinc(1.0)(X, noise=False).sum()
    (slope,) = torch.autograd.grad(value, X)
    assert value.item() == 3.0
    # sin(3x)/x = 3 - 9x^2/2 + ..., so that the slope is that of 3 * 10 sin x.
    assert slope.item() == pytest.approx(30.0, rel=1e-12)


@pytest.mark.parametrize(("x", "y"), [(0.0, 0.0), (-0.5, 0.2), (-2.0, 6.0), (1.3, -0.7)])
def test_double_knot_is_its_formula(x: float, y: float) -> None:
    X = torch.tensor([[x, y]], dtype=torch.float64)
    assert DoubleKnot(1.0)(X, noise=False).item() == pytest.approx(-x * math.exp(-(x**2) - y**2), rel=1e-12)


@pytest.mark.parametrize("x", [-5.0, -3.9, -0.2, 0.0, 1.7, 4.4])
def test_rippled_is_its_formula(x: float) -> None:
    expected = x * math.sin(2 * x) + math.cos(math.pi * x)
    assert Rippled(1.0)(column(x), noise=False).item() == pytest.approx(expected, rel=1e-12)


def test_rippled_has_two_optima_where_its_slope_is_zero() -> None:
    X = Rippled(1.0).optimizers.clone().requires_grad_()
    value = Rippled(1.0)(X, noise=False)
    (slope,) = torch.autograd.grad(value.sum(), X)
    assert len(X) == 2
    assert value.tolist() == pytest.approx([4.958013609943399] * 2, rel=1e-15)
    assert slope.abs().max() < 1e-13


@pytest.mark.parametrize(("x", "y"), [(0.0, 0.0), (-0.5, 0.2), (-10.0, 10.0), (1.3, -7.7)])
def test_noisy_ackley_is_the_papers_formula(x: float, y: float) -> None:
    waves = math.exp((math.cos(2 * math.pi * x) + math.cos(2 * math.pi * y)) / 2)
    expected = 20 * math.exp(-0.2 * math.sqrt((x**2 + y**2) / 2)) + waves - 20 - math.e
    X = torch.tensor([[x, y]], dtype=torch.float64)
    assert NoisyAckley(1.0)(X, noise=False).item() == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("problem", EACH.values(), ids=EACH)
def test_optimum_is_where_climbing_from_many_points_ends(problem: Heteroscedastic) -> None:
    def loss(x: list[float]) -> float:
        X = torch.tensor(x, dtype=torch.float64).clamp(problem.bounds[0], problem.bounds[1])
        return -problem(X, noise=False).item()

    starts = uniform(problem.bounds, 4000, torch.Generator().manual_seed(0))
    start = starts[problem(starts, noise=False).argmax()]
    found = minimize(loss, start.numpy(), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-15})
    assert -found.fun == pytest.approx(problem.optimal_value, abs=1e-12)
    assert -found.fun <= problem.optimal_value + 1e-12
    nearest = (problem.optimizers - torch.as_tensor(found.x)).norm(dim=-1).min()
    assert nearest.item() == pytest.approx(0.0, abs=1e-6)


def test_the_published_scripts_noise_is_turned_round(context) -> None:
    X = column(-10.0, -1.0, 0.0, 4.0)
    std = noise_std(build_problem("sinc-code", {}, context(0)), X)
    assert std.flatten().tolist() == pytest.approx([math.sqrt(2 / (1 + math.exp(-x / 2))) for x in (-10, -1, 0, 4)])
    assert torch.equal(PublishedSinc(1.0)(X, noise=False), Sinc(1.0)(X, noise=False))


def test_the_published_norm_is_of_exponent_minus_one(context) -> None:
    X = torch.tensor([[0.5, -2.0], [6.0, 6.0], [0.0, 3.0]], dtype=torch.float64)
    std = noise_std(build_problem("double-knot-code", {}, context(0)), X).flatten()
    expected = [0.1 * torch.linalg.vector_norm(x, -1).item() for x in X]
    assert std.square().tolist() == pytest.approx(expected)
    assert std[2] == 0.0


def test_sincs_noise_variance(context) -> None:
    X = column(-10.0, 0.0, 2.0, 10.0)
    expected = [math.sqrt(2 / (1 + math.exp(x / 2))) for x in X.flatten().tolist()]
    std = noise_std(build_problem("sinc", {}, context(0)), X)
    assert std.shape == (4, 1)
    assert std.flatten().tolist() == pytest.approx(expected, rel=1e-12)
    quiet = noise_std(build_problem("sinc", {"noise_factor": 0.25}, context(0)), X)
    assert quiet.flatten().tolist() == pytest.approx([s / 2 for s in expected], rel=1e-12)


def test_double_knots_noise_variance(context) -> None:
    X = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]], dtype=torch.float64)
    std = noise_std(build_problem("double-knot", {}, context(0)), X)
    assert std.flatten().tolist() == pytest.approx([math.sqrt(0.5), 0.0, math.sqrt(0.2)], rel=1e-12)


def test_rippleds_noise_variance(context) -> None:
    X = column(-5.0, 0.0, 3.0)
    std = noise_std(build_problem("rippled", {}, context(0)), X)
    assert std.flatten().tolist() == pytest.approx([math.sqrt(v) for v in (0.6, 0.1, 0.4)], rel=1e-12)


def test_noisy_ackleys_noise_variance(context) -> None:
    X = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-6.0, 8.0]], dtype=torch.float64)
    std = noise_std(build_problem("ackley-noisy", {"noise_factor": 2.0}, context(0)), X)
    assert std.flatten().tolist() == pytest.approx([math.sqrt(v) for v in (1.5, 1.0, 2.0)], rel=1e-12)


def test_noisy_ackley_has_two_inputs(context) -> None:
    assert build_problem("ackley-noisy", {"dim": 2}, context(0)).space.dim == 2
    with pytest.raises(PlumblineError, match="dim"):
        build_problem("ackley-noisy", {"dim": 3}, context(0))


@pytest.mark.parametrize("name", EACH)
def test_factor_zero_is_no_noise(name: str, context) -> None:
    problem = build_problem(name, {"noise_factor": 0.0}, context(0))
    X = uniform(problem.bounds, 5, torch.Generator().manual_seed(0))
    Y, F = evaluate(problem, X, torch.ones(5, 1, dtype=torch.float64))
    assert torch.equal(Y, F)


@pytest.mark.parametrize("problem", EACH.values(), ids=EACH)
def test_forward_is_as_noisy_as_it_says(problem: Heteroscedastic) -> None:
    """BoTorch's own loops call the problem itself."""
    x = uniform(problem.bounds, 1, torch.Generator().manual_seed(3))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Y = problem(x.expand(20_000, -1))
    assert Y.shape == (20_000,)
    assert Y.std().item() == pytest.approx(noise_std(problem_of(problem), x).item(), rel=0.03)
    assert Y.mean().item() == pytest.approx(problem(x, noise=False).item(), abs=0.03)


def test_negative_factor_is_refused(context) -> None:
    with pytest.raises(PlumblineError, match="noise_factor"):
        build_problem("sinc", {"noise_factor": -1.0}, context(0))

"""Utilities of draws against BoTorch's on GPyTorch's model of the same process, their gradients against autograd."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    qExpectedImprovement,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qProbabilityOfImprovement,
    qUpperConfidenceBound,
)
from botorch.acquisition.utils import prune_inferior_points
from botorch.sampling import SobolQMCNormalSampler
from exact_gpytorch import gpytorch_model
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Size, Tensor

from plumbline.acquisition.monte_carlo import (
    PRUNING,
    Integrand,
    MonteCarloAcquisition,
    NoisyImprovement,
    batch_expected_improvement,
    batch_probability_of_improvement,
    batch_upper_confidence_bound,
    log_batch_improvement,
    noisy_improvement,
)
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned
from plumbline.models.standardisation import Standardisation
from plumbline.spaces.table import best_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning"),
    pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning"),
]

S, SEED = 32, 7
Pair = tuple[Callable[[Tensor], Integrand], Callable[[Any, Tensor, SobolQMCNormalSampler], AcquisitionFunction]]
UTILITIES: dict[str, Pair] = {
    "ei": (batch_expected_improvement, qExpectedImprovement),
    "logei": (log_batch_improvement, qLogExpectedImprovement),
    "pi": (batch_probability_of_improvement, qProbabilityOfImprovement),
    "ucb": (
        lambda best: batch_upper_confidence_bound(1.5),
        lambda model, best, sampler: qUpperConfidenceBound(model, 2.25, sampler),
    ),
}


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def somewhere(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 - 2


def made(
    n: int, d: int, kernel: str, seed: int = 0, standardisation: Standardisation | None = None, lengthscale: float = 0.2
) -> GP:
    bounds = torch.stack([-2 * torch.ones(d), 3 * torch.ones(d)]).double()
    X = somewhere(n, d, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    spread = lengthscale + torch.rand(d, generator=generator, dtype=torch.float64)
    at = Hyperparameters(0.1, X.new_tensor([0.01]), 1.4, spread)
    return conditioned(X, 70 + 9 * torch.sin(X.sum(-1, keepdim=True)), bounds, kernel, at, standardisation)


def sampler() -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(Size([S]), seed=SEED)


def ours(name: str, process: GP, best: Tensor) -> MonteCarloAcquisition:
    return MonteCarloAcquisition(process, UTILITIES[name][0](best), S, SEED)


def theirs(name: str, model: Any, best: Tensor) -> AcquisitionFunction:
    return UTILITIES[name][1](model, best, sampler=sampler())


def by_autograd(utility: AcquisitionFunction, X: Tensor) -> tuple[Tensor, Tensor]:
    leaf = X.clone().requires_grad_()
    value = utility(leaf)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def rounding(utility: NoisyImprovement | MonteCarloAcquisition, X: Tensor) -> float:
    """What rounding errors amount to: the more, the better points tell the values of others."""
    process = utility.known.conditioned if isinstance(utility, NoisyImprovement) else utility.process
    roots = [process.root, process.joint_posterior(X).factor]
    return 1e-15 / min(float(root.diagonal(dim1=-2, dim2=-1).min()) for root in roots) ** 2


def agree(utility: NoisyImprovement | MonteCarloAcquisition, reference: AcquisitionFunction, X: Tensor) -> None:
    value, gradient = utility.value_and_gradient(X)
    expected, slope = by_autograd(reference, X)
    share = rounding(utility, X)
    # A sigmoid that is one but for 1e-9 has seven digits left for its derivative. Its step is a thousandth wide: f near
    # 80, right to 1e-12, is worth 2.5e-10.
    step = isinstance(reference, qProbabilityOfImprovement)
    least, near = (1e-6, 1e-9) if step else (1e-9, 1e-11)
    torch.testing.assert_close(value, expected, rtol=1e-9 + share, atol=near + share)
    torch.testing.assert_close(gradient, slope, rtol=1e-7, atol=(least + 10 * share) * (1 + float(slope.abs().max())))
    torch.testing.assert_close(utility(X), value, rtol=1e-12, atol=0.0)


shapes = {
    "n": st.integers(1, 20),
    "d": st.sampled_from([1, 2, 6, 50]),
    "q": st.integers(1, 4),
    "kernel": st.sampled_from(["matern52", "rbf"]),
    "seed": st.integers(0, 500),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UTILITIES)
@settings(max_examples=25)
@given(**shapes, ahead=st.sampled_from([-5.0, 0.0, 8.0, 300.0]))
def test_values_and_gradients_are_botorchs(
    name: str, n: int, d: int, q: int, kernel: str, ahead: float, seed: int
) -> None:
    process, best, X = made(n, d, kernel, seed), number(70 + ahead), somewhere(3, q, d, seed=seed + 1)
    utility = ours(name, process, best)
    expected = theirs(name, gpytorch_model(process), best)(X).detach()
    # The sigmoid of `pi` is so narrow that the last digits of f count a thousandfold.
    torch.testing.assert_close(utility(X), expected, rtol=1e-6, atol=1e-4 if name == "pi" else 1e-6)
    agree(utility, theirs(name, process.model, best), X)


def noisy_reference(utility: NoisyImprovement, q: int) -> AcquisitionFunction:
    """BoTorch's on the process itself, where it would draw the baseline anew, with the same base samples."""
    base = sampler()
    reference = qLogNoisyExpectedImprovement(utility.process.model, utility.known.points, base, prune_baseline=False)
    base.base_samples = torch.cat([utility.known.z, utility.further(q)]).mT.unsqueeze(1)
    return reference


@pytest.mark.slow
@settings(max_examples=40)
@given(**{**shapes, "n": st.integers(1, 9)}, pending=st.integers(0, 2))
def test_noisy_improvement_is_botorchs(n: int, d: int, q: int, kernel: str, seed: int, pending: int) -> None:
    process, X = made(n, d, kernel, seed), somewhere(3, q, d, seed=seed + 1)
    utility = NoisyImprovement(process, process.standardisation.points(process.U), S, SEED)
    cached = qLogNoisyExpectedImprovement(gpytorch_model(process), utility.baseline, sampler(), prune_baseline=False)
    assume(rounding(utility, X) < 1e-10)
    # BoTorch's cached root is off by some 1e-8 of an improvement: much of the logarithm of a small one, where the
    # reference without a cache agrees to 1e-11.
    torch.testing.assert_close(utility(X).exp(), cached(X).detach().exp(), rtol=1e-6, atol=1e-6)
    if pending:
        utility.set_X_pending(somewhere(pending, d, seed=seed + 2))
        assume(rounding(utility, X) < 1e-10)
    agree(utility, noisy_reference(utility, q), X)


@pytest.mark.parametrize("name", [*UTILITIES, "nei"])
def test_finite_differences_through_automatic_differentiation(name: str) -> None:
    process, X = replace(made(9, 3, "matern52", 2), deviation=1.3), somewhere(2, 2, 3, 3).requires_grad_()
    best = number(77.0 if name != "pi" else 79.0)
    utility = NoisyImprovement(process, somewhere(4, 3, seed=5), S, 0) if name == "nei" else ours(name, process, best)
    assert utility(X).shape == (2, 2)
    assert torch.autograd.gradcheck(utility, (X,), rtol=1e-4, atol=1e-4 if name == "pi" else 1e-5)
    with torch.no_grad():
        torch.testing.assert_close(utility(X[0, 0]), utility(X)[0, 0])


@pytest.mark.parametrize("name", [*UTILITIES, "nei"])
def test_a_recalibrated_deviation_counts(name: str) -> None:
    process, best, X = replace(made(8, 2, "rbf", 3), deviation=2.5), number(75.0), somewhere(3, 2, 2)
    if name == "nei":
        utility = NoisyImprovement(process, somewhere(4, 2, seed=5), S, SEED)
        agree(utility, noisy_reference(utility, 2), X)
        narrow = NoisyImprovement(replace(process, deviation=1.0), utility.baseline, S, SEED)
    else:
        utility, narrow = ours(name, process, best), ours(name, replace(process, deviation=1.0), best)
        agree(utility, theirs(name, process.model, best), X)
    assert (utility(X) - narrow(X)).abs().min() > 1e-4


@pytest.mark.parametrize("name", [*UTILITIES, "nei"])
@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
def test_a_point_twice_in_a_batch(name: str, kernel: str) -> None:
    bounds = torch.tensor([[-2.0] * 2, [3.0] * 2], dtype=torch.float64)
    # In standardised units BoTorch's jitter is ours.
    process = made(8, 2, kernel, 3, Standardisation(bounds[0], bounds[1] - bounds[0], 70.0, 1.0))
    X = somewhere(4, 3, 2)
    X[:, 2] = X[:, 0]
    X[3] = process.standardisation.points(process.U[:1])
    best = process.standardisation.location + process.y.max() - 1
    utility = (
        NoisyImprovement(process, somewhere(4, 2, seed=5), S, SEED) if name == "nei" else ours(name, process, best)
    )
    value, gradient = utility.value_and_gradient(X)
    reference = noisy_reference(utility, 3) if name == "nei" else theirs(name, process.model, best)
    torch.testing.assert_close(value, reference(X), rtol=1e-6, atol=1e-3 if name == "pi" else 1e-4)
    assert torch.isfinite(gradient).all()
    apart = X.clone()
    apart[:, 2] += 1e-3
    torch.testing.assert_close(value, utility(apart), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", UTILITIES)
def test_pending_points_are_part_of_the_batch(name: str) -> None:
    process, best, X, pending = made(8, 2, "matern52", 3), number(75.0), somewhere(3, 2, 2), somewhere(2, 2, seed=9)
    utility, reference = ours(name, process, best), theirs(name, process.model, best)
    whole = torch.cat([X, pending.expand(3, -1, -1)], -2)
    value, gradient = utility.value_and_gradient(whole)
    utility.set_X_pending(pending)
    reference.set_X_pending(pending)
    agree(utility, reference, X)
    assert torch.equal(utility.value_and_gradient(X)[0], value)
    assert torch.equal(utility.value_and_gradient(X)[1], gradient[:, :2])
    utility.set_X_pending(None)
    assert utility(X).shape == (3,)


def test_pending_points_are_part_of_the_baseline() -> None:
    """Of improvement over them as well, which is what BoTorch's increments are."""
    process, X, pending = made(8, 2, "matern52", 3), somewhere(3, 1, 2), somewhere(1, 2, seed=9)
    utility = NoisyImprovement(process, somewhere(4, 2, seed=5), S, SEED)
    cached = qLogNoisyExpectedImprovement(gpytorch_model(process), utility.baseline, sampler(), prune_baseline=False)
    before = utility(X)
    torch.testing.assert_close(before, cached(X).detach(), rtol=1e-6, atol=1e-6)
    for either in (utility, cached):
        either.set_X_pending(pending)
    torch.testing.assert_close(utility(X), cached(X).detach(), rtol=1e-6, atol=1e-6)
    utility.set_X_pending(None)
    assert torch.equal(utility(X), before)


@pytest.mark.parametrize("name", [*UTILITIES, "nei"])
def test_rows_of_a_table_are_chosen_one_after_another(name: str) -> None:
    process, best, rows = made(8, 2, "matern52", 3), number(75.0), somewhere(12, 2, seed=4)
    if name == "nei":
        utility = NoisyImprovement(process, somewhere(4, 2, seed=5), S, SEED)
        chosen = best_rows(utility, rows, 3)
        assert torch.equal(chosen[0], rows[utility(rows.unsqueeze(-2)).argmax()])
        assert len(torch.unique(chosen, dim=0)) == 3
    else:
        utility = ours(name, process, best)
        chosen = best_rows(utility, rows, 3)
        assert torch.equal(chosen, best_rows(theirs(name, process.model, best), rows, 3))
    assert utility.X_pending is None


def test_the_baseline_is_pruned_as_botorch_does_by_the_seed() -> None:
    process = made(15, 2, "matern52", 3)
    X = process.standardisation.points(process.U)
    model, drawn = gpytorch_model(process), SobolQMCNormalSampler(Size([PRUNING]), seed=SEED)
    found = noisy_improvement(process, X, S, SEED).baseline
    assert torch.equal(found, prune_inferior_points(model, X, sampler=drawn))
    assert 1 <= len(found) < 15


def test_observed_points_may_be_the_same() -> None:
    process = made(6, 2, "matern52", 3)
    X = process.standardisation.points(process.U)
    once, twice = (NoisyImprovement(process, baseline, 4096, SEED) for baseline in (X, X.repeat(2, 1)))
    at = somewhere(5, 2, 2)
    torch.testing.assert_close(twice(at), once(at), rtol=0.05, atol=0.05)


def test_a_logarithm_neither_underflows_nor_loses_its_gradient() -> None:
    value, gradient = ours("logei", made(10, 2, "rbf", 4), number(1e4)).value_and_gradient(somewhere(6, 3, 2))
    assert torch.isfinite(value).all()
    assert (gradient.abs().amax((-2, -1)) > 0).all()


def test_draws_are_those_of_the_seed() -> None:
    process, best, X = made(8, 2, "rbf", 3), number(75.0), somewhere(3, 2, 2)
    one, same, other = (
        MonteCarloAcquisition(process, batch_expected_improvement(best), S, seed)(X) for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)

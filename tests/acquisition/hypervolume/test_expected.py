"""Expected hypervolumes against BoTorch's on the same processes, their gradients against autograd's."""

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.multi_objective import logei
from botorch.acquisition.multi_objective.utils import prune_inferior_points_multi_objective
from botorch.models import ModelListGP
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from exact_gpytorch import gpytorch_model
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Size, Tensor

from plumbline.acquisition.hypervolume.expected import (
    ExpectedHypervolume,
    NoisyHypervolume,
    OutcomesAcquisition,
    noisy_hypervolume,
)
from plumbline.acquisition.monte_carlo import PRUNING
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned
from plumbline.spaces.table import best_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning"),
    pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning"),
]

S, SEED = 16, 7
KINDS = ["expected", "noisy"]


def somewhere(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 - 2


def observed(n: int, d: int, m: int, seed: int) -> tuple[Tensor, Tensor]:
    X = somewhere(n, d, seed=seed)
    return X, torch.stack([20 * i + (1 + 4 * i) * torch.sin(X.sum(-1) + 2 * i) for i in range(m)], -1)


def made(n: int, d: int, m: int, kernel: str = "matern52", seed: int = 0) -> list[GP]:
    bounds = torch.stack([-2 * torch.ones(d), 3 * torch.ones(d)]).double()
    X, Y = observed(n, d, m, seed)
    generator = torch.Generator().manual_seed(seed)
    processes = []
    for y in Y.split(1, -1):
        spread = 0.2 + torch.rand(d, generator=generator, dtype=torch.float64)
        at = Hyperparameters(0.1, X.new_tensor([0.01]), 1.4, spread)
        processes.append(conditioned(X, y, bounds, kernel, at))
    return processes


def point(m: int) -> Tensor:
    """Return a reference point that some observations are above."""
    return torch.tensor([20.0 * i - 0.5 for i in range(m)], dtype=torch.float64)


def made_utility(kind: str, n: int, d: int, m: int, kernel: str = "matern52", seed: int = 0) -> OutcomesAcquisition:
    X, Y = observed(n, d, m, seed)
    processes = made(n, d, m, kernel, seed)
    if kind == "expected":
        return ExpectedHypervolume(processes, point(m), Y, S, SEED)
    return NoisyHypervolume(processes, point(m), X, S, SEED)


def sampler() -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(Size([S]), seed=SEED)


def botorchs(utility: OutcomesAcquisition, Y: Tensor) -> AcquisitionFunction:
    """Return BoTorch's on the same processes, with the same base samples."""
    model, ref_point = ProcessModel(*utility.processes), point(len(utility.processes))
    if isinstance(utility, ExpectedHypervolume):
        free = FastNondominatedPartitioning(ref_point=ref_point, Y=Y)
        return logei.qLogExpectedHypervolumeImprovement(model, ref_point, free, sampler(), X_pending=utility.X_pending)
    assert isinstance(utility, NoisyHypervolume)
    # Where it would draw the baseline anew with each batch: from the samples of both.
    return logei.qLogNoisyExpectedHypervolumeImprovement(
        model, ref_point, utility.known[0].points, sampler(), prune_baseline=False
    )


def rounding(utility: OutcomesAcquisition, X: Tensor) -> float:
    """What rounding errors amount to: the more, the better points tell the values of others."""
    processes = (
        [known.conditioned for known in utility.known] if isinstance(utility, NoisyHypervolume) else utility.processes
    )
    roots = [root for one in processes for root in (one.root, one.joint_posterior(utility.with_pending(X)).factor)]
    return 1e-15 / min(float(root.diagonal(dim1=-2, dim2=-1).min()) for root in roots) ** 2


def agree(utility: OutcomesAcquisition, reference: AcquisitionFunction, X: Tensor) -> None:
    leaf = X.clone().requires_grad_()
    expected = reference(leaf)
    (slope,) = torch.autograd.grad(expected.sum(), leaf)
    value, gradient = utility.value_and_gradient(X)
    share = rounding(utility, X)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-9 + share, atol=1e-8 + 1e3 * share)
    torch.testing.assert_close(gradient, slope, rtol=1e-6, atol=(1e-7 + 1e4 * share) * (1 + float(slope.abs().max())))
    torch.testing.assert_close(utility(X), value, rtol=1e-12, atol=1e-12)


shapes = {
    "n": st.integers(1, 9),
    "d": st.sampled_from([1, 2, 6]),
    "m": st.sampled_from([2, 3]),
    "q": st.integers(1, 3),
    "kernel": st.sampled_from(["matern52", "rbf"]),
    "pending": st.integers(0, 2),
    "seed": st.integers(0, 500),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(**shapes)
def test_values_and_gradients_are_botorchs(
    kind: str, n: int, d: int, m: int, q: int, kernel: str, pending: int, seed: int
) -> None:
    utility, X = made_utility(kind, n, d, m, kernel, seed), somewhere(2, q, d, seed=seed + 1)
    if pending:
        utility.set_X_pending(somewhere(pending, d, seed=seed + 2))
    assume(rounding(utility, X) < 1e-10)
    agree(utility, botorchs(utility, observed(n, d, m, seed)[1]), X)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_botorchs_own_loop(kind: str, m: int) -> None:
    """On GPyTorch's models of the same processes."""
    utility, X = made_utility(kind, 9, 2, m), somewhere(3, 2, 2, seed=5)
    model = ModelListGP(*(gpytorch_model(process) for process in utility.processes))
    if kind == "expected":
        free = FastNondominatedPartitioning(ref_point=point(m), Y=observed(9, 2, m, 0)[1])
        reference = logei.qLogExpectedHypervolumeImprovement(model, point(m), free, sampler())
    else:
        points = observed(9, 2, m, 0)[0]
        reference = logei.qLogNoisyExpectedHypervolumeImprovement(model, point(m), points, sampler())
    torch.testing.assert_close(utility(X), reference(X).detach(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_finite_differences_through_automatic_differentiation(kind: str) -> None:
    utility, X = made_utility(kind, 9, 3, 2, seed=2), somewhere(2, 2, 3, seed=3).requires_grad_()
    assert utility(X).shape == (2,)
    assert torch.autograd.gradcheck(utility, (X,), eps=1e-7, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_recalibrated_deviation_counts(kind: str) -> None:
    X, Y = observed(8, 2, 2, 3)
    wide = [replace(process, deviation=2.5) for process in made(8, 2, 2, seed=3)]
    utility = (
        ExpectedHypervolume(wide, point(2), Y, S, SEED)
        if kind == "expected"
        else NoisyHypervolume(wide, point(2), X, S, SEED)
    )
    at = somewhere(3, 2, 2, seed=4)
    agree(utility, botorchs(utility, Y), at)
    assert (utility(at) - made_utility(kind, 8, 2, 2, seed=3)(at)).abs().min() > 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
def test_a_point_twice_in_a_batch(kind: str, kernel: str) -> None:
    """It adds next to nothing, and a search can go on from there; so can one that is at an observed point."""
    utility, X = made_utility(kind, 8, 2, 2, kernel, 3), somewhere(4, 3, 2, seed=4)
    X[:, 2] = X[:, 0]
    X[3] = observed(8, 2, 2, 3)[0][:1]
    value, gradient = utility.value_and_gradient(X)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    near = X.clone()
    near[:3, 2] += 1e-4
    torch.testing.assert_close(value[:3], utility(near)[:3], rtol=0.05, atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [2, 3])
def test_nothing_observed_above_the_reference_point(kind: str, m: int) -> None:
    X, Y = observed(8, 2, m, 3)
    processes, far = made(8, 2, m, seed=3), Y.amax(0) + 1
    if kind == "expected":
        utility: OutcomesAcquisition = ExpectedHypervolume(processes, far, Y, S, SEED)
        free = FastNondominatedPartitioning(ref_point=far, Y=Y)
        reference = logei.qLogExpectedHypervolumeImprovement(utility.model, far, free, sampler())
    else:
        utility = NoisyHypervolume(processes, far, X, S, SEED)
        reference = logei.qLogNoisyExpectedHypervolumeImprovement(
            utility.model, far, X, sampler(), prune_baseline=False
        )
    agree(utility, reference, somewhere(3, 2, 2, seed=4))


def test_pending_points_are_part_of_the_batch() -> None:
    utility, X, pending = made_utility("expected", 8, 2, 2), somewhere(3, 2, 2), somewhere(2, 2, seed=9)
    value, gradient = utility.value_and_gradient(torch.cat([X, pending.expand(3, -1, -1)], -2))
    utility.set_X_pending(pending)
    assert torch.equal(utility.value_and_gradient(X)[0], value)
    assert torch.equal(utility.value_and_gradient(X)[1], gradient[:, :2])
    utility.set_X_pending(None)
    assert utility(X).shape == (3,)


def test_pending_points_are_part_of_the_baseline() -> None:
    utility, X = made_utility("noisy", 8, 2, 2), somewhere(3, 1, 2)
    before = utility(X)
    utility.set_X_pending(X[0])
    assert utility(X)[0] < before[0]
    utility.set_X_pending(None)
    assert torch.equal(utility(X), before)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_table_are_chosen_one_after_another(kind: str) -> None:
    utility, rows = made_utility(kind, 8, 2, 2), somewhere(12, 2, seed=4)
    chosen = best_rows(utility, rows, 3)
    assert torch.equal(chosen[0], rows[utility(rows.unsqueeze(-2)).argmax()])
    assert len(torch.unique(chosen, dim=0)) == 3
    assert utility.X_pending is None


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_baseline_is_pruned_as_by_botorch(m: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = observed(15, 2, m, seed)
    processes = made(15, 2, m, seed=seed)
    drawn = SobolQMCNormalSampler(Size([PRUNING]), seed=SEED)
    monkeypatch.setattr("botorch.acquisition.utils.get_sampler", lambda **_: drawn)
    expected = prune_inferior_points_multi_objective(ProcessModel(*processes), X, point(m))
    found = noisy_hypervolume(processes, point(m), X, S, SEED).baseline
    assert torch.equal(found, expected)
    assert 1 <= len(found) < 15


@pytest.mark.parametrize("m", [2, 3])
def test_with_no_baseline_left_all_above_the_reference_point_is_gained(m: int) -> None:
    X, Y = observed(8, 2, m, 3)
    processes, far, at = made(8, 2, m, seed=3), Y.amax(0) + 100, somewhere(3, 2, 2, seed=4)
    noisy = noisy_hypervolume(processes, far, X, S, SEED)
    assert len(noisy.baseline) == 0
    reference = logei.qLogNoisyExpectedHypervolumeImprovement(noisy.model, far, X, sampler(), prune_baseline=True)
    agree(noisy, reference, at)
    noisy.set_X_pending(at[0])
    assert torch.isfinite(noisy(at)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_those_of_the_seed(kind: str) -> None:
    X, Y = observed(8, 2, 2, 3)
    processes, at = made(8, 2, 2, seed=3), somewhere(3, 2, 2)

    def value(seed: int) -> Tensor:
        if kind == "expected":
            return ExpectedHypervolume(processes, point(2), Y, S, seed)(at)
        return NoisyHypervolume(processes, point(2), X, S, seed)(at)

    assert torch.equal(value(1), value(1))
    assert not torch.equal(value(1), value(2))

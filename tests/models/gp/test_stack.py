"""Stacks against the processes in them, one by one."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned
from plumbline.models.gp.stack import GPStack, scores_each, stacked

BOUNDS = torch.tensor([[-2.0, 0.0, 1.0], [3.0, 10.0, 2.0]], dtype=torch.float64)


def points(n: int, seed: int) -> Tensor:
    U = torch.rand(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U


def made(X: Tensor, i: int, kernel: str, ard: bool = True) -> GP:
    Y = 10.0 * i + (1 + i) * torch.sin(X.sum(-1, keepdim=True) + i)
    lengthscale = torch.full((3 if ard else 1,), 0.3 + 0.2 * i, dtype=torch.float64)
    at = Hyperparameters(0.1 * i, X.new_tensor([0.01 * (i + 1)]), 1.0 + i, lengthscale)
    return conditioned(X, Y, BOUNDS, kernel, at)


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("n", [1, 9])
def test_a_stack_says_what_its_processes_say(kernel: str, n: int) -> None:
    X, x = points(n, 0), points(5, 1)
    processes = [made(X, 0, kernel), replace(made(X, 1, kernel, ard=False), deviation=1.7), made(X, 2, kernel)]
    grad_mean, grad_sd = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    seen = GPStack(processes).marginal_posterior(x)
    gradients = seen.vjp(grad_mean, grad_sd)
    assert seen.mean.shape == seen.sd.shape == (3, 5)
    for i, process in enumerate(processes):
        alone = process.marginal_posterior(x)
        torch.testing.assert_close(seen.mean[i], alone.mean, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(seen.sd[i], alone.sd, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(gradients[i], alone.vjp(grad_mean[i], grad_sd[i]), rtol=1e-9, atol=1e-10)


def test_processes_are_stacked_where_they_have_their_inputs_in_common() -> None:
    X = points(9, 0)
    processes = [made(X, 0, "matern52"), made(X[:7], 1, "matern52"), made(X, 2, "matern52"), made(X, 1, "rbf")]
    assert [group for group, _ in stacked(processes)] == [[0, 2], [1], [3]]
    told = [process.condition_on_mean(points(2, 5)) for process in processes]
    assert [group for group, _ in stacked(told)] == [[0, 2], [1], [3]]
    x = points(4, 1)
    for group, stack in stacked(told):
        for i, mean in zip(group, stack.marginal_posterior(x).mean, strict=True):
            torch.testing.assert_close(mean, told[i].marginal_posterior(x).mean, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["matern52", "rbf", "matern32", "matern12"])
@pytest.mark.parametrize("n", [2, 9])
def test_the_score_of_a_new_observation_is_the_last_one_of_the_process_that_is_told(kernel: str, n: int) -> None:
    processes = [made(points(n, i), i, kernel) for i in range(3)]
    x, y = points(3, 7), torch.tensor([[0.3], [9.0], [25.0]], dtype=torch.float64)
    scores = scores_each(processes, x, y)
    for i, process in enumerate(processes):
        told = process.condition_on_observations(x[i : i + 1], y[i : i + 1])
        torch.testing.assert_close(scores[i], told.whitened[-1], rtol=1e-10, atol=1e-12)
        assert torch.equal(scores_each([process], x[i : i + 1], y[i : i + 1])[0], scores[i])


def test_a_covariance_without_a_factor_has_no_score_and_the_others_have_theirs() -> None:
    processes = [made(points(9, i), i, "rbf") for i in range(2)]
    broken = replace(processes[0], at=processes[0].at._replace(noise=BOUNDS.new_tensor([-0.5])))
    x, y = points(2, 7), torch.ones(2, 1, dtype=torch.float64)
    scores = scores_each([broken, processes[1]], x, y)
    assert scores[0].isnan()
    assert torch.equal(scores[1], scores_each(processes, x, y)[1])

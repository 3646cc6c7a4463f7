"""Sparse processes trained on their data, and what is done where that breaks."""

from collections.abc import Callable, Sequence

import pytest
import torch
from sparse_cases import KERNELS, generator, normal, objective_gradient, random_rows, uniform

from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.minibatches import Progress, Shuffled, TrainingOptions
from plumbline.models.svgp.objective import Batch, Layout, forward, initial_row
from plumbline.models.svgp.process import inducing_factor
from plumbline.models.svgp.training import ATTEMPTS, Outcome, fidelity_step, fit, retry

LAYOUT = Layout(10, 2)
OPTIONS = TrainingOptions(epochs=8, batch=16)


def data(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    X = uniform(n, 2, seed=seed)
    return X, torch.sin(5 * X).sum(-1) + 0.05 * normal(n, seed=seed + 1)


def sources(*sizes: int) -> Callable[[], list[Shuffled]]:
    return lambda: [Shuffled(*data(n, n), generator(n)) for n in sizes]


def starts(*sizes: int) -> torch.Tensor:
    return torch.stack([initial_row(data(n, n)[0][: LAYOUT.m]) for n in sizes])


def elbo(row: torch.Tensor, n: int, kernel: SparseKernel = "rbf") -> float:
    X, y = data(n, n)
    whole = Batch(X[None], y[None], torch.tensor([float(n)]).double())
    return objective_gradient(row[None], LAYOUT, whole, kernel, "elbo")[0].item()


@pytest.mark.parametrize("kernel", KERNELS)
def test_training_raises_the_bound_and_learns_the_function(kernel: SparseKernel) -> None:
    start = starts(60)
    options = TrainingOptions(epochs=40, batch=16, learning_rate=0.05)
    found = fit(start, LAYOUT, kernel, sources(60), "elbo", options)
    assert elbo(found.trained[0][0], 60, kernel) > elbo(start[0], 60, kernel) + 0.5
    X, y = data(200, 5)
    mean = forward(found.trained[0], LAYOUT, X[None], kernel).mean[0]
    assert (mean - y).square().mean() < 0.1 * y.var()
    assert (found.attempts, found.reverted) == ([1], [False])


@pytest.mark.parametrize("objective", ["elbo", "ppgpr"])
def test_company_makes_no_difference(objective: str) -> None:
    sizes = (30, 12, 45)
    together = fit(starts(*sizes), LAYOUT, "rbf", sources(*sizes), objective, OPTIONS)  # type: ignore[arg-type]
    for i, n in enumerate(sizes):
        alone = fit(starts(n), LAYOUT, "rbf", sources(n), objective, OPTIONS)  # type: ignore[arg-type]
        torch.testing.assert_close(alone.trained[0][0], together.trained[0][i], rtol=1e-9, atol=1e-9)
        assert alone.epochs[0] == together.epochs[i]


def test_what_is_not_free_does_not_move() -> None:
    free = torch.zeros(LAYOUT.size, dtype=torch.bool)
    LAYOUT.parts(free.unsqueeze(0)).mean.fill_(True)
    start = starts(30)
    (row,) = fit(start, LAYOUT, "rbf", sources(30), "elbo", OPTIONS, free).trained[0]
    assert torch.equal(row[~free], start[0][~free])
    assert (row[free] != start[0][free]).all()


def test_a_gpu_trains_alike(gpu: torch.device) -> None:
    """To rounding, for as many passes; seeds of other lengths leave one after another."""
    sizes, start = (30, 20, 40), starts(30, 20, 40)
    cpu, there = (fit(start.to(device), LAYOUT, "rbf", on(device, *sizes), "elbo", OPTIONS) for device in ("cpu", gpu))
    assert there.trained[0].device.type == "cuda"
    assert there.epochs == cpu.epochs
    torch.testing.assert_close(there.trained[0].cpu(), cpu.trained[0], rtol=1e-6, atol=1e-6)


def on(device: torch.device | str, *sizes: int) -> Callable[[], list[Shuffled]]:
    return lambda: [Shuffled(one.X.to(device), one.y.to(device), one.generator) for one in sources(*sizes)()]


def test_a_step_of_some_parameters_stays_on_its_device() -> None:
    """That of the processes, wherever the caller made the mask: here one without values, as any machine has it."""
    rows = starts(30).to("meta")
    free = torch.ones(LAYOUT.size, dtype=torch.bool)
    step = fidelity_step(rows, LAYOUT, "rbf", "elbo", OPTIONS, free=free)
    X, y = torch.empty(1, 5, 2, device="meta").double(), torch.empty(1, 5, device="meta").double()
    found = step([0], Batch(X, y, torch.empty(1, device="meta").double()), [0])
    assert found.device.type == "meta"


def test_the_start_is_not_changed() -> None:
    start = starts(30)
    before = start.clone()
    fit(start, LAYOUT, "rbf", sources(30), "elbo", OPTIONS)
    assert torch.equal(start, before)


def test_too_great_a_learning_rate_is_lowered() -> None:
    """Steps of a hundred make the process explode; steps of one do not. The other seed is not trained again."""
    start = starts(30, 20)
    wild = TrainingOptions(epochs=3, batch=16, learning_rate=300.0)
    found = fit(start, LAYOUT, "rbf", sources(30, 20), "elbo", wild)
    assert max(found.attempts) > 1
    for i, n in enumerate((30, 20)):
        if found.reverted[i]:
            assert torch.equal(found.trained[0][i], start[i])
        else:
            lower = wild.model_copy(update={"learning_rate": 300.0 * 10.0 ** -(found.attempts[i] - 1)})
            again = fit(start[i : i + 1], LAYOUT, "rbf", sources(n), "elbo", lower)
            torch.testing.assert_close(again.trained[0][0], found.trained[0][i], rtol=1e-6, atol=1e-6)
    assert torch.isfinite(found.trained[0]).all()


def test_data_that_nothing_can_be_fitted_to_leave_the_warm_start() -> None:
    start = torch.cat([random_rows(1, LAYOUT), starts(20)])

    def drawn() -> list[Shuffled]:
        X, y = data(30, 30)
        y[4] = torch.nan
        return [Shuffled(X, y, generator(0)), *sources(20)()]

    found = fit(start, LAYOUT, "rbf", drawn, "elbo", OPTIONS)
    assert found.reverted == [True, False]
    assert found.attempts == [ATTEMPTS, 1]
    assert torch.equal(found.trained[0][0], start[0])
    assert not torch.equal(found.trained[0][1], start[1])


@pytest.mark.parametrize(("rate", "attempts", "kept"), [(1e9, 1, False), (1e11, 2, False), (1e14, ATTEMPTS, True)])
def test_a_factor_that_breaks_in_the_very_last_step_breaks_the_training(rate: float, attempts: int, kept: bool) -> None:
    """One step, of the outputscale alone: beside so great a variance of points so alike, jitter is nothing."""
    free = torch.zeros(LAYOUT.size, dtype=torch.bool)
    LAYOUT.parts(free.unsqueeze(0)).raw_outputscale.fill_(True)
    start = starts(16, 16)
    LAYOUT.parts(start).mean.fill_(1.0)
    LAYOUT.parts(start).raw_lengthscale[0] = 100.0
    X, _ = data(16, 16)
    Y = 10 * forward(start, LAYOUT, X.expand(2, -1, -1), "rbf").mean
    options = TrainingOptions(epochs=1, batch=16, learning_rate=rate)

    def trained(*rows: int) -> Outcome:
        def drawn() -> list[Shuffled]:
            return [Shuffled(X, Y[row], generator(row)) for row in rows]

        return fit(start[list(rows)], LAYOUT, "rbf", drawn, "elbo", options, free)

    together, alone = trained(0, 1), trained(1)
    assert (together.attempts, together.reverted) == ([attempts, 1], [kept, False])
    assert torch.equal(together.trained[0][0], start[0]) == kept
    assert torch.equal(together.trained[0][1], alone.trained[0][0])
    assert inducing_factor(LAYOUT.parts(together.trained[0][:1]), "rbf") is not None


def toy(outcomes: dict[int, list[tuple[float, bool]]], calls: list[tuple[list[int], float]]) -> Callable[..., object]:
    """An attempt whose result for each seed, and whether it broke, are given in turn."""

    def attempt(going: Sequence[int], learning_rate_factor: float) -> tuple[list[torch.Tensor], list[Progress]]:
        calls.append((list(going), learning_rate_factor))
        found = [outcomes[seed].pop(0) for seed in going]
        rows = torch.tensor([[value] for value, _ in found], dtype=torch.float64)
        return [rows, 2 * rows], [Progress(epochs=len(calls), broken=broken) for _, broken in found]

    return attempt


def test_only_those_that_break_are_attempted_again() -> None:
    nan = float("nan")
    outcomes = {
        0: [(1.0, False)],
        1: [(7.0, True), (2.0, False)],
        2: [(nan, False), (7.0, True), (3.0, False)],  # no number in a row breaks it too
        3: [(7.0, True)] * 3,
    }
    calls: list[tuple[list[int], float]] = []
    start = [torch.full((4, 1), -1.0).double(), torch.full((4, 1), -2.0).double()]
    found = retry(start, toy(outcomes, calls))  # type: ignore[arg-type]
    assert [going for going, _ in calls] == [[0, 1, 2, 3], [1, 2, 3], [2, 3]]
    assert [learning_rate_factor for _, learning_rate_factor in calls] == pytest.approx([1.0, 0.1, 0.01])
    assert found.trained[0].flatten().tolist() == [1.0, 2.0, 3.0, -1.0]
    assert found.trained[1].flatten().tolist() == [2.0, 4.0, 6.0, -2.0]
    assert found.attempts == [1, 2, 3, 3]
    assert found.reverted == [False, False, False, True]
    assert found.epochs == [1, 2, 3, 3]
    assert start[0].flatten().tolist() == [-1.0] * 4


@pytest.mark.parametrize(("attempts", "kept"), [(1, False), (4, False), (5, True), (8, True)])
def test_as_many_attempts_as_asked_for(attempts: int, kept: bool) -> None:
    calls: list[tuple[list[int], float]] = []
    start = [torch.full((1, 1), -1.0).double(), torch.full((1, 1), -2.0).double()]
    found = retry(start, toy({0: [(7.0, True)] * 4 + [(1.0, False)]}, calls), attempts)  # type: ignore[arg-type]
    assert found.trained[0].item() == (1.0 if kept else -1.0)
    assert found.attempts == [len(calls)] == [min(attempts, 5)]
    assert [factor for _, factor in calls] == pytest.approx([10.0**-i for i in range(len(calls))])

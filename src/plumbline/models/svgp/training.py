"""SVGPs trained on their data, several seeds at once; steps that fail are retried at a lower learning rate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.minibatches import Progress, RowAdam, Shuffled, Step, TrainingOptions, train
from plumbline.models.svgp.objective import Batch, Layout, Objective, fidelity, forward
from plumbline.models.svgp.process import inducing_factor

ATTEMPTS = 3
"""Attempts at a training, each with a tenth of the learning rate of the one before."""

Attempt = Callable[[Sequence[int], float], tuple[list[Tensor], list[Progress]]]
"""Takes the numbers of some seeds and a factor of the learning rates; returns what was trained, tensors of a row a
seed, and how it went."""


@dataclass(frozen=True)
class Outcome:
    """What came of training several seeds.

    Attributes:
        trained: tensors of a row a seed; where all attempts went wrong, what they began with.
        epochs: passes through the data of the last attempt.
        attempts: how many were made.
        kept: whether what a seed began with was kept.
    """

    trained: list[Tensor]
    epochs: list[int]
    attempts: list[int]
    kept: list[bool]


def retry(start: Sequence[Tensor], attempt: Attempt) -> Outcome:
    """Attempt a training of several seeds; those that break are attempted again with a tenth of the learning rate.

    Args:
        start: tensors of a row a seed: what the training begins with.
        attempt: trains some of the seeds, from the start.
    """
    seeds = len(start[0])
    trained = [one.clone() for one in start]
    epochs, attempts, kept = [0] * seeds, [0] * seeds, [True] * seeds
    going = list(range(seeds))
    for number in range(ATTEMPTS):
        found, progress = attempt(going, 10.0**-number)
        sound = [bool(torch.stack([torch.isfinite(one[i]).all() for one in found]).all()) for i in range(len(going))]
        for i, seed in enumerate(going):
            epochs[seed], attempts[seed] = progress[i].epochs, number + 1
            kept[seed] = progress[i].broken or not sound[i]
            if not kept[seed]:
                for whole, part in zip(trained, found, strict=True):
                    whole[seed] = part[i]
        going = [seed for seed in going if kept[seed]]
        if not going:
            break
    return Outcome(trained, epochs, attempts, kept)


def masked(values: Tensor, broken: Tensor) -> Tensor:
    """Return values with NaN where a process is broken."""
    return values.masked_fill(broken, torch.nan)


def checked(rows: Tensor, progress: Sequence[Progress], layout: Layout, kernel: SparseKernel) -> list[Progress]:
    """Return how trainings went; those are broken too whose last step, which no other looked at, left no process.

    They are looked at one by one, on the CPU, as they will be used: a factor in company may have other last digits.

    Args:
        rows: `b x p`, trained.
        progress: of each row.
        layout: of a row.
        kernel: of the processes.
    """
    factors = [inducing_factor(layout.parts(row.unsqueeze(0)), kernel) for row in rows.cpu()]
    return [replace(one, broken=one.broken or L is None) for one, L in zip(progress, factors, strict=True)]


def fidelity_step(
    rows: Tensor,
    layout: Layout,
    kernel: SparseKernel,
    objective: Objective,
    options: TrainingOptions,
    learning_rate_factor: float = 1.0,
    free: Tensor | None = None,
) -> Step:
    """Return a step of training that moves `rows` (`b x p`, in place) towards a greater ELBO, or PPGPR's objective.

    Args:
        rows: parameters of the processes.
        layout: of a row.
        kernel: of the processes.
        objective: ELBO or PPGPR.
        options: learning rate and clipping.
        learning_rate_factor: factor of the learning rate.
        free: `p` booleans, which parameters move; None for all.
    """
    adam = RowAdam(rows, options.learning_rate * learning_rate_factor, options.clip)
    free = None if free is None else free.to(rows.device)

    def step(going: Sequence[int], batch: Batch, epochs: Sequence[int]) -> Tensor:
        now = rows if len(going) == len(rows) else rows[torch.tensor(going, device=rows.device)]
        passed = forward(now, layout, batch.X, kernel)
        value, cotangents = fidelity(passed, batch, objective)
        gradient = passed.vjp(*cotangents, divergence=-1 / batch.data)
        adam.step(going, gradient if free is None else gradient * free)
        return masked(value, passed.prepared.inducing.broken)

    return step


@torch.no_grad()
def fit(
    start: Tensor,
    layout: Layout,
    kernel: SparseKernel,
    sources: Callable[[], Sequence[Shuffled]],
    objective: Objective,
    options: TrainingOptions,
    free: Tensor | None = None,
) -> Outcome:
    """Return the parameters of several seeds, trained on their data; AABO, appendix A.

    Args:
        start: `b x p`.
        layout: of a row.
        kernel: of the processes.
        sources: makes the minibatches of each seed, the same whenever it is called.
        objective: ELBO or PPGPR.
        options: how.
        free: `p` booleans, which parameters move; None for all.
    """

    def attempt(going: Sequence[int], learning_rate_factor: float) -> tuple[list[Tensor], list[Progress]]:
        rows = start[list(going)].clone()
        drawn = sources()
        step = fidelity_step(rows, layout, kernel, objective, options, learning_rate_factor, free)
        progress = train([drawn[i] for i in going], options, step)
        return [rows], checked(rows, progress, layout, kernel)

    return retry([start], attempt)

"""Batched training of SVGPs over seeds; failed trainings are retried at a lower learning rate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.minibatches import Progress, RowAdam, Shuffled, Step, TrainingOptions, train
from plumbline.models.svgp.objective import Batch, Layout, Objective, fidelity, forward
from plumbline.models.svgp.process import inducing_factor

ATTEMPTS = 3
"""Greatest number of attempts at a training, each with a tenth of the previous learning rate, unless options say."""

Attempt = Callable[[Sequence[int], float], tuple[list[Tensor], list[Progress]]]
"""Trains the seeds with given indices at a factor of the learning rates; returns the trained tensors, a row per seed,
and the progress."""


@dataclass(frozen=True)
class Outcome:
    """Result of training several seeds.

    Attributes:
        trained: tensors with a row per seed; the start where all attempts failed.
        epochs: passes through the data in the last attempt of each seed.
        attempts: number of attempts of each seed.
        reverted: whether all attempts of a seed failed, so that the seed is back at its start.
    """

    trained: list[Tensor]
    epochs: list[int]
    attempts: list[int]
    reverted: list[bool]


def retry(start: Sequence[Tensor], attempt: Attempt, attempts: int = ATTEMPTS) -> Outcome:
    """Train several seeds; seeds that fail are trained again with a tenth of the learning rate.

    Args:
        start: initial tensors, a row per seed.
        attempt: trains some of the seeds from the start.
        attempts: greatest number of attempts.
    """
    seeds = len(start[0])
    trained = [one.clone() for one in start]
    epochs, taken, reverted = [0] * seeds, [0] * seeds, [True] * seeds
    going = list(range(seeds))
    for number in range(attempts):
        tensors, progress = attempt(going, 10.0**-number)
        sound = [bool(torch.stack([torch.isfinite(one[i]).all() for one in tensors]).all()) for i in range(len(going))]
        for i, seed in enumerate(going):
            epochs[seed], taken[seed] = progress[i].epochs, number + 1
            reverted[seed] = progress[i].broken or not sound[i]
            if not reverted[seed]:
                for rows, part in zip(trained, tensors, strict=True):
                    rows[seed] = part[i]
        going = [seed for seed in going if reverted[seed]]
        if not going:
            break
    return Outcome(trained, epochs, taken, reverted)


def masked(values: Tensor, broken: Tensor) -> Tensor:
    """Return values with NaN where the covariance of the inducing points has no Cholesky factor."""
    return values.masked_fill(broken, torch.nan)


def checked(rows: Tensor, progress: Sequence[Progress], layout: Layout, kernel: SparseKernel) -> list[Progress]:
    """Return the progress of trainings, with those marked broken whose last step left no valid SVGP.

    No later step evaluates the last one. We factorise seeds singly on the CPU, as they will be used: a batched
    factorisation may differ in the last digits.

    Args:
        rows: `b x p`, trained.
        progress: progress of each row.
        layout: layout of a row.
        kernel: kernel of the SVGPs.
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
    """Return a training step that moves `rows` (`b x p`, in place) towards a greater ELBO or PPGPR objective.

    Args:
        rows: parameters of the SVGPs.
        layout: layout of a row.
        kernel: kernel of the SVGPs.
        objective: ELBO or PPGPR.
        options: learning rate and clipping.
        learning_rate_factor: factor of the learning rate.
        free: `p` booleans, the parameters that move; None for all.
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
    """Return the trained parameters of several seeds; AABO, appendix A.

    Args:
        start: `b x p`, initial parameters.
        layout: layout of a row.
        kernel: kernel of the SVGPs.
        sources: makes the minibatches of each seed, the same whenever it is called.
        objective: ELBO or PPGPR.
        options: learning rate, clipping and stopping rule.
        free: `p` booleans, the parameters that move; None for all.
    """

    def attempt(going: Sequence[int], learning_rate_factor: float) -> tuple[list[Tensor], list[Progress]]:
        rows = start[list(going)].clone()
        drawn = sources()
        step = fidelity_step(rows, layout, kernel, objective, options, learning_rate_factor, free)
        progress = train([drawn[i] for i in going], options, step)
        return [rows], checked(rows, progress, layout, kernel)

    return retry([start], attempt)

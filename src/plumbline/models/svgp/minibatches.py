"""Training by shuffled minibatches for a batch of seeds, each until convergence."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.models.svgp.numerics import power
from plumbline.models.svgp.objective import Batch

EXPLODED = 1e8
"""Magnitude of the objective per datum beyond which training has diverged, as it has at NaN."""


class TrainingOptions(Options):
    """Options of training by Adam; AABO, table 1 and appendix A.

    Attributes:
        learning_rate: learning rate of the model's parameters.
        batch: size of a minibatch.
        clip: greatest norm of a gradient of the objective per datum.
        epochs: greatest number of passes through the data.
        failures: number of passes without a new best value after which training has converged.
        counted: whether such passes are counted in a row, as we read the paper, or in total (its code).
        judged: whether the objective of a pass is the mean over data, or over minibatches (its code), in which the last
            and smallest one counts as much as the others.
        pass_size: greatest number of data of a pass, drawn anew for each; None for all data (the paper). With it the
            cost of a training does not grow with the data, and convergence is judged as often as with so many.
    """

    learning_rate: PositiveFloat = 0.01
    batch: PositiveInt = 32
    clip: PositiveFloat = 2.0
    epochs: PositiveInt = 30
    failures: PositiveInt = 3
    counted: Literal["in a row", "in total"] = "in a row"
    judged: Literal["by datum", "by minibatch"] = "by datum"
    pass_size: PositiveInt | None = None


@dataclass
class Progress:
    """Progress of the training of one seed.

    Attributes:
        best: greatest mean objective of a pass.
        failures: number of passes without a new best.
        epochs: number of passes.
        broken: whether the objective was NaN or diverged.
    """

    best: float = -math.inf
    failures: int = 0
    epochs: int = 0
    broken: bool = False

    def after(self, value: float, options: TrainingOptions) -> bool:
        """Record the mean objective of a pass, and return whether training is over."""
        self.epochs += 1
        if not abs(value) < EXPLODED:
            self.broken = True
            return True
        if value > self.best:
            self.best = value
            if options.counted == "in a row":
                self.failures = 0
        else:
            self.failures += 1
        return self.failures >= options.failures or self.epochs >= options.epochs


@dataclass
class Shuffled:
    """Minibatches of the data of one seed, shuffled anew at each pass; AABO, appendix A.

    Attributes:
        X: `n x d`.
        y: `n`.
        generator: generator of the permutations, on the CPU.
    """

    X: Tensor
    y: Tensor
    generator: Generator
    _left: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))

    def draw(self, size: int, pass_size: int | None = None) -> tuple[Tensor, Tensor, bool]:
        """Return the next minibatch (`k x d` and `k`, `k <= size`), and whether it ends a pass.

        A pass is over `pass_size` of the data; None for all.
        """
        if not len(self._left):
            shuffled = torch.randperm(len(self.y), generator=self.generator)
            self._left = shuffled[:pass_size].to(self.X.device)
        rows, self._left = self._left[:size], self._left[size:]
        return self.X[rows], self.y[rows], not len(self._left)


Step = Callable[[Sequence[int], Batch, Sequence[int]], Tensor]
"""A training step: maps the indices of the active seeds, their minibatches and their numbers of passes to the objective
per datum of each seed, `b`."""


def train(sources: Sequence[Shuffled], options: TrainingOptions, step: Step) -> list[Progress]:
    """Take steps until each seed has converged, and return the progress of each; converged seeds take no more steps.

    The minibatches of a seed do not depend on the seeds that train with it.

    Args:
        sources: minibatches of each seed.
        options: the stopping rule.
        step: the training step.
    """
    progress = [Progress() for _ in sources]
    going = list(range(len(sources)))
    sums = torch.zeros(len(sources), dtype=sources[0].y.dtype, device=sources[0].y.device)
    while going:
        drawn = {i: sources[i].draw(options.batch, options.pass_size) for i in going}
        for members in _alike(drawn):
            X, y = torch.stack([drawn[i][0] for i in members]), torch.stack([drawn[i][1] for i in members])
            data = X.new_tensor([len(sources[i].y) for i in members])
            values = step(members, Batch(X, y, data), [progress[i].epochs for i in members])
            sums[members] += values * share_of_pass(y.shape[-1], data, options)
        ended = [i for i in going if drawn[i][2]]
        if ended:
            over = {i for i, mean in zip(ended, sums[ended].tolist(), strict=True) if progress[i].after(mean, options)}
            sums[ended] = 0.0
            going = [i for i in going if i not in over]
    return progress


def share_of_pass(size: int, data: Tensor, options: TrainingOptions) -> Tensor:
    """Return the weight of minibatches of equal size in the mean objectives of their passes, `b`.

    Args:
        size: number of data in each.
        data: `b`, numbers of data that they are drawn from.
        options: of the training.
    """
    of_pass = data.clamp_max(options.pass_size or math.inf)
    return size / of_pass if options.judged == "by datum" else (of_pass / options.batch).ceil().reciprocal()


def _alike(drawn: Mapping[int, tuple[Tensor, Tensor, bool]]) -> list[list[int]]:
    """Return the seeds grouped by the length of their minibatches.

    Minibatches are not padded to one length: that would change the last digits of sums.
    """
    lengths = {i: len(y) for i, (_, y, _) in drawn.items()}
    return [[i for i in drawn if lengths[i] == length] for length in sorted(set(lengths.values()), reverse=True)]


class RowAdam:
    """Adam (Kingma & Ba, 2015) for maximisation, over selected rows of a matrix, with gradients clipped by row.

    torch's Adam moves all rows in each step; here the rows of converged seeds do not move.

    Args:
        rows: `b x p`, changed in place.
        learning_rate: `b`, or one for all rows.
        clip: greatest norm of a row's gradient.
    """

    decay, decay_of_squares, epsilon = 0.9, 0.999, 1e-8

    def __init__(self, rows: Tensor, learning_rate: float | Tensor, clip: float) -> None:
        self.rows = rows
        self.learning_rate = torch.as_tensor(learning_rate, dtype=rows.dtype, device=rows.device).expand(len(rows))
        self.clip = clip
        self.steps = torch.zeros(len(rows), dtype=rows.dtype, device=rows.device)
        self.first = torch.zeros_like(rows)
        self.second = torch.zeros_like(rows)

    def step(self, going: Sequence[int], gradient: Tensor) -> None:
        """Move the rows `going` (`k` indices) along their gradients (`k x p`), which are clipped in place."""
        scale = (self.clip / torch.linalg.vector_norm(gradient, dim=-1).add_(1e-6)).clamp_max_(1.0)
        gradient.mul_(scale.unsqueeze(-1))
        if len(going) == len(self.rows):
            self._move(self.rows, self.first, self.second, self.steps, self.learning_rate, gradient)
            return
        index = torch.tensor(going, device=self.rows.device)
        state = (self.rows, self.first, self.second, self.steps)
        rows, first, second, steps = (one[index] for one in state)
        self._move(rows, first, second, steps, self.learning_rate[index], gradient)
        for one, part in zip(state, (rows, first, second, steps), strict=True):
            one[index] = part

    def _move(self, rows: Tensor, first: Tensor, second: Tensor, steps: Tensor, rate: Tensor, gradient: Tensor) -> None:
        steps.add_(1)
        first.lerp_(gradient, 1 - self.decay)
        second.mul_(self.decay_of_squares).addcmul_(gradient, gradient, value=1 - self.decay_of_squares)
        # The bias correction of the second moments is a factor per row, which saves a division per parameter.
        correction = (1 - power(self.decay_of_squares, steps)).sqrt_()
        size = correction * rate / (1 - power(self.decay, steps))
        denominator = second.sqrt().add_((correction * self.epsilon).unsqueeze(-1))
        rows.add_(torch.div(first, denominator, out=denominator).mul_(size.unsqueeze(-1)))

"""Training by shuffled minibatches of several seeds at once, each until it makes no more progress."""

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
"""An objective per datum beyond which training counts as exploded, like one that is no number."""


class TrainingOptions(Options):
    """Options of training by Adam; AABO, table 1 and appendix A.

    Attributes:
        learning_rate: of the model's parameters.
        batch: data of a minibatch.
        clip: greatest norm of a gradient of the objective per datum.
        epochs: passes through the data at most.
        failures: passes without a new best value after which training has converged.
        counted: whether such passes are counted in a row (the text) or in total (the code).
    """

    learning_rate: PositiveFloat = 0.01
    batch: PositiveInt = 32
    clip: PositiveFloat = 2.0
    epochs: PositiveInt = 30
    failures: PositiveInt = 3
    counted: Literal["in a row", "in total"] = "in a row"


@dataclass
class Progress:
    """How the training of one seed goes.

    Attributes:
        best: greatest mean value of a pass.
        failures: passes without a new best.
        epochs: passes.
        broken: whether a value was no number, or beyond all bounds.
    """

    best: float = -math.inf
    failures: int = 0
    epochs: int = 0
    broken: bool = False

    def after(self, value: float, options: TrainingOptions) -> bool:
        """Take note of the mean value of a pass, and return whether training is over."""
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
    """The data of one seed, which come in minibatches, shuffled anew at each pass; AABO, appendix A.

    Attributes:
        X: `n x d`.
        y: `n`.
        generator: of the shuffling, on the CPU.
    """

    X: Tensor
    y: Tensor
    generator: Generator
    _left: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))

    def draw(self, size: int) -> tuple[Tensor, Tensor, bool]:
        """Return the next minibatch (`k x d` and `k`, `k <= size`), and whether a pass ends with it."""
        if not len(self._left):
            self._left = torch.randperm(len(self.y), generator=self.generator).to(self.X.device)
        rows, self._left = self._left[:size], self._left[size:]
        return self.X[rows], self.y[rows], not len(self._left)


Step = Callable[[Sequence[int], Batch, Sequence[int]], Tensor]
"""Takes the numbers of the seeds that go on, a minibatch of each and how many passes each has made; trains, and
returns the value of each seed's objective per datum, `b`."""


def train(sources: Sequence[Shuffled], options: TrainingOptions, step: Step) -> list[Progress]:
    """Take steps until each seed has converged, and return how it went; from then on it is left out.

    Which other seeds are trained with it makes no difference to what a seed sees.

    Args:
        sources: the data of each seed.
        options: when it is over.
        step: trains.
    """
    progress = [Progress() for _ in sources]
    going = list(range(len(sources)))
    sums = torch.zeros(len(sources), dtype=sources[0].y.dtype, device=sources[0].y.device)
    while going:
        drawn = {i: sources[i].draw(options.batch) for i in going}
        for members in _alike(drawn):
            X, y = torch.stack([drawn[i][0] for i in members]), torch.stack([drawn[i][1] for i in members])
            data = X.new_tensor([len(sources[i].y) for i in members])
            values = step(members, Batch(X, y, data), [progress[i].epochs for i in members])
            sums[members] += values * (y.shape[-1] / data)
        ended = [i for i in going if drawn[i][2]]
        if ended:
            over = {i for i, mean in zip(ended, sums[ended].tolist(), strict=True) if progress[i].after(mean, options)}
            sums[ended] = 0.0
            going = [i for i in going if i not in over]
    return progress


def _alike(drawn: Mapping[int, tuple[Tensor, Tensor, bool]]) -> list[list[int]]:
    """Return the seeds whose minibatches are of one length, length by length.

    They are not filled up to one: sums of other lengths have other last digits.
    """
    lengths = {i: len(y) for i, (_, y, _) in drawn.items()}
    return [[i for i in drawn if lengths[i] == length] for length in sorted(set(lengths.values()), reverse=True)]


class RowAdam:
    """Adam (Kingma & Ba, 2015) that maximises, of some rows of a matrix at a time; each row clips its gradient itself.

    torch's own moves all rows in each step; here seeds that have converged stay where they are.

    Args:
        rows: `b x p`, changed in place.
        learning_rate: `b`, or one for all.
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
        """Move the rows `going` (`k` numbers) along their gradients (`k x p`), which are clipped in place."""
        scale = (self.clip / torch.linalg.vector_norm(gradient, dim=-1).add_(1e-6)).clamp_max_(1.0)
        gradient.mul_(scale.unsqueeze(-1))
        if len(going) == len(self.rows):
            self._move(self.rows, self.first, self.second, self.steps, self.learning_rate, gradient)
            return
        index = torch.tensor(going, device=self.rows.device)
        whole = (self.rows, self.first, self.second, self.steps)
        rows, first, second, steps = (one[index] for one in whole)
        self._move(rows, first, second, steps, self.learning_rate[index], gradient)
        for one, part in zip(whole, (rows, first, second, steps), strict=True):
            one[index] = part

    def _move(self, rows: Tensor, first: Tensor, second: Tensor, steps: Tensor, rate: Tensor, gradient: Tensor) -> None:
        steps.add_(1)
        first.lerp_(gradient, 1 - self.decay)
        second.mul_(self.decay_of_squares).addcmul_(gradient, gradient, value=1 - self.decay_of_squares)
        # What corrects the bias of the second moments is a factor of a row: one less division of every parameter.
        correction = (1 - power(self.decay_of_squares, steps)).sqrt_()
        size = correction * rate / (1 - power(self.decay, steps))
        denominator = second.sqrt().add_((correction * self.epsilon).unsqueeze(-1))
        rows.add_(torch.div(first, denominator, out=denominator).mul_(size.unsqueeze(-1)))

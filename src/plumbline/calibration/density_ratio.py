"""Density ratios of queries over data, `p'(x) / p(x)`: learned by telling one from the other."""

import math
from copy import deepcopy
from itertools import pairwise
from typing import Protocol

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Generator, Tensor, nn
from torch.nn.functional import softplus
from torch.nn.utils import skip_init

from plumbline.calibration.conformal import importance_weights
from plumbline.options import Options


class LogRatio(Protocol):
    """Maps points `... x d`, in the unit cube, to log density ratios `...`."""

    def __call__(self, U: Tensor) -> Tensor:
        """Return the log ratios."""
        ...


def weights_at(log_ratio: LogRatio, data: Tensor, U: Tensor) -> Tensor:
    """Return the importance weights at test points; see `conformal.importance_weights`.

    Args:
        log_ratio: of points in the unit cube.
        data: `n x d`.
        U: `b x q x d`.

    Returns:
        `b x q x (n + 1)`, the test point's own last.
    """
    rows = log_ratio(torch.cat([data, U.flatten(end_dim=-2)]))
    return importance_weights(rows[: len(data)], rows[len(data) :].reshape(U.shape[:-1]))


def no_shift(U: Tensor) -> Tensor:
    """Return log ratios of zero: data and queries from one distribution."""
    return U.new_zeros(U.shape[:-1])


class RatioOptions(Options):
    """Options of the probabilistic classifier; CBO, appendix D (its architecture is that of the published code).

    Attributes:
        hidden: width of the two hidden layers.
        learning_rate: of Adam.
        weight_decay: of Adam.
        ema: weight of the newest parameters in their moving average; 1 for no average.
        steps: updates on a candidate pool (in a box there is one a Langevin step).
        clip: ratios are kept in `[1 / clip, clip]`: a classifier that separates perfectly would say 0 or infinity.
    """

    hidden: PositiveInt = 64
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 1e-4
    ema: float = Field(default=2e-2, gt=0.0, le=1.0)
    steps: NonNegativeInt = 256
    clip: float = Field(default=1e3, gt=1.0)


class RatioClassifier:
    """A classifier of data against queries whose logit, with both classes weighing alike, is the log density ratio.

    Ratios come from a moving average of its parameters that starts at zero, which says that there is no shift; CBO,
    section 4.3 and Algorithm 4.
    """

    def __init__(self, dim: int, options: RatioOptions, generator: Generator) -> None:
        """Make a classifier of points in the unit cube of dimension `dim`; `generator` draws its first parameters."""
        self.options = options
        self.network = _network(dim, options.hidden, generator)
        self.averaged = deepcopy(self.network).requires_grad_(requires_grad=False)
        for parameter in self.averaged.parameters():
            parameter.zero_()
        self.optimiser = torch.optim.Adam(
            self.network.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, fused=True
        )

    def update(self, data: Tensor, queries: Tensor) -> None:
        """Take one step on all of `data` (`n x d`) and `queries` (`m x d`)."""
        logits = self.network(2 * torch.cat([data, queries]) - 1).squeeze(-1)
        loss = softplus(logits[: len(data)]).mean() + softplus(-logits[len(data) :]).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        with torch.no_grad():
            for old, new in zip(self.averaged.parameters(), self.network.parameters(), strict=True):
                old.lerp_(new, self.options.ema)

    def __call__(self, U: Tensor) -> Tensor:
        """Return the log ratios at `... x d`, clipped."""
        limit = math.log(self.options.clip)
        return self.averaged(2 * U - 1).squeeze(-1).clamp(-limit, limit)

    def clipped(self, U: Tensor) -> float:
        """Return the share of points whose ratio is at its limit."""
        return float((self(U).abs() >= math.log(self.options.clip)).double().mean())


def _network(dim: int, hidden: int, generator: Generator) -> nn.Sequential:
    sizes = (dim, hidden, hidden, 1)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        # Its own initialisation would draw from the global stream.
        layer = skip_init(nn.Linear, inputs, outputs, dtype=torch.float64)
        bound = 1 / math.sqrt(inputs)
        for parameter in layer.parameters():
            with torch.no_grad():
                parameter.uniform_(-bound, bound, generator=generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def fit_ratio(data: Tensor, queries: Tensor, options: RatioOptions, generator: Generator) -> RatioClassifier:
    """Return a classifier trained for `options.steps` on fixed samples: a candidate pool, or draws of known queries."""
    classifier = RatioClassifier(data.shape[-1], options, generator)
    for _ in range(options.steps):
        classifier.update(data, queries)
    return classifier

"""Density ratios of queries over data, `p'(x) / p(x)`, learned by probabilistic classification."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, Protocol

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.core.vjp import VJP, with_vjp
from plumbline.methods.conformal.scores import importance_weights


class LogRatio(Protocol):
    """Maps points `... x d`, in the unit cube, to log density ratios `...`."""

    def __call__(self, U: Tensor) -> Tensor:
        """Return the log ratios."""
        ...


def weights_at(log_ratio: LogRatio, data: Tensor, U: Tensor) -> Tensor:
    """Return the importance weights at test points; see `scores.importance_weights`.

    Args:
        log_ratio: log density ratio of points in the unit cube.
        data: `n x d`.
        U: `b x q x d`.

    Returns:
        `b x q x (n + 1)`, the test point's own last.
    """
    return weights_with_vjp(log_ratio, data, U, record=False)[0]


def weights_with_vjp(
    log_ratio: LogRatio, data: Tensor, U: Tensor, record: bool = True
) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return the weights and the vector-Jacobian product of the test points' log ratios, from `b x q` to the points.

    Arguments are those of `weights_at`; `record` is that of `vjp.with_vjp`.
    """
    of_test, vjp = with_vjp(log_ratio, U, record=record)
    return importance_weights(log_ratio(data), of_test), lambda grad_log_ratio: vjp(grad_log_ratio)[0]


def no_shift(U: Tensor) -> Tensor:
    """Return zeros: the log ratios of data and queries from one distribution."""
    return U.new_zeros(U.shape[:-1])


class RatioOptions(Options):
    """Options of the probabilistic classifier; CBO, appendix D (its architecture is that of the published code).

    Attributes:
        hidden: width of the two hidden layers.
        learning_rate: of Adam.
        weight_decay: of Adam.
        ema: weight of the newest parameters in their moving average; 1 for no average, 0 for a ratio of one.
        steps: updates on a candidate pool; in a box there is one update a Langevin step.
        classes: weights of the classes in the loss: equal, or as in CBO's code. There each of `m` queries has
            `(n - m) / m` times the weight of each of `n` data, which is negative where queries outnumber data.
        clip: ratios are clipped to `[1 / clip, clip]`: perfectly separated classes would give 0 or infinity.
    """

    hidden: PositiveInt = 64
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 1e-4
    ema: float = Field(default=2e-2, ge=0.0, le=1.0)
    steps: NonNegativeInt = 256
    classes: Literal["alike", "published"] = "alike"
    clip: float = Field(default=1e3, gt=1.0)

    def class_weights(self, n: int, m: int) -> tuple[float, float]:
        """Weights in the loss of each of `n` data and of each of `m` queries."""
        if self.classes == "alike":
            return 1 / n, 1 / m
        return 1 / (n + m), (n - m) / m / (n + m)


ADAM = (0.9, 0.999, 1e-8)
"""Decay rates of the first and second moments, and epsilon; Kingma & Ba (2015)."""


class RatioClassifier:
    """A classifier of data against queries: under equal class weights its logit is the log density ratio.

    Ratios come from a moving average of the parameters that starts at zero, that is, at no shift; CBO, section 4.3 and
    Algorithm 4. Layers are views of one parameter vector, so that an update takes few operations.

    Attributes:
        parameters: newest parameters.
        averaged: moving average of the parameters.
    """

    def __init__(self, dim: int, options: RatioOptions, generator: Generator) -> None:
        """Make a classifier of points in the unit cube of dimension `dim`; `generator` draws its initial parameters."""
        self.options = options
        sizes = (dim, options.hidden, options.hidden, 1)
        vectors = torch.zeros(
            5, sum((inputs + 1) * outputs for inputs, outputs in pairwise(sizes)), dtype=torch.float64
        )
        self.parameters, self.averaged, self._gradient, self._first, self._second = vectors
        self._newest, self._slopes, self._mean = (
            _layers(vector, sizes) for vector in (self.parameters, self._gradient, self.averaged)
        )
        self._steps = 0
        for weight, bias in self._newest:
            bound = 1 / math.sqrt(weight.shape[0])
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)

    def update(self, data: Tensor, queries: Tensor) -> None:
        """Take one step of Adam on all of `data` (`n x d`) and `queries` (`m x d`).

        The loss is the weighted sum of `softplus(logit)` over the data and of `softplus(-logit)` over the queries, by
        the class weights; the gradient includes the weight decay.
        """
        of_datum, of_query = self.options.class_weights(len(data), len(queries))
        with torch.no_grad():
            x = torch.cat([data, queries]).mul_(2).sub_(1)
            layers = self._newest
            first, second, logits = _activations(layers, x)
            grad_logits = logits.sigmoid()
            of_data, of_queries = grad_logits.split([len(data), len(queries)])
            of_data.mul_(of_datum)
            of_queries.sub_(1).mul_(of_query)
            grad_second, grad_first = _vjp(layers, first, second, grad_logits)
            for (grad_weight, grad_bias), inputs, grad_outputs in zip(
                self._slopes, (x, first, second), (grad_first, grad_second, grad_logits.unsqueeze(-1)), strict=True
            ):
                torch.mm(inputs.mT, grad_outputs, out=grad_weight)
                torch.sum(grad_outputs, dim=0, out=grad_bias)
            self._descend()
            self.averaged.lerp_(self.parameters, self.options.ema)

    def __call__(self, U: Tensor) -> Tensor:
        """Return the clipped log ratios at `... x d`."""
        return self.with_vjp(U)[0]

    def with_vjp(self, U: Tensor) -> tuple[Tensor, VJP]:
        """Return the log ratios and their vector-Jacobian product, which is zero where they are clipped."""
        layers, limit = self._mean, math.log(self.options.clip)
        first, second, logits = _activations(layers, 2 * U.reshape(-1, U.shape[-1]) - 1)
        clipped = logits.clamp(-limit, limit)

        def vjp(grad_ratio: Tensor) -> tuple[Tensor]:
            grad_logits = grad_ratio.reshape(-1) * (logits == clipped)
            _, grad_first = _vjp(layers, first, second, grad_logits)
            return (2 * (grad_first @ layers[0][0].mT).view(U.shape),)

        return clipped.view(U.shape[:-1]), vjp

    def clipped(self, U: Tensor) -> float:
        """Return the share of points whose ratio is clipped."""
        return float((self(U).abs() >= math.log(self.options.clip)).double().mean())

    def _descend(self) -> None:
        """Take Adam's step along the gradient; Kingma & Ba (2015), algorithm 1."""
        self._steps += 1
        first, second, eps = ADAM
        gradient = self._gradient.add_(self.parameters, alpha=self.options.weight_decay)
        self._first.lerp_(gradient, 1 - first)
        self._second.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = (self._second / (1 - second**self._steps)).sqrt_().add_(eps)
        step = self.options.learning_rate / (1 - first**self._steps)
        self.parameters.addcdiv_(self._first, scale, value=-step)


Layers = Sequence[tuple[Tensor, Tensor]]
"""Weights (`inputs x outputs`) and biases."""


def _layers(vector: Tensor, sizes: Sequence[int]) -> Layers:
    """Return the parameters of layers with `sizes` units as views of a vector."""
    layers, start = [], 0
    for inputs, outputs in pairwise(sizes):
        middle, end = start + inputs * outputs, start + (inputs + 1) * outputs
        # Transposed views: memory is laid out as in torch's own layers, so that initial draws agree with theirs.
        layers.append((vector[start:middle].view(outputs, inputs).mT, vector[middle:end]))
        start = end
    return layers


def _activations(layers: Layers, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the activations of the two hidden layers, `r x hidden`, and the logits, `r`, of rows `r x d`."""
    (W1, b1), (W2, b2), (W3, b3) = layers
    first = torch.addmm(b1, x, W1).relu_()
    second = torch.addmm(b2, first, W2).relu_()
    return first, second, torch.addmm(b3, second, W3).view(-1)


def _vjp(layers: Layers, first: Tensor, second: Tensor, grad_logits: Tensor) -> tuple[Tensor, Tensor]:
    """Map a gradient in the logits to those in the second and first hidden layers before their rectifiers."""
    (_, _), (W2, _), (W3, _) = layers
    grad_second = torch.outer(grad_logits, W3.view(-1)).mul_(second.sign())
    return grad_second, (grad_second @ W2.mT).mul_(first.sign())


def fit_ratio(data: Tensor, queries: Tensor, options: RatioOptions, generator: Generator) -> RatioClassifier:
    """Return a classifier trained for `options.steps` on fixed samples: a candidate pool, or draws of known queries."""
    classifier = RatioClassifier(data.shape[-1], options, generator)
    for _ in range(options.steps):
        classifier.update(data, queries)
    return classifier

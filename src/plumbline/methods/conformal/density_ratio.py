"""Density ratios of queries over data, `p'(x) / p(x)`, learned by probabilistic classification."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from scipy.special import expit
from torch import Generator, Tensor

from plumbline.core.numbers import Array
from plumbline.core.options import Options
from plumbline.core.vjp import VJP, with_vjp
from plumbline.methods.conformal.masses import importance_weights


class LogRatio(Protocol):
    """Maps points `... x d`, in the unit cube, to log density ratios `...`."""

    def __call__(self, U: Tensor) -> Tensor:
        """Return the log ratios."""
        ...


def weights_at(log_ratio: LogRatio, data: Tensor, U: Tensor) -> Tensor:
    """Return the importance weights at test points; see `masses.importance_weights`.

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
        steps: updates on a candidate pool; in a box there is one update a Langevin step after the burn-in.
        classes: weights of the classes in the loss: equal, or as in CBO's script of ranking, where each of `m` queries
            has `(n - m) / m` times the weight of each of `n` data, which is negative where queries outnumber data.
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


class RatioClassifiers:
    """m classifiers of data against queries, in arrays: under equal class weights a logit is a log density ratio.

    Ratios come from a moving average of the parameters that starts at zero, that is, at no shift; CBO, section 4.3 and
    Algorithm 4. Layers are views of vectors of parameters, so that an update takes few operations. The numbers of a
    classifier do not depend on the others, to the last bit.

    Args:
        vectors: `5 x m x p`: parameters, their moving average, gradients, and Adam's first and second moments.
        dim: `d`.
        options: of all classifiers.
        steps: updates so far.

    Attributes:
        parameters: newest parameters, `m x p`.
        averaged: moving average of the parameters, likewise.
    """

    def __init__(self, vectors: Array, dim: int, options: RatioOptions, steps: int = 0) -> None:
        self.vectors, self.dim, self.options, self.steps = vectors, dim, options, steps
        self.parameters, self.averaged, self._gradient, self._first, self._second = vectors
        self._spare = np.empty_like(self.parameters)
        self._newest, self._mean, self._slopes = (
            _layers(each, sizes_of(dim, options)) for each in (self.parameters, self.averaged, self._gradient)
        )

    @classmethod
    def drawn(cls, dim: int, options: RatioOptions, generator: Generator) -> "RatioClassifiers":
        """Return one classifier of points in the unit cube of dimension `dim`, with initial parameters by torch's rule.

        Weights, then biases, of each layer are uniform within one over the root of its inputs.
        """
        parts = []
        for inputs, outputs in pairwise(sizes_of(dim, options)):
            bound = 1 / math.sqrt(inputs)
            for size in (inputs * outputs, outputs):
                parts.append(torch.empty(size, dtype=torch.float64).uniform_(-bound, bound, generator=generator))
        parameters = torch.cat(parts).numpy()
        vectors = np.zeros((5, 1, len(parameters)))
        vectors[0] = parameters
        return cls(vectors, dim, options)

    @classmethod
    def together(cls, parts: Sequence["RatioClassifiers"]) -> "RatioClassifiers":
        """Return copies of the classifiers of all parts, which have the same options and numbers of updates."""
        first = parts[0]
        return cls(np.concatenate([part.vectors for part in parts], axis=1), first.dim, first.options, first.steps)

    def only(self, row: int) -> "RatioClassifiers":
        """Return a copy of the classifier with number `row`."""
        return RatioClassifiers(self.vectors[:, [row]], self.dim, self.options, self.steps)

    def update(self, data: Array, queries: Array) -> None:
        """Take one step of Adam on all of `data` (`m x n x d`) and `queries` (`m x r x d`).

        The loss is the weighted sum of `softplus(logit)` over the data and of `softplus(-logit)` over the queries, by
        the class weights; the gradient includes the weight decay.
        """
        n = data.shape[-2]
        of_datum, of_query = self.options.class_weights(n, queries.shape[-2])
        x = np.concatenate([data, queries], axis=-2)
        x *= 2
        x -= 1
        first, second, logits = _activations(self._newest, x)
        grad_logits = expit(logits)
        grad_logits[:, :n] *= of_datum
        grad_logits[:, n:] -= 1
        grad_logits[:, n:] *= of_query
        grad_second, grad_first = _vjp(self._newest, first, second, grad_logits)
        for (grad_weight, grad_bias), inputs, grad_outputs in zip(
            self._slopes, (x, first, second), (grad_first, grad_second, grad_logits[..., None]), strict=True
        ):
            np.matmul(grad_outputs.mT, inputs, out=grad_weight)
            np.sum(grad_outputs, axis=-2, keepdims=True, out=grad_bias)
        self._descend()
        change = np.subtract(self.parameters, self.averaged, out=self._spare)
        change *= self.options.ema
        self.averaged += change

    def with_vjp(self, U: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the clipped log ratios at `m x r x d` points, and their VJP in the first b of them.

        The latter maps `m x b` to `m x b x d`; it is zero where ratios are clipped.
        """
        limit = math.log(self.options.clip)
        first, second, logits = _activations(self._mean, 2 * U - 1)
        clipped = np.minimum(np.maximum(logits, -limit), limit)

        def vjp(grad_ratio: Array) -> Array:
            b = grad_ratio.shape[-1]
            grad_logits = grad_ratio * (logits[:, :b] == clipped[:, :b])
            _, grad_first = _vjp(self._mean, first[:, :b], second[:, :b], grad_logits)
            return 2 * (grad_first @ self._mean[0][0])

        return clipped, vjp

    def _descend(self) -> None:
        """Take Adam's step along the gradients; Kingma & Ba (2015), algorithm 1, with its biases in the step's size."""
        self.steps += 1
        of_first, of_second, eps = ADAM
        gradient, spare = self._gradient, self._spare
        gradient += np.multiply(self.parameters, self.options.weight_decay, out=spare)
        np.subtract(gradient, self._first, out=spare)
        self._first += np.multiply(spare, 1 - of_first, out=spare)
        self._second *= of_second
        np.square(gradient, out=spare)
        self._second += np.multiply(spare, 1 - of_second, out=spare)
        bias = math.sqrt(1 - of_second**self.steps)
        np.sqrt(self._second, out=spare)
        spare += eps * bias
        np.divide(self._first, spare, out=spare)
        size = self.options.learning_rate * bias / (1 - of_first**self.steps)
        self.parameters -= np.multiply(spare, size, out=spare)


@dataclass(frozen=True)
class RatioClassifier:
    """One classifier of data against queries, as a log density ratio of tensors; see `RatioClassifiers`.

    Attributes:
        arrays: the same as arrays, with m = 1.
    """

    arrays: RatioClassifiers

    @property
    def parameters(self) -> Tensor:
        """Newest parameters, `p`."""
        return torch.from_numpy(self.arrays.parameters[0])

    @property
    def averaged(self) -> Tensor:
        """Moving average of the parameters, `p`."""
        return torch.from_numpy(self.arrays.averaged[0])

    def update(self, data: Tensor, queries: Tensor) -> None:
        """Take one step of Adam on all of `data` (`n x d`) and `queries` (`m x d`)."""
        self.arrays.update(data.numpy()[None], queries.numpy()[None])

    def __call__(self, U: Tensor) -> Tensor:
        """Return the clipped log ratios at `... x d`."""
        return self.with_vjp(U)[0]

    def with_vjp(self, U: Tensor) -> tuple[Tensor, VJP]:
        """Return the log ratios and their vector-Jacobian product, which is zero where they are clipped."""
        ratio, vjp = self.arrays.with_vjp(U.detach().reshape(1, -1, U.shape[-1]).numpy())

        def in_tensors(grad_ratio: Tensor) -> tuple[Tensor]:
            return (torch.from_numpy(vjp(grad_ratio.reshape(1, -1).numpy())).view(U.shape),)

        return torch.from_numpy(ratio).view(U.shape[:-1]), in_tensors

    def clipped(self, U: Tensor) -> float:
        """Return the share of points whose ratio is clipped."""
        return float((self(U).abs() >= math.log(self.arrays.options.clip)).double().mean())


def sizes_of(dim: int, options: RatioOptions) -> tuple[int, ...]:
    """Return the numbers of inputs, of units of the two hidden layers, and of outputs."""
    return dim, options.hidden, options.hidden, 1


Layers = Sequence[tuple[Array, Array]]
"""Weights, `m x outputs x inputs` as in torch's own layers, and biases, `m x 1 x outputs`."""


def _layers(vectors: Array, sizes: Sequence[int]) -> Layers:
    """Return the parameters of layers with `sizes` units as views of vectors, `m x p`."""
    layers, start = [], 0
    for inputs, outputs in pairwise(sizes):
        middle, end = start + inputs * outputs, start + (inputs + 1) * outputs
        layers.append((vectors[:, start:middle].reshape(-1, outputs, inputs), vectors[:, None, middle:end]))
        start = end
    return layers


def _activations(layers: Layers, x: Array) -> tuple[Array, Array, Array]:
    """Return the activations of the two hidden layers, `m x r x hidden`, and the logits, `m x r`, of `m x r x d`."""
    (W1, b1), (W2, b2), (W3, b3) = layers
    first = x @ W1.mT
    first += b1
    np.maximum(first, 0.0, out=first)
    second = first @ W2.mT
    second += b2
    np.maximum(second, 0.0, out=second)
    logits = second @ W3.mT
    logits += b3
    return first, second, logits[..., 0]


def _vjp(layers: Layers, first: Array, second: Array, grad_logits: Array) -> tuple[Array, Array]:
    """Map gradients in the logits to those in the second and first hidden layers before their rectifiers."""
    (_, _), (W2, _), (W3, _) = layers
    grad_second = grad_logits[..., None] * W3
    grad_second *= second > 0
    grad_first = grad_second @ W2
    grad_first *= first > 0
    return grad_second, grad_first


def fit_ratio(data: Tensor, queries: Tensor, options: RatioOptions, generator: Generator) -> RatioClassifier:
    """Return a classifier trained for `options.steps` on fixed samples: a candidate pool, or draws of known queries."""
    classifier = RatioClassifier(RatioClassifiers.drawn(data.shape[-1], options, generator))
    for _ in range(options.steps):
        classifier.update(data, queries)
    return classifier

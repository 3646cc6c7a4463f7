"""Conformal acquisition functions of single points and one outcome, of several seeds at once, in NumPy arrays.

The equations are those of `scores`, `expectation`, `acquisition` and `baseline` at q = 1. A search asks for five points
at a time, and operations on so few numbers take PyTorch three times as long as NumPy. The numbers of a seed do not
depend on the others, to the last bit.

Shapes: `m` functions with data sets of one size, each at `b` points of its own; `n` data, `k` labels.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from plumbline.core.numbers import Array
from plumbline.methods.conformal.baseline import LEAST_OF_CONDITIONAL, BaselineDraws
from plumbline.methods.conformal.density_ratio import RatioClassifiers
from plumbline.methods.conformal.expectation import Heights
from plumbline.methods.conformal.refits import Refit, Refits, ToRefit
from plumbline.methods.conformal.small_matrices import LEAST_SQUARE


class Draws(NamedTuple):
    """Labels and draws of f given each.

    Attributes:
        monomials: `1, z, z^2` of the whitened labels, `m x b x 3 x k`, or `m x 1 x 3 x k` where labels are fixed.
        log_density: of the labels, up to a constant, `m x b x k` or `m x 1 x k`.
        away: f minus its predictive mean, `m x b x k`.
    """

    monomials: Array
    log_density: Array
    away: Array


class ToDraws(NamedTuple):
    """Gradients of a scalar in draws and labels, `m x b x k`.

    Attributes:
        away: in f minus its predictive mean.
        monomials: in the whitened labels' monomials, `m x b x 3 x k`; None where these are fixed.
        excess: in minus the log density of the labels; None where whitened labels are fixed, or labels are constants.
    """

    away: Array
    monomials: Array | None = None
    excess: Array | None = None


def monomials_of(z: Array) -> Array:
    """Return `1, z, z^2` of labels: `... x k` to `... x 3 x k`."""
    return np.stack([np.ones_like(z), z, np.square(z)], axis=-2)


def monomials_vjp(z: Array, grad_monomials: Array, grad_excess: Array | float = 0.0) -> Array:
    """Map gradients in `monomials_of` labels, `... x 3 x k`, and in `z^2 / 2` to that in the labels."""
    _, grad_linear, grad_square = (grad_monomials[..., i, :] for i in range(3))
    return grad_linear + (2 * grad_square + grad_excess) * z


class FixedLabels(NamedTuple):
    """Labels with fixed whitened values, and draws `f = mean + (L - P) z + spread F for_f`, as in `acquisition`.

    Attributes:
        monomials: `1, z, z^2`, `m x 1 x 3 x k`.
        log_density: `m x 1 x k`.
        base: `z` and standard normal draws for f, `m x 2 x k`.
        spread: factor of the standard deviation of f given a label, `m x 1 x 1`.
    """

    monomials: Array
    log_density: Array
    base: Array
    spread: Array

    @classmethod
    def of(cls, z: Array, for_f: Array, spread: float) -> Self:
        """Return the labels of one function, of whitened values and standard normal draws, `k` each."""
        log_density = -0.5 * np.square(z)[None, None]
        return cls(monomials_of(z)[None, None], log_density, np.stack([z, for_f])[None], np.full((1, 1, 1), spread))

    def draw(self, refit: Refit) -> tuple[Draws, Callable[[ToDraws], ToRefit]]:
        """Return labels and draws, and their VJP; in the latter alone, unless labels are constants."""
        own_slope, root = refit.own_slope, refit.function_root
        factors = np.concatenate([refit.root - own_slope, self.spread * root], axis=-1)

        def vjp(to: ToDraws) -> ToRefit:
            grad_factors = to.away @ self.base.mT
            grad_gain, grad_root = grad_factors[..., :1], self.spread * grad_factors[..., 1:]
            to_refit = ToRefit(root=grad_gain, own_slope=-grad_gain - grad_root / root * own_slope)
            if to.monomials is None:
                return to_refit
            # Constant labels: whitened, they move with the mean and with L, as in `acquisition._whitened_vjp`.
            z = self.base[:, :1]
            grad_z = to.away * (refit.root - own_slope) + monomials_vjp(z, to.monomials)
            grad_label = grad_z * refit.dual_root
            return to_refit._replace(mean=-grad_label.sum(-1, keepdims=True), root=grad_gain - inner(grad_label, z))

        return Draws(self.monomials, self.log_density, factors @ self.base), vjp


class JointLabels(NamedTuple):
    """Labels that are noisy draws of f, drawn jointly with f at the data: `baseline.BaselineDraws`.

    Attributes:
        noise: draws of the observation noise, `m x 1 x k`.
        for_f: standard normal draws of f given its values at the data, `m x 1 x k`.
        dual: `K^-1 (values - mean)`, `m x k x n`.
        inverse_root: inverses of Cholesky factors of `K`, `m x n x n`.
        incumbents: row of each draw's incumbent, `m x 1 x k`; `m x 1 x 0` where it is not known.
    """

    noise: Array
    for_f: Array
    dual: Array
    inverse_root: Array
    incumbents: NDArray[Any]

    @classmethod
    def of(cls, draws: BaselineDraws, for_noise: Array, for_f: Array) -> Self:
        """Return the labels of one function, of its draws at the data and standard normal draws, `k` each."""
        noise = draws.processes[0].noise.sqrt().numpy() * for_noise
        dual = np.ascontiguousarray(draws.dual[..., 0].numpy())[None]
        inverse_roots = np.ascontiguousarray(draws.inverse_roots.numpy())
        incumbents = np.empty(0, dtype=np.int64) if draws.incumbents is None else draws.incumbents.numpy()
        return cls(noise[None, None], for_f[None, None], dual, inverse_roots, incumbents[None, None])

    def draw(self, refit: Refit) -> tuple[Draws, Callable[[ToDraws], ToRefit]]:
        """Return labels and draws, and their VJP."""
        processes, cross = refit.of.processes, refit.cross
        half = cross @ self.inverse_root.mT
        square = processes.outputscale[..., None] + LEAST_OF_CONDITIONAL - np.square(half).sum(-1, keepdims=True)
        root = np.sqrt(np.maximum(square, LEAST_SQUARE))
        away = cross @ self.dual.mT + root * self.for_f + (processes.constant[..., None] - refit.mean)
        noisy = away + self.noise
        z = noisy * refit.dual_root

        def vjp(to: ToDraws) -> ToRefit:
            assert to.monomials is not None
            # Without a gradient in their density labels are constants.
            constant = to.excess is None
            grad_z = monomials_vjp(z, to.monomials, 0.0 if to.excess is None else to.excess)
            grad_away = grad_z * refit.dual_root + to.away
            grad_f = to.away - self.held(refit, to.away) if constant else grad_away
            # Twice the gradient in the square of the root.
            grad_variance = (grad_f * self.for_f).sum(-1, keepdims=True) / root
            return ToRefit(
                mean=-grad_away.sum(-1, keepdims=True),
                dual_root=(grad_z * noisy).sum(-1, keepdims=True),
                cross=grad_f @ self.dual - (grad_variance * half) @ self.inverse_root,
            )

        return Draws(monomials_of(z), -0.5 * np.square(z), away), vjp

    def held(self, refit: Refit, grad_f: Array) -> Array:
        """Return what constant labels take away from the gradient in draws of f: `baseline.BaselineDraws.held`."""
        at_incumbents = np.take_along_axis(refit.slope, self.incumbents, axis=-1)
        return grad_f * (refit.root - refit.own_slope - at_incumbents) * refit.dual_root


Labels = FixedLabels | JointLabels


class Weights(NamedTuple):
    """Importance weights of the data, `m x b x n`, and of the test points, `m x b x 1`."""

    of_data: Array
    own: Array


RatioVJP = Callable[[Array], Array | float]
"""Maps gradients in the test points' log density ratios, `m x b`, to those in the points, `m x b x d`."""


def weights_with_vjp(ratios: RatioClassifiers | None, data: Array, U: Array) -> tuple[Weights, RatioVJP]:
    """Return the importance weights at test points, and the VJP of their log ratios; see `masses.importance_weights`.

    Args:
        ratios: the classifiers; None where there is no shift.
        data: `m x n x d`.
        U: `m x b x d`.
    """
    (m, b, _), n = U.shape, data.shape[1]
    if ratios is None or not ratios.steps:  # the average of the parameters starts at zero
        return Weights(np.full((m, 1, n), 1 / (n + 1)), np.full((m, 1, 1), 1 / (n + 1))), lambda grad_ratio: 0.0
    log_ratio, vjp = ratios.with_vjp(np.concatenate([U, data], axis=1))
    of_data, own = log_ratio[:, None, b:], log_ratio[:, :b, None]
    greatest = np.maximum(of_data.max(-1, keepdims=True), own)
    of_data, own = np.exp(of_data - greatest), np.exp(own - greatest)
    total = of_data.sum(-1, keepdims=True) + own
    return Weights(of_data / total, own / total), vjp


POINTS_AT_ONCE = 8
"""Number of points whose sigmoids of labels and data fit the processor's cache."""


class Acceptance:
    """Logits `(mass - alpha) / tau` of the acceptance of labels, by the relaxed mass; see `masses.MassVJP`.

    Attributes:
        logits: `m x b x k`.
    """

    def __init__(
        self, quadratics: Array, weights: Weights, labels: Draws, alpha: Array, tau: float, memory: Array | None
    ) -> None:
        """Score all labels.

        Args:
            quadratics: `m x b x 3 x n`.
            weights: of data and test points.
            labels: with their monomials.
            alpha: miscoverages, `m x 1 x 1`.
            tau: strength of the relaxation.
            memory: `m x b x n x k`, for the sigmoids that gradients need; None where there will be none.
        """
        (m, b, _, n), k = quadratics.shape, labels.monomials.shape[-1]
        self.weights, self.alpha, self.tau = weights, alpha, tau
        self.monomials, self.conforms = labels.monomials, memory
        self.coefficients = quadratics / tau
        self.per_tau = np.broadcast_to(weights.of_data / tau, (m, b, n))[..., None, :]
        self.logits = np.empty((m, b, k))
        for i, part in _parts(m, b):
            own = slice(None) if len(self.monomials[i]) == 1 else part
            sigmoids = np.empty((len(range(b)[part]), n, k)) if memory is None else memory[i, part]
            # Function by function: torch may round the last elements of an array otherwise than the rest.
            np.matmul(self.coefficients[i, part].mT, self.monomials[i, own], out=sigmoids)
            torch.from_numpy(sigmoids).sigmoid_()
            np.matmul(self.per_tau[i, part], sigmoids, out=self.logits[i, part, None])
        self.logits += (weights.own - alpha) / tau

    @cached_property
    def slopes(self) -> Array:
        """The slopes of the sigmoids, `m x b x n x k`, in their place."""
        assert self.conforms is not None
        for conforms in self.conforms:
            sigmoids = torch.from_numpy(conforms)
            sigmoids.addcmul_(sigmoids, sigmoids, value=-1)
        return self.conforms

    def grad_quadratics(self, grad_logits: Array) -> Array:
        """Map a gradient in the logits to that in the quadratics."""
        return ((grad_logits[:, :, None] * self.monomials) @ self.slopes.mT) * (self.per_tau / self.tau)

    def grad_monomials(self, grad_logits: Array) -> Array:
        """Map a gradient in the logits to that in the labels' monomials, where these are not fixed."""
        return grad_logits[:, :, None] * ((self.per_tau * self.coefficients) @ self.slopes)

    def grad_log_ratio(self, grad_logits: Array, grad_own: Array) -> Array:
        """Return the gradient in the log density ratios of the test points, `m x b`; `MassVJP.grad_log_ratio`."""
        own = self.weights.own
        by_mass = (1 - self.alpha) * grad_logits.sum(-1, keepdims=True) / self.tau - inner(grad_logits, self.logits)
        return (own * (by_mass + grad_own * (1 - own)))[..., 0]


def _parts(m: int, b: int) -> Iterator[tuple[int, slice]]:
    """Return the points of each of m functions in parts."""
    return ((i, slice(first, first + POINTS_AT_ONCE)) for i in range(m) for first in range(0, b, POINTS_AT_ONCE))


def exponentials(x: Array) -> tuple[Array, Array]:
    """Return exponentials whose greatest is one along the last dimension, in the place of `x`, and their sums."""
    x -= x.max(-1, keepdims=True)
    np.exp(x, out=x)
    return x, x.sum(-1, keepdims=True)


def inner(A: Array, B: Array) -> Array:
    """Return the inner products of `m x b x k` with each other: `m x b x 1`."""
    return np.vecdot(A, B)[..., None]


def expected_at_points_with_vjp(
    logits: Array, log_density: Array, heights: Array, alpha: Array
) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """Return `(1 - alpha) u'v + alpha u'v'` and its VJP in all but alpha; see `expectation.expected_with_vjp`.

    Args:
        logits: of the acceptance of each label, `m x b x k`.
        log_density: of the labels, up to a constant, `m x b x k` or `m x 1 x k`.
        heights: the integrand `u`, `m x b x k`.
        alpha: `m x 1 x 1`.

    Returns:
        `m x b x 1`, and a function of the gradient in it, to those in logits, minus the log density, and heights.
    """
    accepted = np.minimum(logits, 0.0) - np.log1p(np.exp(-np.abs(logits)))
    rejected = accepted - logits
    chance_of_rejection = np.exp(rejected)
    accepted -= log_density
    (v_inside, all_inside), (v_outside, all_outside) = exponentials(accepted), exponentials(rejected)
    u_inside, u_outside = inner(v_inside, heights) / all_inside, inner(v_outside, heights) / all_outside

    def vjp(grad_expected: Array) -> tuple[Array, Array, Array]:
        inside = v_inside * ((1 - alpha) * grad_expected / all_inside)
        outside = v_outside * (alpha * grad_expected / all_outside)
        grad_heights = inside + outside
        inside *= heights - u_inside
        outside *= heights - u_outside
        grad_logits = inside + outside
        grad_logits *= chance_of_rejection
        grad_logits -= outside
        return grad_logits, inside, grad_heights

    return u_inside + alpha * (u_outside - u_inside), vjp


@dataclass(frozen=True)
class SinglePoints:
    """m conformal acquisition functions at single points of the unit cube, under their density ratios of the moment.

    Attributes:
        refits: the GPs.
        data: their inputs in the unit cube, `m x n x d`.
        labels: labels and draws.
        heights: the integrand.
        parameters: its parameters, `m x 1 x 1` or `m x 1 x k` each.
        alpha: miscoverages of the sets, `m x 1 x 1`.
        tau: strength of the relaxation.
        masked: whether values are zero at points whose set is the whole line.
        ratios: the classifiers; None where there is no shift.
        constant: whether labels are constants in the gradient.
    """

    refits: Refits
    data: Array
    labels: Labels
    heights: Heights
    parameters: tuple[Array, ...]
    alpha: Array
    tau: float
    masked: bool = True
    ratios: RatioClassifiers | None = None
    constant: bool = False

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Return the functions of all parts, of one method and data sets of one size, without their density ratios."""
        first = parts[0]
        return replace(
            first,
            refits=Refits.together([part.refits for part in parts]),
            data=np.concatenate([part.data for part in parts]),
            labels=type(first.labels)(*_joined([part.labels for part in parts])),
            parameters=tuple(_joined([part.parameters for part in parts])),
            alpha=np.concatenate([part.alpha for part in parts]),
            ratios=None,
        )

    @np.errstate(all="ignore")
    def values(self, U: Array) -> Array:
        """Return the values at `m x b x d` points: `m x b`."""
        return self._with_vjp(U, record=False)[0]

    @np.errstate(all="ignore")
    def value_and_gradient(self, U: Array) -> tuple[Array, Array]:
        """Return the values at `m x b x d` points, `m x b`, and their gradients, `m x b x d`."""
        value, gradient = self._with_vjp(U, record=True)
        return value, gradient()

    def _with_vjp(self, U: Array, record: bool) -> tuple[Array, Callable[[], Array]]:
        """Return the values and a function that returns their gradients, stage by stage from the last to the first.

        Args:
            U: `m x b x d`.
            record: whether there will be gradients.
        """
        refit = Refit(self.refits, U)
        draws, vjp_draws = self.labels.draw(refit)
        quadratics, vjp_quadratics = refit.quadratics_with_vjp()
        weights, vjp_ratio = weights_with_vjp(self.ratios, self.data, U)
        (m, b, k), n = draws.away.shape, self.data.shape[1]
        memory = np.empty((m, b, n, k)) if record else None
        acceptance = Acceptance(quadratics, weights, draws, self.alpha, self.tau, memory)
        heights, vjp_heights = self.heights(draws.away, refit.mean, *self.parameters)
        expected, vjp_expected = expected_at_points_with_vjp(acceptance.logits, draws.log_density, heights, self.alpha)
        bounded = expit((self.alpha - weights.own) / self.tau) if self.masked else np.ones_like(weights.own)
        value = expected * bounded

        def vjp() -> Array:
            grad_logits, grad_excess, grad_heights = vjp_expected(bounded)
            grad_away, grad_mean = vjp_heights(grad_heights)
            to_draws = ToDraws(grad_away)
            if self.constant or not isinstance(self.labels, FixedLabels):
                grad_monomials = acceptance.grad_monomials(grad_logits)
                to_draws = ToDraws(grad_away, grad_monomials, None if self.constant else grad_excess)
            to = vjp_draws(to_draws)
            to = to._replace(mean=to.mean + grad_mean)
            gradient = vjp_quadratics(acceptance.grad_quadratics(grad_logits), to)
            grad_own = (bounded - 1) * value / self.tau if self.masked else np.zeros_like(value)
            return gradient + vjp_ratio(acceptance.grad_log_ratio(grad_logits, grad_own))

        return value[..., 0], vjp


def _joined(parts: Sequence[Sequence[NDArray[Any]]]) -> Iterator[NDArray[Any]]:
    """Return the concatenation of the first arrays of all parts, of the second ones, and so on."""
    return map(np.concatenate, zip(*parts, strict=True))

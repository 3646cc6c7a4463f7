"""GPs refitted on one more observation at single points, of several seeds at once, in NumPy arrays.

The equations are those of `scores` at q = 1, where the matrices of a batch are numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from plumbline.core.numbers import Array
from plumbline.methods.conformal.small_matrices import LEAST_SQUARE
from plumbline.models.gp.marginal import Arrays, ArraysPosterior, together
from plumbline.models.gp.process import GP


@dataclass(frozen=True)
class Refits:
    """m GPs with one noise variance each, before they are refitted on one more observation.

    Attributes:
        processes: the GPs, as functions of points of the unit cube.
        noise: noise variances, `m x 1 x 1`.
        residuals: refitted residuals of the data far from any label, `m x 1 x n`.
        spare: refitted variances of the data far from any label, `m x 1 x n`.
    """

    processes: Arrays
    noise: Array
    residuals: Array
    spare: Array

    @classmethod
    def of(cls, process: GP) -> Self:
        """Return one GP."""
        return cls(
            replace(process.arrays, low=np.zeros((1, 1, 1)), width=np.ones((1, 1, 1))),
            np.full((1, 1, 1), float(process.noise)),
            process.residuals.numpy()[None, None],
            process.forecast_variances.numpy()[None, None],
        )

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Return the GPs of all parts, which have one kernel and data sets of one size."""
        columns = zip(*((part.noise, part.residuals, part.spare) for part in parts), strict=True)
        return cls(together([part.processes for part in parts]), *map(np.concatenate, columns))


class ToRefit(NamedTuple):
    """Gradients of a scalar in parts of a `Refit`, of their shapes."""

    mean: Array | float = 0.0
    root: Array | float = 0.0
    own_slope: Array | float = 0.0
    dual_root: Array | float = 0.0
    cross: Array | float = 0.0


class Refit:
    """m GPs, each refitted on one more observation at each of `b` test points; see `augmented.Augmented`.

    Attributes:
        mean: predictive means, `m x b x 1`, as are the next three.
        root: standard deviations `L` of the observations.
        dual_root: `1 / L`.
        own_slope: `P = s2n / L`, slopes of the refitted residuals at the test points in the whitened label.
        u: `B k_X`, `m x b x n`.
        slope: `W = u P`, slopes of the refitted residuals at the data, `m x b x n`.
    """

    def __init__(self, of: Refits, U: Array) -> None:
        self.of = of
        self.posterior: ArraysPosterior = of.processes.marginal_posterior(U)
        self.mean = self.posterior.location[..., None]
        self.root = np.sqrt(np.square(self.posterior.spread)[..., None] + of.noise)
        self.dual_root = 1 / self.root
        self.own_slope = of.noise * self.dual_root
        self.u = self.posterior.half @ of.processes.inverse_root
        self.slope = self.u * self.own_slope

    @property
    def cross(self) -> Array:
        """Prior covariances of f at the test points with the data, `m x b x n`."""
        return self.of.processes.outputscale[..., None] * self.posterior.correlation

    @property
    def function_root(self) -> Array:
        """Standard deviations of f at the test points after refitting, `m x b x 1`, for any label."""
        return np.sqrt(np.maximum(self.of.noise - np.square(self.own_slope), LEAST_SQUARE))

    def quadratics_with_vjp(self) -> tuple[Array, Callable[[Array, ToRefit], Array]]:
        """Return the test point's score minus each datum's as quadratics in the label, and the VJP in the test points.

        Returns:
            Coefficients on `1, z, z^2`, `m x b x 3 x n`, and a map of the gradients of a scalar in these and in other
            parts of this object to that in the test points, `m x b x d`.
        """
        of, own_slope = self.of, self.own_slope
        over_v = 1 / (of.spare - np.square(self.slope))
        own_v = 2 * of.noise - np.square(own_slope)
        V, ratio, own_V = self.slope * over_v, of.residuals * over_v, own_slope / own_v
        quadratics = np.empty((*self.slope.shape[:2], 3, self.slope.shape[-1]))
        quadratics[..., 0, :] = 0.5 * (of.residuals * ratio - np.log(over_v * own_v))
        quadratics[..., 1, :] = -of.residuals * V
        quadratics[..., 2, :] = 0.5 * (V * self.slope - own_V * own_slope)

        def vjp(grad_quadratics: Array, to: ToRefit) -> Array:
            # The gradient in a datum's score is the negative one, that in the test point's own the sum over the data:
            # `scores._score_with_vjp`, where the test point's residual is zero.
            grad_0, grad_1, grad_2 = (grad_quadratics[..., i, :] for i in range(3))
            s, e = grad_2 * V, grad_1 * ratio
            directly = s - e
            twice = (directly - e) * V - grad_0 * (over_v - np.square(ratio))
            grad_slope = directly + twice * self.slope
            own_s = grad_2.sum(-1, keepdims=True) * own_V
            own_twice = grad_0.sum(-1, keepdims=True) / own_v - own_s * own_V
            return self._vjp(grad_slope, own_twice * own_slope - own_s, to)

        return quadratics, vjp

    def _vjp(self, grad_slope: Array, grad_own_slope: Array, to: ToRefit) -> Array:
        """Map gradients in `slope`, in `own_slope` and in further parts to the test points; `augment_with_vjp`."""
        processes = self.of.processes
        grad_own_slope = grad_own_slope + (self.u * grad_slope).sum(-1, keepdims=True) + to.own_slope
        grad_dual_root = self.of.noise * grad_own_slope + to.dual_root
        grad_square = 0.5 * (to.root - grad_dual_root * np.square(self.dual_root)) * self.dual_root
        grad_half = (grad_slope * self.own_slope) @ processes.inverse_root.mT
        grad_half += to.mean * processes.whitened.mT
        grad_half -= 2 * grad_square * self.posterior.half
        gradient = self.posterior.vjp_covariances(grad_half @ processes.inverse_root + to.cross)
        return gradient / processes.lengthscale

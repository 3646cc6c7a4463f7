"""LOCBO's calibrated posterior in standard units: density, distribution function, quantiles, expected improvement.

With labels `z = (y - mu) / S` and values `u = (f - mu) / sqrt(g S^2)`, eq. 28 and 29 have only three parameters:
`u = rho z + tau eps`. Here `eps` is standard Gaussian, and `rho^2 = g` and `tau^2 = s2n / S^2` add up to one. The label
`z` is uniform on the set `[-zeta, zeta]` with probability `1 - alpha`, and standard Gaussian outside otherwise.

The law is symmetric. It is computed for `u <= 0`, as a sum of positive terms that keeps its digits however small it is,
and reflected; docs/methods/localised-erratum.md derives it. The numbers are tensors, or arrays as in searches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import numpy as np

from plumbline.core.numbers import Numbers, namespace_of, special_of
from plumbline.forecasts import gaussian

REACH = 8.0
"""Number of standard deviations beyond which `Phi` is 0 or 1, and `h` is 0 or its asymptote, in double precision."""

WIDENED = 2.0
"""Factor of the variance of labels given a value that makes room for the kernel's gain on a Gaussian density.

With 32 nodes, expected improvement is exact to 1e-6 of itself wherever it is above 1e-250, as tests check.
"""

HALVINGS = 70
"""Most halvings of a quantile's bracket: from `zeta + 40` to 4e-20, because densities reach 1e6."""

ROUNDING = 1e-15
"""Tolerance on the probability of a quantile, the accuracy of the distribution function."""

SIDES = np.array([[1.0], [-1.0]])
"""Signs of labels above and below the set."""

MIDDLES = np.array([-1.0, 1.0])
"""Factors of `rho u`: labels above and below the set count about there."""

FROM_START = 1 + gaussian.NODES
"""Nodes from the start of an interval, in halves of its length."""

LEAST_DENSITY = np.finfo(np.float64).tiny

Slopes = Callable[[], tuple[Numbers, ...]]
"""Computes derivatives when called, so that values alone cost less."""


@dataclass(frozen=True)
class StandardLaw(Generic[Numbers]):
    """Law of `u`; attributes and arguments broadcast.

    Attributes:
        rho: correlation of label and value, positive.
        tau: square root of the noise's share of the variance, positive.
        zeta: half width of the set, not negative.
        threshold: mass of a standard Gaussian beyond `-+zeta`.
        alpha: mass of the law outside the set.
    """

    rho: Numbers
    tau: Numbers
    zeta: Numbers
    threshold: Numbers
    alpha: float

    @cached_property
    def reach(self) -> Numbers:
        """Half width of the set's image, in standard deviations of the noise."""
        return self.rho * self.zeta / self.tau

    def density(self, u: Numbers) -> Numbers:
        """Return the density of eq. 29.

        Inside the set, a uniform label is blurred by noise. Outside, Bayes' rule turns `p(u | z) p(z)` into `phi(u)`
        times the probability that the label `z | u ~ N(rho u, tau^2)` lies outside the set.
        """
        inside = gaussian.mean_density(u / self.tau, self.reach) / self.tau
        at = self.rho * u
        beyond = gaussian.cdf((at - self.zeta) / self.tau) + gaussian.cdf((-at - self.zeta) / self.tau)
        return self._mixed(inside, gaussian.density(u) * beyond / self.threshold)

    def cdf(self, u: Numbers) -> Numbers:
        """Return `Pr [U <= u]`, to an absolute precision of 1e-13."""
        left = self._left_cdf(_reflected(u))
        return namespace_of(u).where(u > 0, 1 - left, left)

    def improvement(self, c: Numbers) -> Numbers:
        """Return `E [c + U]+`; for `c > 0` it exceeds that for `-c` by `c`."""
        return self.improvement_with_slopes(c)[0]

    def improvement_with_slopes(self, c: Numbers) -> tuple[Numbers, Slopes[Numbers]]:
        """Return `G = E [c + U]+`, and its derivatives in `c`, in the log of the value's scale, and in the threshold.

        The derivative in `c` is the distribution function `F`. At fixed noise the derivative of `rho` in the log scale
        is `rho tau^2`. With `t = (c -+ rho zeta) / tau`, that of `G` is then closed: inside the set it is
        `tau^2 (G - c F) - tau` times the mean density. Outside it is `rho tau^2 phi(zeta) / threshold` times the
        difference of `Phi(t)`. The derivative of `zeta` in the threshold is `-1 / (2 phi(zeta))`.
        """
        xp, left = namespace_of(c), _reflected(c)
        rho, tau, reach, centre = self.rho, self.tau, self.reach, left / self.tau
        inside = tau * gaussian.mean_ramp(centre, reach)
        t, weights, risen = self._labels_outside(left)
        chance, tail = gaussian.cdf(t), gaussian.cdf(-risen)
        rising = tau * (weights * (t * chance + gaussian.density(t))).sum(-1)
        # Terms that are all subnormal may have a sum of the wrong sign.
        outside = xp.clip(rising + left * tail + rho * gaussian.density(risen), 0.0, None) / self.threshold

        def slopes() -> tuple[Numbers, Numbers, Numbers]:
            below_inside = gaussian.mean_cdf(centre, reach)
            below = self._mixed(below_inside, ((weights * chance).sum(-1) + tail) / self.threshold)
            ends = centre - reach, centre + reach
            (low, high), (low_ramp, high_ramp) = map(gaussian.cdf, ends), map(gaussian.ramp, ends)
            phi_centre, phi_zeta = gaussian.density(centre), gaussian.density(self.zeta)
            grad_scale = self._mixed(
                tau * tau * (inside - left * below_inside) - tau * gaussian.mean_density(centre, reach),
                rho * tau * tau * phi_zeta / self.threshold * (high - low),
            )
            widened = gaussian.widening(
                low_ramp, high_ramp, inside / tau, reach, phi_centre, (centre * centre - 1) * phi_centre
            )
            grad_threshold = self._mixed(
                -rho * widened / (2 * phi_zeta), (tau * (low_ramp + high_ramp) / 2 - outside) / self.threshold
            )
            return xp.where(c > 0, 1 - below, below), grad_scale, grad_threshold

        return xp.where(c > 0, c, 0.0) + self._mixed(inside, outside), slopes

    def quantile(self, p: Numbers) -> Numbers:
        """Return `u` with `Pr [U <= u] = p`, for `0 < p < 1`.

        Newton's steps from the Gaussian of the same variance, and a bisection wherever one leaves the bracket: exact to
        a float's resolution in `u`, which a density of up to `1 / tau = 1e6` turns into one of `p`, or in the
        probability.
        """
        return self.quantile_with_slopes(p)[0]

    def quantile_with_slopes(self, p: Numbers) -> tuple[Numbers, Callable[[], tuple[Numbers, Numbers]]]:
        """Return the quantile, and its derivatives in the log of the value's scale and in the threshold.

        They follow from those of the distribution function by the implicit function theorem. Inside the set, its
        derivative in the log scale is minus the mean of `phi'` minus `u tau` times that of `phi`.
        """
        xp, upper = namespace_of(p), p > 0.5
        tail = xp.where(upper, 1 - p, p)
        u = self._left_quantile(tail)

        def slopes() -> tuple[Numbers, Numbers]:
            rho, tau, zeta, reach, centre = self.rho, self.tau, self.zeta, self.reach, u / self.tau
            inside = gaussian.mean_cdf(centre, reach)
            outside = (tail - (1 - self.alpha) * inside) / self.alpha
            near, far = (gaussian.density((zeta + side * rho * u) / tau) for side in (1, -1))
            grad_scale = self._mixed(
                -gaussian.mean_slope(centre, reach) - tau * u * gaussian.mean_density(centre, reach),
                rho * tau * gaussian.density(u) / self.threshold * (near - far),
            )
            low, high = gaussian.cdf(centre - reach), gaussian.cdf(centre + reach)
            phi = gaussian.density(centre)
            widened = gaussian.widening(low, high, inside, reach, -centre * phi, (3 - centre * centre) * centre * phi)
            grad_threshold = self._mixed(
                -rho / tau * widened / (2 * gaussian.density(zeta)), ((low + high) / 2 - outside) / self.threshold
            )
            over = xp.where(upper, 1.0, -1.0) / xp.clip(self.density(u), LEAST_DENSITY, None)
            return over * grad_scale, over * grad_threshold

        return xp.where(upper, -u, u), slopes

    def _left_quantile(self, tail: Numbers) -> Numbers:
        """Return the quantile of `0 < tail <= 1 / 2`."""
        xp, zeta = namespace_of(tail), self.zeta
        of_labels = (1 - self.alpha) * zeta * zeta / 3 + self.alpha * (
            1 + 2 * zeta * gaussian.density(zeta) / self.threshold
        )
        high = xp.zeros_like(tail + self.rho + self.tau + zeta + self.threshold)
        low = high - zeta - 40.0
        spread = xp.sqrt(self.rho * self.rho * of_labels + self.tau * self.tau)
        root = xp.maximum(special_of(tail).ndtri(tail) * spread, low)
        for _ in range(HALVINGS):
            error = self._left_cdf(root) - tail
            far = abs(error) > ROUNDING
            if not bool(far.any()):
                break
            low, high = xp.where(error < 0, root, low), xp.where(error < 0, high, root)
            newton = root - error / self.density(root)
            step = xp.where((low < newton) & (newton < high), newton, (low + high) / 2)
            root = xp.where(far, step, root)
        return root

    def _left_cdf(self, u: Numbers) -> Numbers:
        """Return the distribution function at `u <= 0`."""
        t, weights, risen = self._labels_outside(u)
        outside = ((weights * gaussian.cdf(t)).sum(-1) + gaussian.cdf(-risen)) / self.threshold
        return self._mixed(gaussian.mean_cdf(u / self.tau, self.reach), outside)

    def _mixed(self, inside: Numbers, outside: Numbers) -> Numbers:
        return (1 - self.alpha) * inside + self.alpha * outside

    def _labels_outside(self, u: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return a quadrature of `E kernel((u + rho Z) / tau)` over Gaussian labels beyond the set, for `u <= 0`.

        The kernel, `Phi` or `h`, rises from nearly zero within `-+REACH` and follows its asymptote above. Under little
        noise the rise is a step between two nodes of a quadrature over all labels; the quadrature therefore ends where
        the kernel has risen. It covers the labels that count beside the others, however small all are: with
        `t = (u + rho z) / tau`,

            kernel(t) phi(z) = phi(u) phi((z + rho u) / tau) (kernel / phi)(t).

        The last factor rises with `t`. Few labels below `-rho u` count, therefore, by the Gaussian factor of standard
        deviation tau. Above it the product falls at least as fast as a standard Gaussian density. Where tau is smaller
        it falls as the Gaussian factor does, after what the last factor gains until the kernel has risen. Labels below
        the set, about `rho u`, count less than their reflections.

        Returns:
            The kernel's arguments and their weights, `... x (2 nodes)`, above and below the set, and the label, `...`,
            above which the kernel equals its asymptote.
        """
        xp = namespace_of(u)
        u, rho, tau, zeta = (part[..., None] for part in (u, self.rho, self.tau, self.zeta))
        middle = rho * u * xp.asarray(MIDDLES)
        risen = xp.maximum((REACH * tau - u) / rho, zeta)
        starts = xp.maximum(middle - REACH * tau, zeta)
        # From the set, or from the middle where that is beyond, a log density falls by half of the square of REACH.
        spread = REACH**2 * xp.clip(WIDENED * xp.square(tau), None, 1.0)
        ends: Numbers = xp.minimum(middle + xp.sqrt(xp.square(xp.clip(zeta - middle, 0.0, None)) + spread), risen)
        half = (0.5 * (ends - starts))[..., None]
        z = starts[..., None] + half * xp.asarray(FROM_START)
        t = (u[..., None] + (rho[..., None] * xp.asarray(SIDES)) * z) / tau[..., None]
        weights = half * xp.asarray(gaussian.WEIGHTS) * gaussian.density(z)
        nodes = (*ends.shape[:-1], -1)
        return t.reshape(nodes), weights.reshape(nodes), risen[..., 0]


def _reflected(u: Numbers) -> Numbers:
    """Return `-|u|`, with the slope of its left branch at zero, where `-abs` has none."""
    return namespace_of(u).where(u > 0, -u, u)

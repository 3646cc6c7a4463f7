"""LOCBO's calibrated posterior in standard units: its density, distribution function, quantiles and expected gain.

With labels `z = (y - mu) / S` and values `u = (f - mu) / sqrt(g S^2)`, eq. 28 and 29 have three parameters only:
`u = rho z + tau eps`. Here `eps` is standard Gaussian, `rho^2 = g` and `tau^2 = s2n / S^2` add up to one, and `z` is
uniform on the set `[-zeta, zeta]` with probability `1 - alpha`, standard Gaussian beyond it with probability `alpha`.

The law is symmetric. Everything is computed for `u <= 0`, where it is a sum of positive terms that keep their digits,
and reflected; docs/localised-erratum.md derives it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.calibration import gaussian

REACH = 8.0
"""Beyond this many standard deviations `Phi` is 0 or 1, and `h` is 0 or its asymptote, to double precision."""

BEYOND = 72.0
"""Labels beyond `sqrt(zeta^2 + BEYOND)` have a share `exp(-BEYOND / 2)`, that is 2e-16, of those outside the set."""

HALVINGS = 70
"""Of the bracket of a quantile at most: from `zeta + 40` to 4e-20, because densities reach 1e6."""

ROUNDING = 1e-15
"""A quantile whose probability is as close as this is found; the distribution function is no more exact."""


@dataclass(frozen=True)
class StandardLaw:
    """Law of `u`; attributes and arguments broadcast.

    Attributes:
        rho: correlation of label and value, positive.
        tau: square root of the noise's share of the variance, positive.
        zeta: half width of the set.
        threshold: mass of a standard Gaussian beyond `-+zeta`.
        alpha: mass that the law puts beyond the set.
    """

    rho: Tensor
    tau: Tensor
    zeta: Tensor
    threshold: Tensor
    alpha: float

    def density(self, u: Tensor) -> Tensor:
        """Return the density of eq. 29.

        Inside, a uniform label blurred by noise. Outside, Bayes' rule turns `p(u | z) p(z)` into `phi(u)` times the
        probability that the label `z | u ~ N(rho u, tau^2)` lies beyond the set.
        """
        inside = gaussian.mean_density(u / self.tau, self.rho * self.zeta / self.tau) / self.tau
        beyond = gaussian.cdf((self.rho * u - self.zeta) / self.tau) + gaussian.cdf(
            (-self.rho * u - self.zeta) / self.tau
        )
        outside = gaussian.density(u) * beyond / self.threshold
        return (1 - self.alpha) * inside + self.alpha * outside

    def cdf(self, u: Tensor) -> Tensor:
        """Return `Pr [U <= u]`, to an absolute precision of 1e-13."""
        left = self._left_cdf(_reflected(u))
        return torch.where(u > 0, 1 - left, left)

    def gain(self, c: Tensor) -> Tensor:
        """Return `E [c + U]+`; that of `c > 0` is `c` more than that of `-c`."""
        left = _reflected(c)
        inside = self.tau * gaussian.mean_ramp(left / self.tau, self.rho * self.zeta / self.tau)
        outside = self._outside(
            left,
            lambda t: self.tau.unsqueeze(-1) * gaussian.ramp(t),
            lambda z: left * gaussian.cdf(-z) + self.rho * gaussian.density(z),
        )
        return c.clamp_min(0.0) + (1 - self.alpha) * inside + self.alpha * outside

    def quantile(self, p: Tensor) -> Tensor:
        """Return `u` with `Pr [U <= u] = p`, for `0 < p < 1`; differentiable once, in `p` and in the attributes.

        Newton's steps, and a bisection wherever one leaves the bracket: exact to a float's resolution in `u`, which a
        density of up to `1 / tau = 1e6` turns into one of `p`, or in the probability.
        """
        tail = torch.where(p > 0.5, 1 - p, p)
        with torch.no_grad():
            high = torch.zeros_like(tail + self.rho + self.tau + self.zeta + self.threshold)
            low = high - self.zeta - 40.0
            root = (low + high) / 2
            for _ in range(HALVINGS):
                error = self._left_cdf(root) - tail
                far = error.abs() > ROUNDING
                if not bool(far.any()):
                    break
                low, high = torch.where(error < 0, root, low), torch.where(error < 0, high, root)
                newton = root - error / self.density(root)
                step = torch.where((low < newton) & (newton < high), newton, (low + high) / 2)
                root = torch.where(far, step, root)
            slope = self.density(root).clamp_min(torch.finfo(root.dtype).tiny)
        # A Newton step whose length is zero: the implicit function theorem for the gradient, and no say in the value,
        # which a rounding error over a density near zero would spoil.
        residual = self._left_cdf(root) - tail
        root = root - (residual - residual.detach()) / slope
        return torch.where(p > 0.5, -root, root)

    def _left_cdf(self, u: Tensor) -> Tensor:
        """Return the distribution function at `u <= 0`."""
        inside = gaussian.mean_cdf(u / self.tau, self.rho * self.zeta / self.tau)
        outside = self._outside(u, gaussian.cdf, lambda z: gaussian.cdf(-z))
        return (1 - self.alpha) * inside + self.alpha * outside

    def _outside(self, u: Tensor, kernel: Callable[[Tensor], Tensor], rest: Callable[[Tensor], Tensor]) -> Tensor:
        """Return `E kernel((u + rho Z) / tau)` over Gaussian labels beyond the set, for `u <= 0`.

        The kernel rises from zero within `-+REACH` and follows its asymptote above. Hardly any noise makes that a step
        between two nodes of a quadrature over all labels; it is therefore confined to where the kernel rises.

        Args:
            u: not positive.
            kernel: of values with a new last dimension.
            rest: the integral of asymptote times Gaussian from a label to infinity.
        """
        rho, tau = self.rho.unsqueeze(-1), self.tau.unsqueeze(-1)
        far = (self.zeta.square() + BEYOND).sqrt()
        start, end = ((-u + side * REACH * self.tau) / self.rho for side in (-1, 1))
        rise = torch.maximum(torch.minimum(start, far), self.zeta)
        risen = torch.maximum(torch.minimum(end, far), self.zeta)
        above = gaussian.integral(
            lambda z: gaussian.density(z) * kernel((u.unsqueeze(-1) + rho * z) / tau), rise, risen
        )
        # Labels below the set: the kernel is small at the set already and falls from there.
        fallen = torch.maximum(torch.minimum((u + REACH * self.tau) / self.rho, far), self.zeta)
        below = gaussian.integral(
            lambda z: gaussian.density(z) * kernel((u.unsqueeze(-1) - rho * z) / tau), self.zeta, fallen
        )
        return (above + rest(risen) + below) / self.threshold


def _reflected(u: Tensor) -> Tensor:
    """Return `-|u|`, with the slope of its left branch at zero, where `-abs` would have none."""
    return torch.where(u > 0, -u, u)

"""OCBO: recalibrated quantiles `q(p) = Q(R(p))` of the model's quantile function `Q`; LOCBO, section III-B.

`R` is learnt at a grid of levels, is linear between them, and has `R(0) = 0` and `R(1) = 1`. Between two levels the
recalibrated distribution is the model's own, scaled: a Gaussian whose slices are reweighted.

The paper's eq. 21 moves `R(p)` by the share of observations above the quantile; that share would tend to `p`, against
its own eq. 16 and 22. Here `R(p)` moves by the share below.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, cast

import numpy as np
import torch
from torch import Tensor
from torch.special import ndtri

from plumbline.core.numbers import Array, Numbers, namespace_of, special_of
from plumbline.forecasts import gaussian
from plumbline.methods.localised.forecasts import QuantilePredictive
from plumbline.methods.localised.thresholds import FLOOR, WithVjp

END = 40.0
"""Substitute for infinity, in standard deviations: the mass beyond is zero in double precision."""


def levels(count: int) -> Tensor:
    """Return `count` equally spaced levels inside (0, 1)."""
    return torch.arange(1, count + 1, dtype=torch.float64) / (count + 1)


def monotone_with_vjp(R: Array) -> WithVjp:
    """Sort levels (`... x M`) inside (0, 1), at least `FLOOR` apart, so that slices have densities.

    The online updates of neighbouring levels may cross; sorting them never makes a quantile worse (rearrangement:
    Chernozhukov, Fernandez-Val & Galichon, 2010).

    Returns:
        Levels, and their vector-Jacobian product; it is zero for levels outside [0, 1].
    """
    inside, M = R.clip(0.0, 1.0), R.shape[-1]
    places = inside.argsort(-1)
    ramp, share = FLOOR * np.arange(1, M + 1), 1 - FLOOR * (M + 1)

    def vjp(grad_levels: Array) -> Array:
        grad_R = np.zeros_like(R)
        np.put_along_axis(grad_R, places, share * grad_levels, -1)
        return grad_R * (inside == R)

    return ramp + share * np.take_along_axis(inside, places, -1), vjp


@dataclass(frozen=True)
class ReweightedGaussian(Generic[Numbers]):
    """Gaussians whose slices are reweighted; of any shape `...`. The numbers are tensors, or arrays as in searches.

    Attributes:
        centre: `...`, the model's mean.
        scale: `...`, the model's standard deviation.
        targets: `M`, the target levels of the quantiles.
        recalibrated: `... x M`, increasing in (0, 1): the model's levels at these quantiles.
    """

    centre: Numbers
    scale: Numbers
    targets: Numbers
    recalibrated: Numbers

    @cached_property
    def edges(self) -> Numbers:
        """Ends of the slices in standard deviations: `... x (M + 2)`."""
        xp, z = namespace_of(self.centre), special_of(self.centre).ndtri(self.recalibrated)
        end = xp.full_like(z[..., :1], END)
        return xp.concatenate([-end, z, end], -1)

    @cached_property
    def weights(self) -> Numbers:
        """Factors of the model's density in each slice: `... x (M + 1)`."""
        return widths(self.targets) / widths(self.recalibrated)

    def expected_improvement(self, best: Numbers) -> Numbers:
        """Return the expected improvement over `best` (a number), summed over slices: `...`."""
        return self.expected_improvement_with_slopes(best)[0]

    def expected_improvement_with_slopes(self, best: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return the same with its derivatives in centre and scale, `...`, and in the recalibrated levels, `... x M`.

        A level is the end of two slices. It moves their edge, where the improvement is `centre + scale z - best`, and
        changes their weights, which are inverse to their lengths.
        """
        xp = namespace_of(self.centre)
        a = xp.maximum(self.edges, ((best - self.centre) / self.scale)[..., None])
        # Over a slice: (centre - best) times its mass, and the scale times its first moment.
        mass, moment = -xp.diff(gaussian.cdf(-a)), -xp.diff(gaussian.density(a))
        ahead, scale = (self.centre - best)[..., None], self.scale[..., None]
        terms = self.weights * (ahead * mass + scale * moment)
        at_edges = xp.clip(ahead + scale * self.edges[..., 1:-1], 0.0, None)
        grad_levels = xp.diff(terms / widths(self.recalibrated)) - xp.diff(self.weights) * at_edges
        value = xp.clip(terms.sum(-1), 0.0, None)
        return value, (self.weights * mass).sum(-1), (self.weights * moment).sum(-1), grad_levels

    def moments(self) -> tuple[Numbers, Numbers]:
        """Return the mean and the standard deviation, both `...`."""
        xp, z, phi = namespace_of(self.centre), self.edges, gaussian.density(self.edges)
        first = -(self.weights * xp.diff(phi)).sum(-1)
        second = (self.weights * xp.diff(gaussian.cdf(z) - z * phi)).sum(-1)
        return self.centre + self.scale * first, self.scale * xp.sqrt(xp.clip(second - first * first, 0.0, None))


@dataclass(frozen=True)
class RecalibratedPredictive(QuantilePredictive):
    """Forecasts of `n` points with recalibrated quantiles.

    Attributes:
        distribution: distribution of shape `n`.
    """

    distribution: ReweightedGaussian[Tensor]

    @cached_property
    def moments(self) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of observations."""
        return self.distribution.moments()

    @property
    def mean(self) -> Tensor:
        """Expected observations."""
        return self.moments[0]

    @property
    def sd(self) -> Tensor:
        """Standard deviations of observations."""
        return self.moments[1]

    def quantile(self, p: Tensor) -> Tensor:
        """Return the quantiles of levels `p`."""
        of = self.distribution
        grid = padded(of.targets).expand(*of.centre.shape, -1)
        level = interpolated(p, grid, padded(of.recalibrated))
        return of.centre + of.scale * ndtri(level)

    def cdf(self, y: Tensor) -> Tensor:
        """Return the probability of an observation of at most `y`."""
        of = self.distribution
        grid = padded(of.targets).expand(*of.centre.shape, -1)
        return interpolated(gaussian.cdf((y - of.centre) / of.scale), padded(of.recalibrated), grid)

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y`."""
        of = self.distribution
        z = (y - of.centre) / of.scale
        inner = of.edges[..., 1:-1].contiguous()
        weight = of.weights.gather(-1, torch.searchsorted(inner, z.unsqueeze(-1))).squeeze(-1)
        return weight.log() - 0.5 * z.square() - of.scale.log() - 0.5 * torch.log(z.new_tensor(2 * torch.pi))


def padded(p: Numbers) -> Numbers:
    """Return levels (`... x M`) with 0 before and 1 after them."""
    xp = namespace_of(p)
    zero = xp.zeros_like(p[..., :1])
    return cast(Numbers, xp.concatenate([zero, p, zero + 1], -1))


def widths(p: Numbers) -> Numbers:
    """Return the distances between increasing levels (`... x M`), with 0 before and 1 after them: `... x (M + 1)`."""
    return cast(Numbers, namespace_of(p).diff(padded(p)))


def interpolated(x: Tensor, grid: Tensor, values: Tensor) -> Tensor:
    """Interpolate `values` on `grid` (both `n x K`, the grid increasing) linearly at `x` (`... x n`)."""
    columns = x.reshape(-1, x.shape[-1]).mT.contiguous()  # n x everything before
    right = torch.searchsorted(grid.contiguous(), columns).clamp(1, grid.shape[-1] - 1)
    x0, x1 = grid.gather(-1, right - 1), grid.gather(-1, right)
    y0, y1 = values.gather(-1, right - 1), values.gather(-1, right)
    return (y0 + (y1 - y0) * (columns - x0) / (x1 - x0)).mT.reshape(x.shape)

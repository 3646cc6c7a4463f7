"""Exact conformal sets for one test point and one output: unions of intervals, by root finding and a sweep; no grid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.conformal.masses import acceptance, conformity_mass


@dataclass(frozen=True)
class ConformalSets:
    """Unions of intervals, one a test point, in standard scores.

    Attributes:
        edges: `b x (e + 1)`, sorted; the first is -inf and the last inf.
        inside: `b x e`, whether each interval between edges belongs to the set.
    """

    edges: Tensor
    inside: Tensor

    def width(self) -> Tensor:
        """Return the total length, `b`; inf where the set is unbounded."""
        lengths = self.edges[:, 1:] - self.edges[:, :-1]
        return torch.where(self.inside, lengths, 0.0).sum(dim=-1)

    def intervals(self) -> list[list[tuple[float, float]]]:
        """Return the maximal intervals of each set, from left to right."""
        return [_joined(edges, inside) for edges, inside in zip(self.edges.tolist(), self.inside.tolist(), strict=True)]


def _joined(edges: list[float], inside: list[bool]) -> list[tuple[float, float]]:
    """Return the intervals inside the set, adjacent ones merged."""
    joined: list[tuple[float, float]] = []
    for low, high, is_inside in zip(edges[:-1], edges[1:], inside, strict=True):
        if not is_inside:
            continue
        if joined and joined[-1][1] == low:
            low = joined.pop()[0]
        joined.append((low, high))
    return joined


def exact_sets(coefficients: Tensor, weights: Tensor, alpha: float) -> ConformalSets:
    """Return the conformal sets; arguments are those of `mass_by_interval`, and the miscoverage `alpha`."""
    edges, mass = mass_by_interval(coefficients, weights)
    return ConformalSets(edges, (mass > alpha) & (edges[:, 1:] > edges[:, :-1]))


def mass_by_interval(coefficients: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the edges of intervals of labels, `b x (e + 1)`, and the mass in each, `b x e`.

    The mass changes only at the roots of the quadratics.

    Args:
        coefficients: `b x 1 x n x 3` of `quadratics` at single test points with one output.
        weights: `b x 1 x (n + 1)`, the label's own last; they sum to one.
    """
    constant, linear, square = coefficients.squeeze(1).unbind(dim=-1)
    # The root of larger size by the stable formula, the other from their product; a straight line has one.
    discriminant = (linear.square() - 4 * square * constant).sqrt()
    sum_ = -0.5 * (linear + torch.copysign(discriminant, linear))
    roots = torch.cat([sum_ / square, constant / sum_], dim=-1)
    roots = torch.where(roots.isfinite(), roots, torch.inf).sort(dim=-1).values
    ends = torch.full_like(roots[:, :1], torch.inf)
    edges = torch.cat([-ends, roots, ends], dim=-1)
    return edges, conformity_mass(coefficients, weights, _between(edges)[..., None, None]).squeeze(1)


def _between(edges: Tensor) -> Tensor:
    """Return a point inside each interval, unbounded ones included."""
    low, high = edges[:, :-1], edges[:, 1:]
    middle = torch.where(low.isneginf(), high - 1.0, torch.where(high.isposinf(), low + 1.0, 0.5 * (low + high)))
    # The whole line and empty intervals at infinity remain: any point will do.
    return torch.where(middle.isfinite(), middle, 0.0)


VOLUME_SAMPLES = 2_048
VOLUME_SPREAD = 2.0
"""Volumes of sets in several outputs are importance sampled from a Gaussian this many times as wide as the forecast."""
FAR, DIRECTIONS = 1e6, 256
"""A set in several outputs counts as unbounded where it holds a label this far away, along an axis or one of so many
directions."""


@dataclass(frozen=True)
class ConformalPredictive(GaussianPredictive):
    """Gaussian forecasts of `n` points with conformal sets; of one output, or of several independent ones.

    Attributes:
        mean: `n`, or `n x m`.
        sd: `n`, or `n x m`, noise included.
        coefficients: `n x 1 x data x p` of `scores.quadratics`.
        weights: `n x 1 x (data + 1)`.
        tau: strength of the relaxation; 0 for exact sets.
        randomised: Algorithm 2's sets; `covers` is then the probability that the coin admits the observation.
    """

    coefficients: Tensor
    weights: Tensor
    tau: float = 0.0
    randomised: bool = False

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y`, `n`; of several outcomes, the joint one."""
        density = super().log_prob(y)
        return density if density.ndim == 1 else density.sum(dim=-1)

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return the probability that the set of level `1 - alpha` holds `y`: 0 or 1 unless relaxed or randomised."""
        z = ((y - self.mean) / self.sd).reshape(len(y), 1, 1, -1)
        mass = conformity_mass(self.coefficients, self.weights, z, self.tau)
        return acceptance(mass, self.weights[..., -1:], alpha, self.tau, self.randomised).reshape(len(y))

    def sets(self, alpha: float) -> ConformalSets:
        """Return the exact sets of one output, in standard scores."""
        return exact_sets(self.coefficients, self.weights, alpha)

    def width(self, alpha: float) -> Tensor:
        """Return the length of the exact set, or its volume for several outputs; inf where it is unbounded.

        Of randomised sets it is the expectation over the coin.
        """
        if self.mean.ndim == 1:
            edges, mass = mass_by_interval(self.coefficients, self.weights)
            share, lengths = self._share(mass, alpha), edges[:, 1:] - edges[:, :-1]
            return torch.where((share > 0) & (lengths > 0), share * lengths, 0.0).sum(dim=-1) * self.sd
        m = self.mean.shape[-1]
        z = VOLUME_SPREAD * draw_sobol_normal_samples(m, VOLUME_SAMPLES, seed=0, dtype=self.mean.dtype)
        log_density = -0.5 * (z / VOLUME_SPREAD).square().sum(dim=-1) - 0.5 * m * math.log(2 * math.pi)
        density = log_density.exp() / VOLUME_SPREAD**m
        share = (self._admitted(z, alpha) / density).mean(dim=-1)
        directions = torch.cat([torch.eye(m, dtype=z.dtype), -torch.eye(m, dtype=z.dtype), z[:DIRECTIONS]])
        unbounded = (self._admitted(FAR * directions, alpha) > 0).any(dim=-1)
        return torch.where(unbounded, torch.inf, share * self.sd.prod(dim=-1))

    def _admitted(self, z: Tensor, alpha: float) -> Tensor:
        """Return the probability that each exact set holds each of `k x m` standard scores: `n x k`."""
        labels = z[None, :, None, :].expand(len(self.mean), -1, -1, -1)
        return self._share(conformity_mass(self.coefficients, self.weights, labels).squeeze(1), alpha)

    def _share(self, mass: Tensor, alpha: float) -> Tensor:
        """Return the probability that labels of a mass are in the exact set, `n x k` like the mass."""
        return acceptance(mass, self.weights[:, 0, -1:], alpha, randomised=self.randomised)

    def edges(self, alpha: float) -> Sequence[list[tuple[float, float]]]:
        """Return the intervals of each set of one output, in units of y."""
        return [
            [(mean + sd * low, mean + sd * high) for low, high in intervals]
            for mean, sd, intervals in zip(
                self.mean.tolist(), self.sd.tolist(), self.sets(alpha).intervals(), strict=True
            )
        ]

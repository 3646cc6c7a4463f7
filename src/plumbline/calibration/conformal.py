"""Full conformal Bayes for exact Gaussian processes, in closed form and without a grid.

CBO's Algorithm 1 refits the model on each candidate label. Here the refitted residuals and variances of all data are a
line and a constant in the standard score `z = (label - mean) / sd` of the label, from one block inverse; the scores are
then parabolas in `z`, and the set is found from their crossings.

Notation: `K + s2n I = L L'`, `B = (L L')^-1`, `a = B (y - mean)`; at a test point `u = B k_x`, and `S2` is the
predictive variance of the observation. Everything is in the model's standardised space, and
differentiable in the test point.
"""

from dataclasses import dataclass

import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from plumbline.models.exact import whitened_residuals


@dataclass(frozen=True)
class Augmented:
    """What refitting on one more observation needs, at each of `b` test points.

    Attributes:
        mean: `b`, predictive mean.
        sd: `b`, predictive standard deviation of the observation, `S`.
        a: `n`, `B (y - mean)`.
        u: `b x n`, `B k_x`.
        precision: `n`, the diagonal of `B`.
        noise: the noise variance `s2n`.
    """

    mean: Tensor
    sd: Tensor
    a: Tensor
    u: Tensor
    precision: Tensor
    noise: Tensor

    def variances(self) -> tuple[Tensor, Tensor]:
        """Return the refitted predictive variances at the data, `b x n`, and at the test points, `b`.

        `s2n (2 - s2n A_ii)` with the augmented inverse `A`: they do not depend on the label.
        """
        s2n, S2 = self.noise, self.sd.square()
        data = s2n * (2 - s2n * (self.precision + self.u.square() / S2.unsqueeze(-1)))
        return data, s2n * (2 - s2n / S2)

    def residuals(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the refitted residuals as lines in `z`: `r_i = intercept_i + slope_i z` at the data, `slope z` at the
        test point; shapes `n`, `b x n`, `b`."""
        slope = self.noise / self.sd
        return self.noise * self.a, -slope.unsqueeze(-1) * self.u, slope


def augment(model: SingleTaskGP, X: Tensor) -> Augmented:
    """Return the augmented system at test points.

    Args:
        model: an exact Gaussian process in evaluation mode, with one outcome and homoscedastic noise.
        X: `b x d`, in the problem's bounds.
    """
    L, whitened = whitened_residuals(model)
    train, test = model.train_inputs[0], model.transform_inputs(X)
    cross = model.covar_module(test, train).to_dense()
    prior = model.covar_module(test, diag=True)
    half = torch.linalg.solve_triangular(L, cross.mT, upper=False)
    noise = model.likelihood.noise.squeeze()
    inverse = torch.linalg.solve_triangular(L, torch.eye(len(L), dtype=L.dtype), upper=False)
    return Augmented(
        mean=model.mean_module(test) + whitened @ half,
        sd=(prior - half.square().sum(dim=0) + noise).sqrt(),
        a=inverse.mT @ whitened,
        u=(inverse.mT @ half).mT,
        precision=inverse.square().sum(dim=0),
        noise=noise,
    )


def scores(system: Augmented, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log predictive densities after refitting on each candidate label; CBO, Algorithm 1.

    Args:
        system: at `b` test points.
        z: `b x k` standard scores of candidate labels.

    Returns:
        Of the data, `b x k x n`, and of the test point itself, `b x k`.
    """
    data_variance, own_variance = system.variances()
    intercept, slope, own_slope = system.residuals()
    r = intercept + slope.unsqueeze(-2) * z.unsqueeze(-1)
    own = own_slope.unsqueeze(-1) * z
    return _log_density(r, data_variance.unsqueeze(-2)), _log_density(own, own_variance.unsqueeze(-1))


def _log_density(residual: Tensor, variance: Tensor) -> Tensor:
    return -0.5 * (torch.log(2 * torch.pi * variance) + residual.square() / variance)


def parabolas(system: Augmented) -> Tensor:
    """Return the coefficients of `q_i(z) = s_own(z) - s_i(z)`: `b x n x 3`, highest power first.

    A datum conforms less than the label where `q_i` is not negative.
    """
    data_variance, own_variance = system.variances()
    intercept, slope, own_slope = system.residuals()
    square = slope.square() / data_variance - (own_slope.square() / own_variance).unsqueeze(-1)
    linear = 2 * intercept * slope / data_variance
    constant = intercept.square() / data_variance + torch.log(data_variance / own_variance.unsqueeze(-1))
    return 0.5 * torch.stack([square, linear, constant], dim=-1)


def conformity_mass(q: Tensor, weights: Tensor, z: Tensor) -> Tensor:
    """Return the weight of the data that conform no more than the label, the label's own included.

    Args:
        q: `b x n x 3` parabolas.
        weights: `b x (n + 1)`, the label's own last; they sum to one.
        z: `b x k` standard scores of labels.

    Returns:
        `b x k`; a label is in the set where this exceeds alpha.
    """
    powers = torch.stack([z.square(), z, torch.ones_like(z)], dim=-1)
    conforms = torch.einsum("bkp,bnp->bkn", powers, q) >= 0
    return torch.einsum("bkn,bn->bk", conforms.to(weights.dtype), weights[:, :-1]) + weights[:, -1:]


@dataclass(frozen=True)
class ConformalSets:
    """Unions of intervals, one a test point, in standard scores.

    Attributes:
        edges: `b x (m + 1)`, sorted; the first is -inf and the last inf.
        inside: `b x m`, which of the intervals between them belong to the set.
    """

    edges: Tensor
    inside: Tensor

    def width(self) -> Tensor:
        """Return the total length, `b`; inf where the set is unbounded."""
        lengths = self.edges[:, 1:] - self.edges[:, :-1]
        return torch.where(self.inside, lengths, 0.0).sum(dim=-1)


def exact_sets(q: Tensor, weights: Tensor, alpha: float) -> ConformalSets:
    """Return the conformal sets, without a grid: the mass changes only at the roots of the parabolas.

    Args:
        q: `b x n x 3` parabolas.
        weights: `b x (n + 1)`, the label's own last; they sum to one.
        alpha: miscoverage.
    """
    A, B, C = q.unbind(dim=-1)
    # The root of larger size by the stable formula, the other from their product; a straight line has one.
    discriminant = (B.square() - 4 * A * C).sqrt()
    sum_ = -0.5 * (B + torch.copysign(discriminant, B))
    roots = torch.cat([sum_ / A, C / sum_], dim=-1)
    roots = torch.where(roots.isfinite(), roots, torch.inf).sort(dim=-1).values
    ends = torch.full_like(roots[:, :1], torch.inf)
    edges = torch.cat([-ends, roots, ends], dim=-1)
    inside = conformity_mass(q, weights, _between(edges)) > alpha
    return ConformalSets(edges, inside & (edges[:, 1:] > edges[:, :-1]))


def _between(edges: Tensor) -> Tensor:
    """Return a point inside each interval, unbounded ones included."""
    low, high = edges[:, :-1], edges[:, 1:]
    middle = torch.where(low.isneginf(), high - 1.0, torch.where(high.isposinf(), low + 1.0, 0.5 * (low + high)))
    # What is left are the whole line, and empty intervals at infinity: any point will do.
    return torch.where(middle.isfinite(), middle, 0.0)

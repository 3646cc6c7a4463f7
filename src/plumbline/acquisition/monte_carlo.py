"""Monte Carlo acquisition functions of batches of points, with gradients: functions of joint draws of f.

Values equal BoTorch's at the same draws; automatic differentiation takes five times as long per value and gradient.
"""

import math
from collections.abc import Callable

import torch
from botorch.acquisition.logei import TAU_MAX, TAU_RELU
from botorch.acquisition.utils import prune_inferior_points
from botorch.sampling import SobolQMCNormalSampler
from torch import Size, Tensor

from plumbline.acquisition.draws import Draws, KnownDraws, draws_at, normal_draws
from plumbline.acquisition.smooth_maximum import log_fat_relu, smooth_least
from plumbline.core.units import usual_unit
from plumbline.models.gp.process import GP
from plumbline.models.posterior import GaussianProcess
from plumbline.spaces.with_gradient import Differentiated

Integrand = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Maps draws of f, `b x q x S`, to acquisition values, `b`, and their derivatives in the draws, `b x q x S`."""

TAU_STEP = 1e-3
"""Width of the sigmoid that replaces the step in the probability of improvement, in units of f; as in BoTorch."""

PRUNING = 2048
"""Number of draws that select the observed points that may be the best; as in BoTorch."""


class MonteCarloAcquisition(Differentiated):
    """An acquisition function of joint draws of f at a batch of points and at the pending points.

    Args:
        process: GP or SVGP.
        integrand: integrand of the acquisition function.
        samples: number of draws, `S`.
        seed: seed of the draws.
        nonnegative, unit: see `Differentiated`.
    """

    def __init__(
        self,
        process: GaussianProcess,
        integrand: Integrand,
        samples: int,
        seed: int,
        nonnegative: bool = False,
        unit: float = 1.0,
    ) -> None:
        super().__init__(process.model)
        self.unit = unit
        self.process = process
        self.integrand = integrand
        self.normal = normal_draws(samples, seed)
        self.nonnegative = nonnegative
        self.set_X_pending(None)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the acquisition values of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""
        f, vjp = self.draws(X)
        value, grad_f = self.integrand(f)
        return value, vjp(grad_f)[:, : X.shape[-2]]

    def values(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `b x q x d` points: `b`."""
        return self.integrand(self.draws(X)[0])[0]

    def draws(self, X: Tensor) -> Draws:
        """Return draws of f at `b x q x d` points and the p pending points, `b x (q + p) x S`."""
        X = self.with_pending(X)
        return draws_at(self.process, X, self.normal(X.shape[-2]))


class NoisyImprovement(Differentiated):
    """The log expected improvement over the best f at observed points, where that f is drawn too.

    Draws of f at the observed points, the baseline, are fixed. Draws at new points are conditional on them, and pending
    points join the baseline. Values equal BoTorch's `qLogNoisyExpectedImprovement`, base samples included; Balandat et
    al. (2020), Ament et al. (2023).

    Args:
        process: fitted GP.
        baseline: `m x d`, in the problem's bounds.
        samples: number of draws, `S`.
        seed: seed of the draws.
    """

    def __init__(self, process: GP, baseline: Tensor, samples: int, seed: int) -> None:
        super().__init__(process.model)
        self.process = process
        self.baseline = baseline
        self.normal = normal_draws(samples, seed)
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Add pending points, `p x d`, to the baseline."""
        super().set_X_pending(X_pending)
        points = self.baseline if X_pending is None else torch.cat([self.baseline, X_pending])
        self.known = KnownDraws(self.process, points, self.normal(len(points)))
        self.integrand = log_batch_improvement(self.known.values.amax(0), self.process.standardisation.scale)

    def further(self, q: int) -> Tensor:
        """Return the base samples of q further points, `q x S`."""
        return self.normal(len(self.known.points) + q)[-q:]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the acquisition values of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""
        f, vjp = self.known.at(X, self.further(X.shape[-2]))
        value, grad_f = self.integrand(f)
        return value, vjp(grad_f)

    def values(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `b x q x d` points: `b`."""
        return self.integrand(self.known.at(X, self.further(X.shape[-2]))[0])[0]


def noisy_improvement(process: GP, X: Tensor, samples: int, seed: int) -> NoisyImprovement:
    """Return noisy expected improvement over the observed points X, `n x d`, pruned by BoTorch's rule."""
    baseline = prune_inferior_points(process.model, X, sampler=SobolQMCNormalSampler(Size([PRUNING]), seed=seed))
    return NoisyImprovement(process, baseline, samples, seed)


def batch_upper_confidence_bound(sqrt_beta: float) -> Integrand:
    """Return the mean of `max_j m_j + sqrt_beta sqrt(pi / 2) |f_j - m_j|`, with m their mean; Wilson et al. (2017).

    At q = 1 it is the upper confidence bound: a normal variable is on average `sqrt(2 / pi)` deviations off its mean.
    """
    width = sqrt_beta * math.sqrt(math.pi / 2)

    def value(f: Tensor) -> tuple[Tensor, Tensor]:
        mean = f.mean(-1, keepdim=True)
        away = f - mean
        bound, chosen = torch.add(mean, away.abs(), alpha=width).max(1, keepdim=True)
        grad_bound = torch.zeros_like(f).scatter_(1, chosen, 1 / f.shape[-1])
        grad_away = away.sign_().mul_(grad_bound).mul_(width)
        return bound.mean((1, 2)), grad_away + (grad_bound - grad_away).mean(-1, keepdim=True)

    return value


def batch_expected_improvement(best: Tensor, unit: float = 1.0) -> Integrand:
    """Return the mean of `max_j (f_j - best)+`; Ginsbourger et al. (2008), Wang et al. (2020)."""

    def improvement(greatest: Tensor) -> tuple[Tensor, Tensor]:
        return (greatest - best).clamp_min(0.0), (greatest > best).to(greatest)

    return of_greatest(improvement)


def batch_probability_of_improvement(best: Tensor, unit: float = 1.0) -> Integrand:
    """Return the mean of `max_j 1[f_j > best]`, with a narrow sigmoid in place of the step; Wilson et al. (2017)."""

    tau = TAU_STEP * float(usual_unit(unit))

    def chance(greatest: Tensor) -> tuple[Tensor, Tensor]:
        step = torch.sigmoid((greatest - best) / tau)
        return step, step * (1 - step) / tau

    return of_greatest(chance)


def of_greatest(function: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Integrand:
    """Return the mean over draws of a function, given with its derivative, of the greatest f in a batch."""

    def value(f: Tensor) -> tuple[Tensor, Tensor]:
        greatest, chosen = f.max(1, keepdim=True)
        values, slopes = function(greatest)
        return values.mean((1, 2)), torch.zeros_like(f).scatter_(1, chosen, slopes / f.shape[-1])

    return value


def log_batch_improvement(best: Tensor, unit: float = 1.0) -> Integrand:
    """Return the log mean of a smooth `max_j (f_j - best)+`; Ament et al. (2023), with BoTorch's fat tails.

    The value of a draw is the smooth maximum of the logarithms of smooth improvements.

    Args:
        best: greatest f so far, for all draws or for each, `S`.
        unit: unit of f, for the width of the smoothing.
    """
    tau = TAU_RELU * float(usual_unit(unit))

    def value(f: Tensor) -> tuple[Tensor, Tensor]:
        v, slopes = log_fat_relu((f - best).div_(tau))
        least, shares = smooth_least(v.neg_(), TAU_MAX)
        smooth = math.log(tau) - least
        log_sum = smooth.logsumexp(-1)
        weights = (smooth - log_sum.unsqueeze(-1)).exp_().div_(tau)
        return log_sum - math.log(f.shape[-1]), slopes().mul_(shares()).mul_(weights.unsqueeze(1))

    return value

"""Monte Carlo utilities of batches of points with their gradients: functions of joint draws of f.

BoTorch's values, draw by draw; by automatic differentiation a value and gradient takes five times as long.
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
from plumbline.models.gp.process import GP
from plumbline.models.posterior import GaussianProcess
from plumbline.spaces.with_gradient import Differentiated

Integrand = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Maps draws of f, `b x q x S`, to utilities, `b`, and their derivatives in the draws, `b x q x S`."""

TAU_STEP = 1e-3
"""Width of the sigmoid that stands for a step in the probability of improvement, in units of f; BoTorch's."""

PRUNING = 2048
"""Draws that tell which of the observed points may be the best; BoTorch's."""


class MonteCarloAcquisition(Differentiated):
    """A function of a process's joint draws of f at a batch of points and at the points that are pending.

    Args:
        process: whose draws they are.
        integrand: what they are worth.
        samples: how many, `S`.
        seed: of them.
        nonnegative: see `Differentiated`.
    """

    def __init__(
        self, process: GaussianProcess, integrand: Integrand, samples: int, seed: int, nonnegative: bool = False
    ) -> None:
        super().__init__(process.model)
        self.process = process
        self.integrand = integrand
        self.normal = normal_draws(samples, seed)
        self.nonnegative = nonnegative
        self.set_X_pending(None)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""
        f, vjp = self.draws(X)
        value, grad_f = self.integrand(f)
        return value, vjp(grad_f)[:, : X.shape[-2]]

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x q x d` points: `b`."""
        return self.integrand(self.draws(X)[0])[0]

    def draws(self, X: Tensor) -> Draws:
        """Return draws of f at `b x q x d` points and the p pending ones, `b x (q + p) x S`."""
        X = self.with_pending(X)
        return draws_at(self.process, X, self.normal(X.shape[-2]))


class NoisyImprovement(Differentiated):
    """The logarithm of the mean improvement of f over the best of it at observed points, which is drawn too.

    Draws of f at the observed points, the baseline, are made once, and those at new points given each of them; pending
    points become part of the baseline. It is BoTorch's `qLogNoisyExpectedImprovement`, base samples included; Balandat
    et al. (2020), Ament et al. (2023).

    Args:
        process: whose draws they are.
        baseline: `m x d`, in the problem's bounds.
        samples: how many draws, `S`.
        seed: of them.
    """

    def __init__(self, process: GP, baseline: Tensor, samples: int, seed: int) -> None:
        super().__init__(process.model)
        self.process = process
        self.baseline = baseline
        self.normal = normal_draws(samples, seed)
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Make points, `p x d`, part of the baseline besides its own."""
        super().set_X_pending(X_pending)
        points = self.baseline if X_pending is None else torch.cat([self.baseline, X_pending])
        self.known = KnownDraws(self.process, points, self.normal(len(points)))
        self.integrand = log_batch_improvement(self.known.values.amax(0))

    def further(self, q: int) -> Tensor:
        """Return base samples of q points more, `q x S`."""
        return self.normal(len(self.known.points) + q)[-q:]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""
        f, vjp = self.known.at(X, self.further(X.shape[-2]))
        value, grad_f = self.integrand(f)
        return value, vjp(grad_f)

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x q x d` points: `b`."""
        return self.integrand(self.known.at(X, self.further(X.shape[-2]))[0])[0]


def noisy_improvement(process: GP, X: Tensor, samples: int, seed: int) -> NoisyImprovement:
    """Return noisy improvement over those of the observed points X, `n x d`, that may be the best (BoTorch's rule)."""
    baseline = prune_inferior_points(process.model, X, sampler=SobolQMCNormalSampler(Size([PRUNING]), seed=seed))
    return NoisyImprovement(process, baseline, samples, seed)


def batch_upper_confidence_bound(sqrt_beta: float) -> Integrand:
    """Return the mean of `max_j m_j + sqrt_beta sqrt(pi / 2) |f_j - m_j|`, m that of the draws; Wilson et al. (2017).

    At q = 1 it is the upper confidence bound, for a normal variable is `sqrt(2 / pi)` deviations off its mean.
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


def batch_expected_improvement(best: Tensor) -> Integrand:
    """Return the mean of `max_j (f_j - best)+`; Ginsbourger et al. (2008), Wang et al. (2020)."""

    def gain(greatest: Tensor) -> tuple[Tensor, Tensor]:
        return (greatest - best).clamp_min(0.0), (greatest > best).to(greatest)

    return of_greatest(gain)


def batch_probability_of_improvement(best: Tensor) -> Integrand:
    """Return the mean of `max_j 1[f_j > best]`, with a narrow sigmoid for the step; Wilson et al. (2017)."""

    def chance(greatest: Tensor) -> tuple[Tensor, Tensor]:
        step = torch.sigmoid((greatest - best) / TAU_STEP)
        return step, step * (1 - step) / TAU_STEP

    return of_greatest(chance)


def of_greatest(worth: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Integrand:
    """Return the mean over draws of a function, that comes with its derivative, of the greatest f of a batch."""

    def value(f: Tensor) -> tuple[Tensor, Tensor]:
        greatest, chosen = f.max(1, keepdim=True)
        worths, slopes = worth(greatest)
        return worths.mean((1, 2)), torch.zeros_like(f).scatter_(1, chosen, slopes / f.shape[-1])

    return value


def log_batch_improvement(best: Tensor) -> Integrand:
    """Return the logarithm of the mean of a smooth `max_j (f_j - best)+`; Ament et al. (2023), BoTorch's fat tails.

    Of each draw it is the smooth maximum of the logarithms of smooth improvements.

    Args:
        best: of all draws, or of each, `S`.
    """

    def value(f: Tensor) -> tuple[Tensor, Tensor]:
        v, slopes = log_fat_relu((f - best).div_(TAU_RELU))
        least, shares = smooth_least(v.neg_(), TAU_MAX)
        smooth = math.log(TAU_RELU) - least
        log_sum = smooth.logsumexp(-1)
        weights = (smooth - log_sum.unsqueeze(-1)).exp_().div_(TAU_RELU)
        return log_sum - math.log(f.shape[-1]), slopes().mul_(shares()).mul_(weights.unsqueeze(1))

    return value

"""Monte Carlo utilities of batches of points with their gradients: functions of joint draws of f.

BoTorch's values, draw by draw; by automatic differentiation a value and gradient takes five times as long.
"""

import math
from collections.abc import Callable
from functools import cache

import torch
from botorch.acquisition.logei import TAU_MAX, TAU_RELU
from botorch.acquisition.utils import prune_inferior_points
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Size, Tensor
from torch.nn.functional import softplus

from plumbline.acquisition.differentiated import Differentiated
from plumbline.models.exact_moments import JointMoments
from plumbline.models.exact_process import ExactProcess

OfDraws = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Maps draws of f, `b x q x S`, to utilities, `b`, and their derivatives in the draws, `b x q x S`."""

TAU_STEP = 1e-3
"""Width of the sigmoid that stands for a step in the probability of improvement, in units of f; BoTorch's."""

PRUNING = 2048
"""Draws that tell which of the observed points may be the best; BoTorch's."""


def normal_draws(samples: int, seed: int) -> Callable[[int], Tensor]:
    """Return what makes quasi-random standard normal draws of k values, `k x samples`, the same at every call.

    They are those of BoTorch's `SobolQMCNormalSampler` with the same seed.
    """

    @cache
    def draw(k: int) -> Tensor:
        return draw_sobol_normal_samples(k, samples, dtype=torch.float64, seed=seed).mT.contiguous()

    return draw


def draws_of(root: Tensor, z: Tensor) -> Tensor:
    """Return `root z`, `b x q x S`, of `b x q x k` matrices and `k x S` draws."""
    return (root.flatten(0, 1) @ z).view(*root.shape[:-1], -1)


class BatchUtility(Differentiated):
    """A function of an exact process's joint draws of f at a batch of points and at the points that are pending.

    Args:
        process: whose draws they are.
        of_draws: what they are worth.
        samples: how many, `S`.
        seed: of them.
        nonnegative: see `Differentiated`.
    """

    def __init__(
        self, process: ExactProcess, of_draws: OfDraws, samples: int, seed: int, nonnegative: bool = False
    ) -> None:
        super().__init__(process.model)
        self.process = process
        self.of_draws = of_draws
        self.normal = normal_draws(samples, seed)
        self.nonnegative = nonnegative
        self.set_X_pending(None)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""
        seen, z, f = self.draws(X)
        value, to_f = self.of_draws(f)
        return value, seen.pull_back(to_f.sum(-1), to_f @ z.mT)[:, : X.shape[-2]]

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x q x d` points: `b`."""
        return self.of_draws(self.draws(X)[-1])[0]

    def draws(self, X: Tensor) -> tuple[JointMoments, Tensor, Tensor]:
        """Return what is said of `b x q x d` points and the p pending ones, base samples and draws of f.

        Returns:
            the moments, `(q + p) x S`, and `b x (q + p) x S`.
        """
        if self.X_pending is not None:
            X = torch.cat([X, self.X_pending.expand(len(X), -1, -1)], -2)
        seen, z = self.process.at_batches(X), self.normal(X.shape[-2])
        return seen, z, seen.mean.unsqueeze(-1) + draws_of(seen.root, z)


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

    def __init__(self, process: ExactProcess, baseline: Tensor, samples: int, seed: int) -> None:
        super().__init__(process.model)
        self.process = process
        self.baseline = baseline
        self.normal = normal_draws(samples, seed)
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Make points, `p x d`, part of the baseline besides its own."""
        super().set_X_pending(X_pending)
        known = self.baseline if X_pending is None else torch.cat([self.baseline, X_pending])
        self.z = self.normal(len(known))
        self.told = self.process.told(known)
        k, units = len(known), self.process.units
        f = self.told.y[-k:, None] + self.process.deviation * (self.told.root[-k:, -k:] @ self.z)
        self.of_draws = log_batch_improvement(units.location + units.scale * f.amax(0))

    def further(self, q: int) -> Tensor:
        """Return base samples of q points more, `q x S`."""
        return self.normal(len(self.z) + q)[-q:]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""
        seen, z, f = self.draws(X)
        value, to_f = self.of_draws(f)
        to_f = self.process.units.scale * to_f
        to_half = to_f.sum(-1, keepdim=True) * self.told.whitened
        to_half[..., -len(self.z) :] += self.process.deviation * (to_f @ self.z.mT)
        return value, seen.pull_back_standardised(to_half, self.process.deviation * (to_f @ z.mT))

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x q x d` points: `b`."""
        return self.of_draws(self.draws(X)[-1])[0]

    def draws(self, X: Tensor) -> tuple[JointMoments, Tensor, Tensor]:
        """Return what is said of `b x q x d` points, base samples, and draws of f given those at the baseline.

        Returns:
            the moments, `q x S`, and `b x q x S`.
        """
        seen, z = self.told.at_batches(X), self.further(X.shape[-2])
        rows = torch.cat([seen.half[..., -len(self.z) :], seen.factor], -1)
        spread = self.process.units.scale * self.process.deviation
        return seen, z, seen.mean.unsqueeze(-1) + spread * draws_of(rows, torch.cat([self.z, z]))


def noisy_improvement(process: ExactProcess, X: Tensor, samples: int, seed: int) -> NoisyImprovement:
    """Return noisy improvement over those of the observed points X, `n x d`, that may be the best (BoTorch's rule)."""
    baseline = prune_inferior_points(process.model, X, sampler=SobolQMCNormalSampler(Size([PRUNING]), seed=seed))
    return NoisyImprovement(process, baseline, samples, seed)


def batch_upper_confidence_bound(sqrt_beta: float) -> OfDraws:
    """Return the mean of `max_j m_j + sqrt_beta sqrt(pi / 2) |f_j - m_j|`, m that of the draws; Wilson et al. (2017).

    At q = 1 it is the upper confidence bound, for a normal variable is `sqrt(2 / pi)` deviations off its mean.
    """
    width = sqrt_beta * math.sqrt(math.pi / 2)

    def value(f: Tensor) -> tuple[Tensor, Tensor]:
        mean = f.mean(-1, keepdim=True)
        away = f - mean
        bound, chosen = torch.add(mean, away.abs(), alpha=width).max(1, keepdim=True)
        to_bound = torch.zeros_like(f).scatter_(1, chosen, 1 / f.shape[-1])
        to_away = away.sign_().mul_(to_bound).mul_(width)
        return bound.mean((1, 2)), to_away + (to_bound - to_away).mean(-1, keepdim=True)

    return value


def batch_expected_improvement(best: Tensor) -> OfDraws:
    """Return the mean of `max_j (f_j - best)+`; Ginsbourger et al. (2008), Wang et al. (2020)."""

    def gain(greatest: Tensor) -> tuple[Tensor, Tensor]:
        return (greatest - best).clamp_min(0.0), (greatest > best).to(greatest)

    return of_greatest(gain)


def batch_probability_of_improvement(best: Tensor) -> OfDraws:
    """Return the mean of `max_j 1[f_j > best]`, with a narrow sigmoid for the step; Wilson et al. (2017)."""

    def chance(greatest: Tensor) -> tuple[Tensor, Tensor]:
        step = torch.sigmoid((greatest - best) / TAU_STEP)
        return step, step * (1 - step) / TAU_STEP

    return of_greatest(chance)


def of_greatest(worth: Callable[[Tensor], tuple[Tensor, Tensor]]) -> OfDraws:
    """Return the mean over draws of a function, that comes with its derivative, of the greatest f of a batch."""

    def value(f: Tensor) -> tuple[Tensor, Tensor]:
        greatest, chosen = f.max(1, keepdim=True)
        worths, slopes = worth(greatest)
        return worths.mean((1, 2)), torch.zeros_like(f).scatter_(1, chosen, slopes / f.shape[-1])

    return value


def log_batch_improvement(best: Tensor) -> OfDraws:
    """Return the logarithm of the mean of a smooth `max_j (f_j - best)+`; Ament et al. (2023), BoTorch's fat tails.

    Of each draw improvements are `tau h(u)` with `u = (f - best) / tau` and `h = softplus + 0.1 / (1 + u^2)`, and their
    logarithms v have the maximum `max v + t log sum p((max v - v) / t)` with `p(r) = 2 / (2 + 2 r + r^2)`, whose
    derivative is `-(1 + r) p^2`.

    Args:
        best: of all draws, or of each, `S`.
    """

    def value(f: Tensor) -> tuple[Tensor, Tensor]:
        u = (f - best) / TAU_RELU
        bell = (1 + u.square()).reciprocal_()
        soft = softplus(u).add_(bell, alpha=0.1)
        v = soft.log().add_(math.log(TAU_RELU))
        slope = torch.sigmoid(u).sub_(u.mul_(bell.square_()), alpha=0.2).div_(soft).div_(TAU_RELU)
        top, chosen = v.max(1, keepdim=True)
        r = (top - v).div_(TAU_MAX)
        p = 2 / (2 + r * (2 + r))
        total = p.sum(1, keepdim=True)
        smooth = top + TAU_MAX * total.log()
        weights = p.square_().mul_(1 + r).div_(total)
        weights.scatter_add_(1, chosen, 1 - weights.sum(1, keepdim=True))
        log_sum = smooth.logsumexp(-1, keepdim=True)
        to_f = slope.mul_(weights).mul_((smooth - log_sum).exp_())
        return log_sum[:, 0, 0] - math.log(f.shape[-1]), to_f

    return value

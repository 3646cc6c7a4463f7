"""Expected hypervolume improvement of batches under independent exact processes, with its gradient by hand.

BoTorch's values at the same base samples; by automatic differentiation a value and gradient takes many times as long.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

import torch
from botorch.acquisition.logei import TAU_MAX
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor

from plumbline.acquisition.draws import Draws, KnownDraws, draws_at, normal_draws
from plumbline.acquisition.hypervolume.improvement import free_cells
from plumbline.acquisition.hypervolume.smooth import OfOutcomes, cells_between, log_hypervolume_improvement
from plumbline.acquisition.monte_carlo import PRUNING
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.process import GP
from plumbline.spaces.with_gradient import Differentiated

TAU_MAX_NOISY = 1e-3
"""Width of the smooth minima over noisy fronts; BoTorch's."""


def joint_draws(outcomes: int, samples: int, seed: int) -> Callable[[int], Tensor]:
    """Return what makes base samples of several outcomes at k points, `m x k x S`, the same at every call.

    They are dealt out as by BoTorch's sampler with the same seed.
    """
    normal = normal_draws(samples, seed)
    return lambda k: normal(k * outcomes).unflatten(0, (k, outcomes)).transpose(0, 1)


class OutcomesAcquisition(Differentiated):
    """A function of joint draws of several outcomes; a subclass says how they are drawn.

    Attributes:
        processes: one an outcome, m of them.
        integrand: what draws are worth.
    """

    integrand: OfOutcomes

    def __init__(self, processes: Sequence[GP]) -> None:
        super().__init__(ProcessModel(*processes))
        self.processes = processes

    @abstractmethod
    def draws(self, X: Tensor) -> list[Draws]:
        """Return draws of each outcome at `b x q x d` points, and maybe more behind them."""

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""
        draws, vjps = zip(*self.draws(X), strict=True)
        value, derivatives = self.integrand(torch.stack(draws))
        parts = [vjp(grad_f) for vjp, grad_f in zip(vjps, derivatives(), strict=True)]
        return value, torch.stack(parts).sum(0)[:, : X.shape[-2]]

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x q x d` points: `b`."""
        return self.integrand(torch.stack([f for f, _ in self.draws(X)]))[0]


class ExpectedHypervolume(OutcomesAcquisition):
    """The logarithm of the mean hypervolume that a batch, with the points that are pending, adds to a front.

    It is BoTorch's `qLogExpectedHypervolumeImprovement`; Daulton et al. (2020), Ament et al. (2023).

    Args:
        processes: one an outcome.
        ref_point: `m`, what counts is above it.
        Y: `n x m` observations.
        samples: how many draws, `S`.
        seed: of them.
    """

    def __init__(self, processes: Sequence[GP], ref_point: Tensor, Y: Tensor, samples: int, seed: int) -> None:
        super().__init__(processes)
        self.normal = joint_draws(len(processes), samples, seed)
        self.integrand = log_hypervolume_improvement(cells_between(*free_cells(ref_point, Y)), TAU_MAX)
        self.set_X_pending(None)

    def draws(self, X: Tensor) -> list[Draws]:
        """Return draws of each outcome at `b x q x d` points and at the p pending ones, `b x (q + p) x S`."""
        X = self.with_pending(X)
        return [draws_at(process, X, z) for process, z in zip(self.processes, self.normal(X.shape[-2]), strict=True)]


class NoisyHypervolume(OutcomesAcquisition):
    """The logarithm of the mean hypervolume that a batch adds to the front of f at observed points, drawn too.

    Draws at the observed points, the baseline, are made once, as are their fronts; pending points become part of the
    baseline. It is BoTorch's `qLogNoisyExpectedHypervolumeImprovement`; Daulton et al. (2021), Ament et al. (2023).

    Args:
        processes: one an outcome.
        ref_point: `m`, what counts is above it.
        baseline: `k x d`, in the problem's bounds.
        samples: how many draws, `S`.
        seed: of them.
    """

    def __init__(self, processes: Sequence[GP], ref_point: Tensor, baseline: Tensor, samples: int, seed: int) -> None:
        super().__init__(processes)
        self.ref_point = ref_point
        self.baseline = baseline
        self.normal = joint_draws(len(processes), samples, seed)
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Make points, `p x d`, part of the baseline besides its own."""
        super().set_X_pending(X_pending)
        points = self.baseline if X_pending is None else torch.cat([self.baseline, X_pending])
        z = self.normal(len(points))
        self.known = [KnownDraws(process, points, one) for process, one in zip(self.processes, z, strict=True)]
        fronts = torch.stack([known.values.mT for known in self.known], -1)
        self.integrand = log_hypervolume_improvement(cells_between(*free_cells(self.ref_point, fronts)), TAU_MAX_NOISY)

    def draws(self, X: Tensor) -> list[Draws]:
        """Return draws of each outcome at `b x q x d` points, each given its draw at the baseline: `b x q x S`."""
        z = self.further(X.shape[-2])
        return [known.at(X, one) for known, one in zip(self.known, z, strict=True)]

    def further(self, q: int) -> Tensor:
        """Return base samples of q points more, `m x q x S`."""
        return self.normal(len(self.known[0].points) + q)[:, -q:]


def noisy_hypervolume(
    processes: Sequence[GP], ref_point: Tensor, X: Tensor, samples: int, seed: int
) -> NoisyHypervolume:
    """Return noisy hypervolume over those of the observed points X, `n x d`, that may be on the front."""
    return NoisyHypervolume(processes, ref_point, X[may_be_on_front(processes, ref_point, X, seed)], samples, seed)


def may_be_on_front(processes: Sequence[GP], ref_point: Tensor, X: Tensor, seed: int) -> Tensor:
    """Return which of the points X, `n x d`, are on the front of f in some of many draws: BoTorch's rule.

    What is dominated by a point that counts for nothing counts for nothing itself: points that are never above the
    reference point are left out before points are compared, which takes most of the time in BoTorch.
    """
    z = joint_draws(len(processes), PRUNING, seed)(len(X))
    f = torch.stack(
        [draws_at(process, X.unsqueeze(0), one)[0][0].mT for process, one in zip(processes, z, strict=True)], -1
    )
    above = (f > ref_point).all(-1)
    kept = above.any(0)
    kept[kept.clone()] = (is_non_dominated(f[:, kept], deduplicate=False) & above[:, kept]).any(0)
    return kept

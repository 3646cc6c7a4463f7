"""Expected hypervolume improvement of batches under independent GPs, with hand-written gradients.

Values equal BoTorch's at the same base samples; automatic differentiation takes many times as long.
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
from plumbline.core.units import usual_unit
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.process import GP
from plumbline.spaces.with_gradient import Differentiated

TAU_MAX_NOISY = 1e-3
"""Width of the smooth minima over noisy fronts; as in BoTorch."""


def joint_draws(outcomes: int, samples: int, seed: int) -> Callable[[int], Tensor]:
    """Return a sampler: k -> base samples of several outcomes at k points, `m x k x S`, the same at every call.

    BoTorch's sampler with the same seed assigns the same samples to outcomes and points.
    """
    normal = normal_draws(samples, seed)
    return lambda k: normal(k * outcomes).unflatten(0, (k, outcomes)).transpose(0, 1)


class OutcomesAcquisition(Differentiated):
    """An acquisition function of joint draws of several outcomes; subclasses define the draws.

    Attributes:
        processes: a GP per outcome, m of them.
        units: units of the outcomes in the integrand, `m`, in which smooth minima are as narrow for each.
        integrand: integrand of the acquisition function.
    """

    integrand: OfOutcomes

    def __init__(self, processes: Sequence[GP]) -> None:
        super().__init__(ProcessModel(*processes))
        self.processes = processes
        self.units = torch.from_numpy(usual_unit([process.standardisation.scale for process in processes]))

    @abstractmethod
    def draws(self, X: Tensor) -> list[Draws]:
        """Return draws of each outcome at `b x q x d` points, possibly followed by further points."""

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the acquisition values of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""
        draws, vjps = zip(*self.draws(X), strict=True)
        value, derivatives = self._of_draws(draws)
        parts = [vjp(grad_f / unit) for vjp, grad_f, unit in zip(vjps, derivatives(), self.units, strict=True)]
        return value, torch.stack(parts).sum(0)[:, : X.shape[-2]]

    def values(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `b x q x d` points: `b`."""
        return self._of_draws([f for f, _ in self.draws(X)])[0]

    def _of_draws(self, draws: Sequence[Tensor]) -> tuple[Tensor, Callable[[], Tensor]]:
        """Return acquisition values, in the outcomes' own units, and derivatives per unit, for `b x q x S` draws."""
        value, derivatives = self.integrand(torch.stack([f / unit for f, unit in zip(draws, self.units, strict=True)]))
        return value + self.units.log().sum(), derivatives

    def improvement_over(self, ref_point: Tensor, Y: Tensor, width: float) -> OfOutcomes:
        """Return the integrand over the front of Y, `n x m` or `S x n x m`; `width` is that of smooth minima."""
        cells = cells_between(*free_cells(ref_point / self.units, Y / self.units))
        return log_hypervolume_improvement(cells, width)


class ExpectedHypervolume(OutcomesAcquisition):
    """The log expected hypervolume that a batch and the pending points add to the front of the observations.

    It is BoTorch's `qLogExpectedHypervolumeImprovement`; Daulton et al. (2020), Ament et al. (2023).

    Args:
        processes: a GP per outcome.
        ref_point: `m`, the reference point.
        Y: `n x m` observations.
        samples: number of draws, `S`.
        seed: seed of the draws.
    """

    def __init__(self, processes: Sequence[GP], ref_point: Tensor, Y: Tensor, samples: int, seed: int) -> None:
        super().__init__(processes)
        self.normal = joint_draws(len(processes), samples, seed)
        self.integrand = self.improvement_over(ref_point, Y, TAU_MAX)
        self.set_X_pending(None)

    def draws(self, X: Tensor) -> list[Draws]:
        """Return draws of each outcome at `b x q x d` points and at the p pending points, `b x (q + p) x S`."""
        X = self.with_pending(X)
        return [draws_at(process, X, z) for process, z in zip(self.processes, self.normal(X.shape[-2]), strict=True)]


class NoisyHypervolume(OutcomesAcquisition):
    """The log expected hypervolume that a batch adds to the front of f at observed points, where f is drawn too.

    Draws at the observed points, the baseline, and their fronts are fixed; pending points join the baseline. It is
    BoTorch's `qLogNoisyExpectedHypervolumeImprovement`; Daulton et al. (2021), Ament et al. (2023).

    Args:
        processes: a GP per outcome.
        ref_point: `m`, the reference point.
        baseline: `k x d`, in the problem's bounds.
        samples: number of draws, `S`.
        seed: seed of the draws.
    """

    def __init__(self, processes: Sequence[GP], ref_point: Tensor, baseline: Tensor, samples: int, seed: int) -> None:
        super().__init__(processes)
        self.ref_point = ref_point
        self.baseline = baseline
        self.normal = joint_draws(len(processes), samples, seed)
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Add pending points, `p x d`, to the baseline."""
        super().set_X_pending(X_pending)
        points = self.baseline if X_pending is None else torch.cat([self.baseline, X_pending])
        z = self.normal(len(points))
        self.known = [KnownDraws(process, points, one) for process, one in zip(self.processes, z, strict=True)]
        fronts = torch.stack([known.values.mT for known in self.known], -1)
        self.integrand = self.improvement_over(self.ref_point, fronts, TAU_MAX_NOISY)

    def draws(self, X: Tensor) -> list[Draws]:
        """Return draws of each outcome at `b x q x d` points, conditional on the baseline's draws: `b x q x S`."""
        z = self.further(X.shape[-2])
        return [known.at(X, one) for known, one in zip(self.known, z, strict=True)]

    def further(self, q: int) -> Tensor:
        """Return the base samples of q further points, `m x q x S`."""
        return self.normal(len(self.known[0].points) + q)[:, -q:]


def noisy_hypervolume(
    processes: Sequence[GP], ref_point: Tensor, X: Tensor, samples: int, seed: int
) -> NoisyHypervolume:
    """Return noisy expected hypervolume improvement over the points among X, `n x d`, that may be on the front."""
    return NoisyHypervolume(processes, ref_point, X[may_be_on_front(processes, ref_point, X, seed)], samples, seed)


def may_be_on_front(processes: Sequence[GP], ref_point: Tensor, X: Tensor, seed: int) -> Tensor:
    """Return a mask of the points X, `n x d`, that are on the front of f in at least one draw: BoTorch's rule.

    A point dominated by a point below the reference point is itself below it. We therefore drop points that are never
    above the reference point before the comparison of points, which takes most of the time in BoTorch.
    """
    z = joint_draws(len(processes), PRUNING, seed)(len(X))
    f = torch.stack(
        [draws_at(process, X.unsqueeze(0), one)[0][0].mT for process, one in zip(processes, z, strict=True)], -1
    )
    above = (f > ref_point).all(-1)
    mask = above.any(0)
    mask[mask.clone()] = (is_non_dominated(f[:, mask], deduplicate=False) & above[:, mask]).any(0)
    return mask

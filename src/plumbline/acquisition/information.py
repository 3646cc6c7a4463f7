"""Information about the optimum: BoTorch's entropy searches of an exact process, given draws of its optimum."""

from collections.abc import Callable

import torch
from botorch.acquisition import AcquisitionFunction, qMaxValueEntropy
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from botorch.models import SingleTaskGP
from torch import Tensor

from plumbline.acquisition.paths import Peaks
from plumbline.models.exact_gpytorch import unit_model
from plumbline.models.exact_process import ExactProcess

ALIKE = 1e-6
"""Draws that differ by less than this, in the unit cube or in standard deviations of the observations, are one."""

Information = Callable[[SingleTaskGP, Peaks, int], AcquisitionFunction]
"""Maps a model in the unit cube with standardised observations, draws of its optimum in the same units, and a number of
draws of an observation, to an acquisition function there."""


class InUnitCube(AcquisitionFunction):
    """An acquisition function of BoTorch's that sees points in the unit cube, and observations standardised.

    Its constants, floors of variances and the like, are made for these units, and some of its functions leave input
    transforms out of account. A gradient that is no number, as predictive entropy search may have where its value is
    one, is zero: a climb ends there.

    Args:
        process: of the units.
        inner: the function in the unit cube.

    Attributes:
        lost: how many gradients were no numbers.
    """

    def __init__(self, process: ExactProcess, inner: AcquisitionFunction) -> None:
        super().__init__(process.model)
        self.units = process.units
        self.inner = inner
        self.lost = 0

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Tell the inner function of pending points, `p x d` in the problem's bounds."""
        super().set_X_pending(X_pending)
        self.inner.set_X_pending(None if X_pending is None else self.units.inputs(X_pending))

    def forward(self, X: Tensor) -> Tensor:
        """Return the values at `batch_shape x q x d` points in the problem's bounds: `batch_shape`."""
        U = self.units.inputs(X)
        if U.requires_grad:
            U.register_hook(self._without_lost)
        value: Tensor = self.inner(U)
        return value

    def _without_lost(self, gradient: Tensor) -> Tensor:
        lost = ~torch.isfinite(gradient).all(-1, keepdim=True).all(-2, keepdim=True)
        self.lost += int(lost.sum())
        return gradient.masked_fill(lost, 0.0)


class KnownMaxima(qMaxValueEntropy):
    """Max-value entropy search given draws of the greatest value: BoTorch draws them from points of a finite set.

    Args:
        model: in the unit cube.
        maxima: `P`, draws of the greatest value.
        samples: draws of an observation.
    """

    def __init__(self, model: SingleTaskGP, maxima: Tensor, samples: int) -> None:
        self.maxima = maxima.unsqueeze(-1)
        super().__init__(model, model.train_inputs[0], num_mv_samples=len(maxima), num_y_samples=samples)

    def _sample_max_values(self, num_samples: int, X_pending: Tensor | None = None) -> None:
        self.posterior_max_values = self.maxima


def max_value_entropy(model: SingleTaskGP, peaks: Peaks, samples: int) -> AcquisitionFunction:
    """Return the information about `f*`; Wang & Jegelka (2017), with noise as in Takeno et al. (2020)."""
    return KnownMaxima(model, peaks.f, samples)


def joint_entropy(model: SingleTaskGP, peaks: Peaks, samples: int) -> AcquisitionFunction:
    """Return a lower bound on the information about `(x*, f*)`; Hvarfner et al. (2022), Tu et al. (2022)."""
    return qJointEntropySearch(model, peaks.X, peaks.f.unsqueeze(-1))


def predictive_entropy(model: SingleTaskGP, peaks: Peaks, samples: int) -> AcquisitionFunction:
    """Return the information about `x*` by expectation propagation; Hernandez-Lobato et al. (2014)."""
    return qPredictiveEntropySearch(model, peaks.X)


def informed(process: ExactProcess, peaks: Peaks, information: Information, samples: int) -> InUnitCube:
    """Return an entropy search in the problem's bounds, given draws of the optimum there."""
    return InUnitCube(process, information(unit_model(process), standardised(process, peaks), samples))


def standardised(process: ExactProcess, peaks: Peaks) -> Peaks:
    """Return draws of the optimum in the unit cube, with standardised values."""
    return Peaks(process.units.inputs(peaks.X), process.units.outputs(peaks.f))


def degenerate(draws: Tensor) -> bool:
    """Return whether draws of what is to be learnt, `P x k`, are no numbers, or all the same: there is nothing."""
    spread = draws.amax(0) - draws.amin(0)
    return not bool(torch.isfinite(draws).all()) or bool((spread < ALIKE).all())

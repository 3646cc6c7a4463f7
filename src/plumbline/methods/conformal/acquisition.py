"""Acquisition functions under the conformal Bayes posterior; CBO, sections 4.2 and B.3 to B.7."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import concatenate_pending_points
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.methods.conformal.augmented import Augmented, Cotangents, augment_with_vjp
from plumbline.methods.conformal.baseline import BaselineDraws
from plumbline.methods.conformal.density_ratio import (
    LogRatio,
    RatioClassifier,
    no_shift,
    weights_at,
    weights_with_vjp,
)
from plumbline.methods.conformal.expectation import Labelled, expectation, greatest_expectation
from plumbline.methods.conformal.masses import relaxed_mass_with_vjp
from plumbline.methods.conformal.scores import powers, powers_vjp, quadratics_with_vjp
from plumbline.methods.conformal.single_points import FixedLabels, JointLabels, Refits, SinglePoints
from plumbline.methods.conformal.small_matrices import inner, times, times_transpose
from plumbline.models.algebra import cholesky_vjp
from plumbline.models.gp.process import GP
from plumbline.spaces.with_gradient import Differentiated


class ConformalPosteriorOptions(Options):
    """Options of the conformal posterior.

    Attributes:
        candidates: labels a batch of points, `k`.
        tau: strength of the sigmoid relaxation; acquisitions need it for their gradients, reported sets are exact.
        maximum: whether the maximum over a batch's points is inside the expectation over labels, as the text defines
            it, or outside: the greatest expectation of a single point, as in CBO's code.
        labels_in_gradient: whether candidate labels move with the points, as `mean + L z` with fixed `z`, or are
            constants in the gradient, as is their density: CBO's code draws them without gradients (`helpers.py`,
            `construct_conformal_bands`). Values are the same.
    """

    candidates: PositiveInt = 256
    tau: PositiveFloat = 1e-2
    maximum: Literal["inside", "outside"] = "inside"
    labels_in_gradient: Literal["moving", "constant"] = "moving"


@dataclass(frozen=True)
class Integrand:
    """The integrand of an acquisition function: the value of a batch of points under known `f`.

    Attributes:
        value: maps `f`, `b x k x q x m`, and the posterior mean, `b x 1 x q x m`, to `b x k`; standardised units. Its
            gradient is automatic, or by hand where it has a `with_vjp`.
        optimistic: candidate labels lie in the upper half, `y >= mean`, as in conformal UCB.
        spread: factor of the standard deviation of `f` given a label.
        baseline: draws of `f` at the data, for integrands with an uncertain baseline (NEI, NEHVI).
    """

    value: Callable[[Tensor, Tensor], Tensor]
    optimistic: bool = False
    spread: float = 1.0
    baseline: BaselineDraws | None = None


DrawsVJP = Callable[[Tensor | None, Tensor, Tensor], Cotangents]
"""Maps gradients in whitened labels (None where these are fixed), in `f` (both `b x k x q`) and in the predictive mean
(`b x q`) to the gradients in the augmented system."""


@dataclass(frozen=True)
class Draws:
    """Candidate labels and draws of `f` given each.

    Attributes:
        z: whitened labels, `b x k x q x m`, or `1 x k x q x m` where they are fixed: the same at all points.
        f: `b x k x q x m`.
        monomials: `powers` of the labels, `b x 1 x k x p`, or `k x p` where they are fixed.
        log_density: log density of the labels up to a constant, `b x k` or `1 x k`.
        fixed: whether the labels are fixed.
        vjps: vector-Jacobian products, one an outcome.
    """

    z: Tensor
    f: Tensor
    monomials: Tensor
    log_density: Tensor
    fixed: bool
    vjps: Sequence[DrawsVJP]

    def vjp(self, grad_z: Tensor | None, grad_f: Tensor, grad_mean: Tensor) -> list[Cotangents]:
        """Map gradients in labels, in `f` and in the mean (`b x 1 x q x m`) to gradients in the systems."""
        return [
            vjp(None if grad_z is None else grad_z[..., i], grad_f[..., i], grad_mean[:, 0, :, i])
            for i, vjp in enumerate(self.vjps)
        ]


class ConformalAcquisition(Differentiated):
    """`(1 - alpha) u'v + alpha u'v'`: the expectation of an integrand under `p_alpha(f | D)`; CBO, eq. 7.

    Candidate labels are quasi-random draws of the predictive distribution with fixed base samples: the value is a
    deterministic, differentiable function of the points.
    """

    def __init__(
        self,
        processes: Sequence[GP],
        integrand: Integrand,
        log_ratio: LogRatio,
        alpha: float,
        options: ConformalPosteriorOptions,
        seed: int,
        masked: bool = True,
    ) -> None:
        """Make the acquisition.

        Args:
            processes: fitted, one an outcome, on the same data.
            integrand: function whose expectation is taken.
            log_ratio: log density ratio of points in the models' unit cube.
            alpha: miscoverage of the sets.
            options: options of the posterior.
            seed: seed of the base samples.
            masked: whether the value is zero at points whose set is the whole line; CBO, B.7.

        Raises:
            PlumblineError: if labels are constant and draws at the data have no incumbents, as of several outcomes.
        """
        baseline = integrand.baseline
        if options.labels_in_gradient == "constant" and baseline is not None and baseline.incumbents is None:
            raise PlumblineError("`labels_in_gradient: constant` needs the incumbents of draws at the data")
        super().__init__(model=processes[0].model)
        self.X_pending = None
        self.processes = list(processes)
        self.integrand = integrand
        self.log_ratio = log_ratio
        self.alpha = alpha
        self.options = options
        self.seed = seed
        self.masked = masked
        # Shared by copies under other density ratios.
        self._base: dict[int, tuple[Tensor, Tensor]] = {}
        self._fixed: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def constant(self) -> bool:
        """Whether candidate labels are constants in the gradient."""
        return self.options.labels_in_gradient == "constant"

    def under(self, log_ratio: LogRatio) -> "ConformalAcquisition":
        """Return the same acquisition under another density ratio."""
        other = copy(self)
        other.log_ratio = log_ratio
        return other

    def unmasked(self) -> "ConformalAcquisition":
        """Return the same acquisition without the mask of points whose sets are the whole line."""
        other = copy(self)
        other.masked = False
        return other

    @concatenate_pending_points
    def forward(self, X: Tensor) -> Tensor:
        """Return the conformal acquisition value of `batch_shape x q x d` points, in the problem's bounds."""
        return super().forward(X)

    def values(self, X: Tensor) -> Tensor:
        """Return the values of `b x q x d` points in the problem's bounds: `b`."""
        return self.values_in_cube(self.processes[0].standardisation.inputs(X))

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of `b x q x d` points in the problem's bounds, `b`, and their gradients, `b x q x d`."""
        standardisation = self.processes[0].standardisation
        value, gradient = self.value_and_gradient_in_cube(standardisation.inputs(X))
        return value, gradient / standardisation.width

    def values_in_cube(self, U: Tensor) -> Tensor:
        """Return the conformal acquisition value of `b x q x d` points of the unit cube: `b`."""
        if U.shape[-2] == 1 and (alone := self.single_points()) is not None:
            return torch.from_numpy(alone.values(U.detach().squeeze(-2).numpy()[None])[0])
        with torch.inference_mode():
            value, _ = self._with_vjp(U, record=False)
        return value.clone()

    def value_and_gradient_in_cube(self, U: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values at `b x q x d` points of the unit cube, `b`, and their gradients, `b x q x d`.

        Hundreds of small operations take a fifth less time in inference mode than under `no_grad`. The results are
        copied, since autograd rejects tensors made in inference mode.
        """
        if U.shape[-2] == 1 and (alone := self.single_points()) is not None:
            values, gradients = alone.value_and_gradient(U.detach().squeeze(-2).numpy()[None])
            return torch.from_numpy(values[0]), torch.from_numpy(gradients[0]).unsqueeze(-2)
        with torch.inference_mode():
            value, vjp = self._with_vjp(U, record=True)
            gradient = vjp()
        return value.clone(), gradient.clone()

    def single_points(self) -> SinglePoints | None:
        """Return the same function of single points in arrays; None if there are several outcomes, or a part that has
        no such form."""
        if self._of_single_points is None:
            return None
        if isinstance(self.log_ratio, RatioClassifier):
            return replace(self._of_single_points, masked=self.masked, ratios=self.log_ratio.arrays)
        return replace(self._of_single_points, masked=self.masked) if self.log_ratio is no_shift else None

    @cached_property
    def _of_single_points(self) -> SinglePoints | None:
        """The function of single points in arrays, without a shift."""
        form = getattr(self.integrand.value, "at_single_points", None)
        if len(self.processes) > 1 or form is None:
            return None
        process, baseline = self.processes[0], self.integrand.baseline
        z, for_f = (samples.flatten().numpy() for samples in self.base_samples(1))
        labels: FixedLabels | JointLabels
        if baseline is not None:
            labels = JointLabels.of(baseline, z, for_f)
        else:
            labels = FixedLabels.of(np.abs(z) if self.integrand.optimistic else z, for_f, self.integrand.spread)
        heights, parameters = form
        alpha = np.full((1, 1, 1), self.alpha)
        return SinglePoints(
            Refits.of(process),
            process.U.numpy()[None],
            labels,
            heights,
            parameters,
            alpha,
            self.options.tau,
            constant=self.constant,
        )

    def _with_vjp(self, U: Tensor, record: bool) -> tuple[Tensor, Callable[[], Tensor]]:
        """Return the values and a function that returns their gradients, stage by stage from the last to the first."""
        alpha, tau = self.alpha, self.options.tau
        systems, vjp_systems = zip(*(augment_with_vjp(process, U) for process in self.processes), strict=True)
        draws = self.draw(systems)
        mean = torch.stack([system.mean for system in systems], dim=-1).unsqueeze(1)
        coefficients, vjp_coefficients = quadratics_with_vjp(systems)
        weights, vjp_ratio = weights_with_vjp(self.log_ratio, self.processes[0].U, U, record)
        mass, through_mass = relaxed_mass_with_vjp(coefficients, weights, draws.monomials, tau)
        bounded = ((alpha - through_mass.own) / tau).squeeze(-1)
        labelled = Labelled(
            f=draws.f,
            mean=mean,
            accept=(mass - alpha) / tau,
            log_density=draws.log_density,
            bounded=bounded if self.masked else torch.full_like(bounded, torch.inf),
        )
        integrate = greatest_expectation if self.options.maximum == "outside" else expectation
        value, vjp_labelled = integrate(self.integrand.value, labelled, alpha, record)

        def vjp() -> Tensor:
            to = vjp_labelled(torch.ones_like(value))
            grad_mass = to.accept / tau
            grad_z = None
            if self.constant or not draws.fixed:
                grad_z = powers_vjp(draws.z, through_mass.grad_monomials(grad_mass).sum(dim=1))
            if grad_z is not None and not self.constant:
                grad_z = grad_z - to.log_density[..., None, None] * draws.z
            grad_slopes = vjp_coefficients(through_mass.grad_coefficients(grad_mass))
            grad_U = vjp_ratio(through_mass.grad_log_ratio(grad_mass, -to.bounded.unsqueeze(-1) / tau))
            cotangents = draws.vjp(grad_z, to.f, to.mean)
            for vjp_system, grad_system, grad_slope in zip(vjp_systems, cotangents, grad_slopes, strict=True):
                grad_U = grad_U + vjp_system(grad_system, grad_slope)
            return grad_U

        return value, vjp

    def draw(self, systems: Sequence[Augmented]) -> Draws:
        """Return candidate labels and draws of `f` given each at the test points of augmented systems."""
        q, baseline = systems[0].mean.shape[-1], self.integrand.baseline
        for_label, for_f = self.base_samples(q)
        draw = self._draw if baseline is None else baseline.draw
        parts = [draw(i, system, for_label[..., i], for_f[..., i], self.constant) for i, system in enumerate(systems)]
        labels, functions, vjps = zip(*parts, strict=True)
        z, f = torch.stack(labels, dim=-1), torch.stack(functions, dim=-1)
        fixed = baseline is None and not (self.integrand.optimistic and q > 1)
        if not fixed:
            return Draws(z, f, powers(z).unsqueeze(1), _log_density(z), fixed, vjps)
        if q not in self._fixed:
            self._fixed[q] = (powers(z).squeeze(0), _log_density(z))
        return Draws(z, f, *self._fixed[q], fixed, vjps)

    def _draw(
        self, outcome: int, system: Augmented, for_label: Tensor, for_f: Tensor, constant: bool
    ) -> tuple[Tensor, Tensor, DrawsVJP]:
        """Return labels of one outcome, `f = mean + (L - P) z + spread F for_f` given each, and their VJP.

        `P` is the slope of the test points' own residuals and `F F' = s2n - P P'`. Arguments and returns are those of
        `BaselineDraws.draw`.
        """
        z = for_label.unsqueeze(0)
        if self.integrand.optimistic:
            z, vjp_label = _upper_half(system, z)
        root, spread = system.function_root(), self.integrand.spread
        f = torch.add(system.function_mean(z), times_transpose(for_f, root), alpha=spread)

        def vjp(grad_z: Tensor | None, grad_f: Tensor, grad_mean: Tensor) -> Cotangents:
            grad_gain = inner(grad_f, z)
            grad_square = cholesky_vjp(root, spread * inner(grad_f, for_f))
            grad_own_slope = -torch.add(grad_gain, times(grad_square, system.own_slope), alpha=2)
            cotangents = Cotangents(grad_mean + grad_f.sum(dim=1), grad_gain, grad_own_slope)
            if grad_z is None:
                return cotangents
            grad_z = grad_z + grad_f @ (system.root - system.own_slope)
            if constant:
                by_mean, by_root = _whitened_vjp(system, z, grad_z)
                return cotangents._replace(grad_mean=cotangents.grad_mean + by_mean, grad_root=grad_gain + by_root)
            grad_root, grad_dual_root = vjp_label(grad_z)
            return cotangents._replace(grad_root=grad_gain + grad_root, grad_dual_root=grad_dual_root)

        return z, f, vjp

    @torch.inference_mode(mode=False)  # the samples are cached, and autograd may need them
    def base_samples(self, q: int) -> tuple[Tensor, Tensor]:
        """Standard normal draws for labels and for `f`, each `k x q x m`; the same at every call."""
        if q not in self._base:
            m, k = len(self.processes), self.options.candidates
            draws = draw_sobol_normal_samples(2 * q * m, k, seed=self.seed, dtype=torch.float64)
            self._base[q] = (draws[:, : q * m].reshape(k, q, m), draws[:, q * m :].reshape(k, q, m))
        return self._base[q]

    def weights(self, U: Tensor) -> Tensor:
        """Return the importance weights at `b x q x d` points of the unit cube: `b x q x (n + 1)`."""
        return weights_at(self.log_ratio, self.processes[0].U, U)


def _log_density(z: Tensor) -> Tensor:
    return -0.5 * z.square().sum(dim=(-2, -1))


def _whitened_vjp(system: Augmented, z: Tensor, grad_z: Tensor) -> tuple[Tensor, Tensor]:
    """Map a gradient in `z = L^-1 (y - mean)`, of constant labels `y`, to those in the mean and in `L`.

    Args:
        system: augmented system.
        z: `b x k x q`, or `1 x k x q`.
        grad_z: `b x k x q`.

    Returns:
        `b x q` and `b x q x q`, of which only the lower triangle matters.
    """
    grad_label = times_transpose(grad_z, system.dual_root)
    return -grad_label.sum(dim=1), -inner(grad_label, z)


def _upper_half(system: Augmented, z: Tensor) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor]]]:
    """Return whitened labels, each reflected to above its mean, and the vector-Jacobian product in `L` and `L^-T`.

    The labels are `|z L'| L^-T`: at q = 1, the absolute value.
    """
    if z.shape[-1] == 1:
        return z.abs(), lambda grad_z: (torch.zeros_like(system.root), torch.zeros_like(system.root))
    away = z @ system.root.mT
    height = away.abs()

    def vjp(grad_z: Tensor) -> tuple[Tensor, Tensor]:
        grad_away = (grad_z @ system.dual_root.mT) * away.sign()
        return inner(grad_away, z), inner(height, grad_z)

    return height @ system.dual_root, vjp

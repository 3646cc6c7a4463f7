"""Online conformal thresholds, one for all inputs or localised by a kernel; LOCBO, sections III-B and IV-B."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.numbers import Array
from plumbline.core.options import Options

FLOOR = 1e-6
"""Posteriors clip thresholds to [FLOOR, 1]: at 0 the set is the whole line, over which no law is uniform; at 1 it is
the predictive mean alone, and above 1 it is empty. Coverage is decided by unclipped thresholds."""


class OnlineOptions(Options):
    """Options of the online threshold.

    Attributes:
        eta0: first learning rate; that of round t is `eta0 t^-decay`. At 0 thresholds never move.
        decay: w in the paper.
        counted_from: value of t in the first round; 2 in the published code.
        forgetting: lambda in the paper, the decay rate of the localised part; `eta_t forgetting < 1` in every round.
        kappa: height of the kernel; 0 for a threshold that is the same everywhere.
        lengthscale: l of the kernel, in the units of the inputs; `inf` for a flat kernel.
    """

    eta0: NonNegativeFloat = 5e-3
    decay: NonNegativeFloat = 0.05
    counted_from: PositiveInt = 1
    forgetting: NonNegativeFloat = 4e-3
    kappa: NonNegativeFloat = 0.0
    lengthscale: PositiveFloat = Field(default=math.inf, allow_inf_nan=True)

    def learning_rate(self, t: int) -> float:
        """Return the learning rate of round `t`, the first being 1.

        Raises:
            PlumblineError: the rate violates the condition of Lemma 1.
        """
        eta = self.eta0 * (t - 1 + self.counted_from) ** -self.decay
        if eta * self.forgetting >= 1:
            raise PlumblineError(
                f"learning rate {eta:.3g} of round {t} is not below 1 / forgetting = {1 / self.forgetting:.3g} "
                "(Lemma 1 of LOCBO): lower `eta0` or `forgetting`"
            )
        return eta


WithVjp = tuple[Array, Callable[[Array], Array]]
"""Numbers, and their vector-Jacobian product."""


def clipped_with_vjp(thresholds: Array) -> WithVjp:
    """Clip thresholds to [FLOOR, 1], with the vector-Jacobian product, which is zero in those outside."""
    clipped = thresholds.clip(FLOOR, 1.0)
    return clipped, lambda grad_clipped: grad_clipped * (clipped == thresholds)


def as_they_are(thresholds: Array) -> WithVjp:
    """Return thresholds as they are."""
    return thresholds, lambda grad: grad


@dataclass(frozen=True)
class ThresholdArrays:
    """What m functions need of their M thresholds each, after t - 1 rounds.

    Attributes:
        options: options of the recursions, the same for all.
        low, width: origin and unit of the kernel's inputs, `m x 1 x d`.
        constants: c_t, `m x 1 x M`.
        centres: the inputs so far in lengthscales, `m x (t - 1) x d`.
        norms: their squared norms, `m x 1 x (t - 1)`.
        across: `2 centres'`, `m x d x (t - 1)`.
        coefficients: the steps there, decayed since, `m x (t - 1) x M`.
    """

    options: OnlineOptions
    low: Array
    width: Array
    constants: Array
    centres: Array
    norms: Array
    across: Array
    coefficients: Array

    @property
    def local(self) -> bool:
        """Whether thresholds depend on inputs."""
        return self.options.kappa > 0 and self.centres.shape[1] > 0

    def only(self, rows: Sequence[int]) -> "ThresholdArrays":
        """Return the thresholds of the functions with numbers `rows`."""
        return ThresholdArrays(self.options, *(part[rows] for part in self._parts()))

    def unclipped_with_vjp(self, X: Array) -> WithVjp:
        """Return the thresholds of eq. 23 at points of each function, `m x b x d`: `m x b x M`."""
        if not self.local:
            return np.repeat(self.constants, X.shape[1], 1), lambda _: np.zeros_like(X)
        A = (X - self.low) / self.width / self.options.lengthscale
        # -|a - c|^2 by one product for all pairs: the squared distance, unlike the distance, loses no digits this way.
        exponent = A @ self.across
        exponent -= self.norms
        exponent -= np.square(A).sum(-1, keepdims=True)
        kernel = np.exp(exponent, out=exponent)

        def vjp(grad_thresholds: Array) -> Array:
            weights = grad_thresholds @ self.coefficients.mT
            weights *= kernel
            grad_A = weights @ self.centres - weights.sum(-1, keepdims=True) * A
            return 2 * self.options.kappa / self.options.lengthscale * grad_A / self.width

        return self.constants + self.options.kappa * (kernel @ self.coefficients), vjp

    def _parts(self) -> list[Array]:
        return [self.low, self.width, self.constants, self.centres, self.norms, self.across, self.coefficients]


def thresholds_together(parts: Sequence[ThresholdArrays]) -> ThresholdArrays:
    """Return the thresholds of all functions, which have had as many rounds and have the same options."""
    columns = zip(*(part._parts() for part in parts), strict=True)
    return ThresholdArrays(parts[0].options, *(np.concatenate(column) for column in columns))


@dataclass(frozen=True)
class OnlineThreshold:
    """Several thresholds `c_t + sum_i coefficient_i k(x_i, x)`, the kernel sum of the recursions in eq. 23 and 27.

    Each of the `M` thresholds tracks an event with a target frequency: it rises by the learning rate times the target
    minus the event. LOCBO has one, whose event is a miss of its set (eq. 27). OCBO has one a quantile level, whose
    event is an observation below the quantile (eq. 21).

    Attributes:
        options: options of the recursion.
        targets: `M`; also the thresholds before the first round.
        constants: `M`, c_t.
        centres: `(t - 1) x d`, the inputs so far.
        coefficients: `(t - 1) x M`, the steps there, decayed since.
    """

    options: OnlineOptions
    targets: Tensor
    constants: Tensor
    centres: Tensor
    coefficients: Tensor

    @classmethod
    def start(cls, options: OnlineOptions, targets: Tensor, dim: int) -> "OnlineThreshold":
        """Return the thresholds before the first round: their targets everywhere."""
        return cls(options, targets, targets, targets.new_empty(0, dim), targets.new_empty(0, len(targets)))

    def update(self, x: Tensor, events: Tensor) -> "OnlineThreshold":
        """Return the thresholds after a round; eq. 27.

        Args:
            x: `d`, the observed point.
            events: `M`, 1 where the event of a threshold happened, else 0.

        Raises:
            PlumblineError: the condition of Lemma 1 is violated.
        """
        eta = self.options.learning_rate(len(self.centres) + 1)
        step = eta * (self.targets - events)
        decayed = self.coefficients * (1 - self.options.forgetting * eta)
        return replace(
            self,
            constants=self.constants + step,
            centres=torch.cat([self.centres, x.detach().unsqueeze(0)]),
            coefficients=torch.cat([decayed, step.unsqueeze(0)]),
        )

    @cached_property
    def arrays(self) -> ThresholdArrays:
        """The thresholds as arrays, with m = 1, in the units of the inputs."""
        centres = (self.centres / self.options.lengthscale).numpy()
        return ThresholdArrays(
            self.options,
            np.zeros((1, 1, centres.shape[-1])),
            np.ones((1, 1, centres.shape[-1])),
            self.constants.numpy()[None, None],
            centres[None],
            np.square(centres).sum(-1)[None, None],
            np.ascontiguousarray(2.0 * centres.T)[None],
            self.coefficients.numpy()[None],
        )

    def unclipped(self, X: Tensor) -> Tensor:
        """Return the thresholds of eq. 23 at `... x d`: `... x M`; they may leave (0, 1]."""
        thresholds, _ = self.arrays.unclipped_with_vjp(X.reshape(1, -1, X.shape[-1]).numpy())
        return torch.from_numpy(thresholds).reshape(*X.shape[:-1], -1)

    def __call__(self, X: Tensor) -> Tensor:
        """Return the thresholds at `... x d`, clipped to [FLOOR, 1]: `... x M`."""
        return self.unclipped(X).clamp(FLOOR, 1.0)

    def state(self) -> dict[str, Tensor]:
        """Return the state that changes from round to round."""
        return {"constants": self.constants, "centres": self.centres, "coefficients": self.coefficients}

    def restored(self, state: Mapping[str, Any]) -> "OnlineThreshold":
        """Return the thresholds with the state that `state` returned."""
        return replace(self, **state)


SYMMETRY = 0.5
"""b of eq. 33 for noise with median zero: the least probability of noise of either sign."""


@dataclass(frozen=True)
class CoverageBound:
    """The bound `alpha + beta / sqrt(T) + kappa` on the share of misses in `T` rounds; eq. 32.

    The lemma holds for learning rates of order `t^-1/2`; those of the paper's experiments are of order `t^-0.05`, which
    it does not cover. It also requires a kernel that falls to zero: it covers neither a flat kernel nor none, for which
    `rho` is zero. The number is computed in these cases too.

    Attributes:
        alpha: target miscoverage.
        kappa: the kernel's greatest value.
        rho: the kernel's Lipschitz constant, in the distance of inputs.
        diameter: D, the greatest norm of an input.
        eta: the first learning rate.
        forgetting: lambda.
    """

    alpha: float
    kappa: float
    rho: float
    diameter: float
    eta: float
    forgetting: float

    @classmethod
    def of(cls, options: OnlineOptions, alpha: float, bounds: Tensor) -> "CoverageBound":
        """Return the bound for a threshold on inputs in `bounds` (`2 x d`)."""
        diameter = float(torch.linalg.vector_norm(bounds.abs().amax(dim=0)))
        rho = kernel_lipschitz(options.kappa, options.lengthscale)
        return cls(alpha, options.kappa, rho, diameter, options.learning_rate(1), options.forgetting)

    @property
    def beta(self) -> float:
        """Return `2/eta + 4 sqrt(rho kappa D) / (eta lambda) + 2 (2 kappa + 1)`.

        It is infinite if thresholds never move, and if they have a falling kernel without forgetting.
        """
        if self.eta == 0:
            return math.inf
        spread = 4 * math.sqrt(self.rho * self.kappa * self.diameter)
        forgotten = self.eta * self.forgetting
        local = spread / forgotten if forgotten > 0 else (math.inf if spread > 0 else 0.0)
        return 2 / self.eta + local + 2 * (2 * self.kappa + 1)

    def of_observations(self, rounds: int) -> float:
        """Return Lemma 1's bound on the share of observations outside their sets."""
        return self.alpha + self.beta / math.sqrt(rounds) + self.kappa

    def of_function(self, rounds: int) -> float:
        """Return Lemma 2's bound on the expected share of function values outside their sets; symmetric noise."""
        return self.of_observations(rounds) / SYMMETRY


def kernel_lipschitz(kappa: float, lengthscale: float) -> float:
    """Return the greatest slope of `kappa exp(-z^2 / l^2)`, at `z = l / sqrt 2`."""
    return kappa * math.sqrt(2 / math.e) / lengthscale

"""What LOCBO's Lemmas 1 and 2 promise of the share of misses."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.calibration.online import OnlineOptions

SYMMETRY = 0.5
"""b of eq. 33 for noise with median zero: the least probability of noise of either sign."""


@dataclass(frozen=True)
class CoverageBound:
    """The bound `alpha + beta / sqrt(T) + kappa` on the share of misses in `T` rounds; eq. 32.

    The lemma is for learning rates that fall like `t^-1/2`; the paper's own experiments let them fall like `t^-0.05`,
    for which it says nothing. It also wants a kernel that falls to zero: one that is flat, or none, is outside of it
    too, and `rho` is then zero. The number is computed all the same, as the paper would have it.

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

        It is infinite where nothing is learned, and where a kernel that falls is never forgotten.
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

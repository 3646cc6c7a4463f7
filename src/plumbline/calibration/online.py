"""Online conformal thresholds, one for all inputs or localised by a kernel; LOCBO, sections III-B and IV-B."""

import math
from dataclasses import dataclass

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor

from plumbline.errors import PlumblineError
from plumbline.options import Options

FLOOR = 1e-6
"""Thresholds are kept in [FLOOR, 1]: at 0 the set would be the whole line and the posterior improper; at 1 the set is
the predictive mean alone."""


class OnlineOptions(Options):
    """Options of the online threshold.

    Attributes:
        eta0: first learning rate; that of round t is `eta0 t^-decay`.
        decay: w in the paper.
        forgetting: lambda in the paper, how fast the localised part decays; `eta_t forgetting < 1` in every round.
        kappa: height of the kernel; 0 for a threshold that is the same everywhere.
        lengthscale: l of the kernel, in the units of the inputs; `inf` for a kernel that is flat.
    """

    eta0: PositiveFloat = 5e-3
    decay: NonNegativeFloat = 0.05
    forgetting: NonNegativeFloat = 4e-3
    kappa: NonNegativeFloat = 0.0
    lengthscale: PositiveFloat = Field(default=math.inf, allow_inf_nan=True)

    def learning_rate(self, t: int) -> float:
        """Return the learning rate of round `t`, the first being 1.

        Raises:
            PlumblineError: it breaks the condition of Lemma 1.
        """
        eta = self.eta0 * t**-self.decay
        if eta * self.forgetting >= 1:
            raise PlumblineError(
                f"learning rate {eta:.3g} of round {t} is not below 1 / forgetting = {1 / self.forgetting:.3g} "
                "(Lemma 1 of LOCBO): lower `eta0` or `forgetting`"
            )
        return eta


@dataclass(frozen=True)
class OnlineThreshold:
    """`lambda_t(x) = c_t + sum_i coefficient_i k(x_i, x)`, the kernel sum that eq. 23 and 27 unroll to.

    Attributes:
        options: of the recursion.
        alpha: target miscoverage; also the threshold before the first round.
        constant: c_t.
        centres: `(t - 1) x d`, the inputs so far.
        coefficients: `t - 1`, their steps, decayed since.
    """

    options: OnlineOptions
    alpha: float
    constant: float
    centres: Tensor
    coefficients: Tensor

    @classmethod
    def start(cls, options: OnlineOptions, alpha: float, dim: int) -> "OnlineThreshold":
        """Return the threshold before the first round: alpha everywhere, the central credible set."""
        nothing = torch.empty(0, dim, dtype=torch.float64)
        return cls(options, alpha, alpha, nothing, nothing.new_empty(0))

    def update(self, x: Tensor, missed: bool) -> "OnlineThreshold":
        """Return the threshold after a round; eq. 27.

        Args:
            x: `d`, where an observation was made.
            missed: whether it lay outside the set.
        """
        eta = self.options.learning_rate(len(self.centres) + 1)
        step = eta * (self.alpha - float(missed))
        decayed = self.coefficients * (1 - self.options.forgetting * eta)
        return OnlineThreshold(
            self.options,
            self.alpha,
            self.constant + step,
            torch.cat([self.centres, x.detach().unsqueeze(0)]),
            torch.cat([decayed, decayed.new_tensor([step])]),
        )

    def unclipped(self, X: Tensor) -> Tensor:
        """Return the threshold at `... x d` by the letter of eq. 23: `...`; it may leave (0, 1]."""
        if self.options.kappa == 0 or len(self.centres) == 0:
            return X.new_full(X.shape[:-1], self.constant)
        A, C = X / self.options.lengthscale, self.centres / self.options.lengthscale
        # -|a - c|^2 with one product for all pairs; unlike a distance, its square loses no digits that way.
        exponent = torch.addmm(-C.square().sum(dim=-1), A.reshape(-1, A.shape[-1]), C.mT, alpha=2.0)
        kernel = torch.exp(exponent - A.square().sum(dim=-1).reshape(-1, 1))
        return self.constant + self.options.kappa * (kernel @ self.coefficients).reshape(X.shape[:-1])

    def __call__(self, X: Tensor) -> Tensor:
        """Return the threshold at `... x d`, kept in [FLOOR, 1]: `...`."""
        return self.unclipped(X).clamp(FLOOR, 1.0)

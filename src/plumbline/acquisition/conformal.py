"""Any reparameterisable utility under the conformal Bayes posterior; CBO, sections 4.2 and B.3 to B.7."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import concatenate_pending_points, t_batch_mode_transform
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn.functional import logsigmoid

from plumbline.acquisition.baseline import BaselineDraws
from plumbline.calibration.conformal import (
    Augmented,
    Factors,
    augment,
    conformity_mass,
    quadratics,
    times,
)
from plumbline.calibration.density_ratio import LogRatio, weights_at
from plumbline.options import Options

TINY = 1e-12
"""The log probability that all labels of a batch are accepted is kept this far from 0, where rejection has no log."""


class ConformalPosteriorOptions(Options):
    """Options of the conformal posterior.

    Attributes:
        candidates: labels a batch of points, `k`.
        tau: strength of the sigmoid relaxation; acquisitions need it for their gradients, reported sets are exact.
    """

    candidates: PositiveInt = 256
    tau: PositiveFloat = 1e-2


@dataclass(frozen=True)
class Utility:
    """What a batch of points is worth where `f` is known.

    Attributes:
        value: maps `f`, `b x k x q x m`, and the posterior mean, `b x 1 x q x m`, to `b x k`; standardised units.
        optimistic: candidate labels lie in the upper half, `y >= mean`, as in conformal UCB.
        spread: what the standard deviation of `f` given a label is multiplied by.
        baseline: draws of `f` at the data, for utilities that compare with what is not known exactly (NEI, NEHVI).
    """

    value: Callable[[Tensor, Tensor], Tensor]
    optimistic: bool = False
    spread: float = 1.0
    baseline: BaselineDraws | None = None


class ConformalAcquisition(AcquisitionFunction):
    """`(1 - alpha) u'v + alpha u'v'`: the expectation of a utility under `p_alpha(f | D)`; CBO, eq. 7.

    Candidate labels are quasi-random draws of the predictive distribution with base samples that are fixed, so that
    the value is a deterministic, differentiable function of the points.
    """

    def __init__(
        self,
        factors: Sequence[Factors],
        utility: Utility,
        log_ratio: LogRatio,
        alpha: float,
        options: ConformalPosteriorOptions,
        seed: int,
    ) -> None:
        """Make the acquisition.

        Args:
            factors: of fitted models, one an output, on the same data.
            utility: what is expected.
            log_ratio: of points in the models' unit cube.
            alpha: miscoverage of the sets.
            options: of the posterior.
            seed: of the base samples.
        """
        super().__init__(model=factors[0].model)
        self.X_pending = None
        self.factors = list(factors)
        self.utility = utility
        self.log_ratio = log_ratio
        self.alpha = alpha
        self.options = options
        self.seed = seed
        self._base: dict[int, tuple[Tensor, Tensor]] = {}

    def under(self, log_ratio: LogRatio) -> "ConformalAcquisition":
        """Return the same acquisition under another density ratio."""
        return ConformalAcquisition(self.factors, self.utility, log_ratio, self.alpha, self.options, self.seed)

    @concatenate_pending_points
    @t_batch_mode_transform()
    def forward(self, X: Tensor) -> Tensor:
        """Return the conformal acquisition value of `b x q x d` points, in the problem's bounds: `b`."""
        return self.value(self.factors[0].model.transform_inputs(X))

    def value(self, U: Tensor) -> Tensor:
        """Return the conformal acquisition value of `b x q x d` points of the unit cube: `b`."""
        systems = [augment(factors, U) for factors in self.factors]
        z, f = self.draw(U, systems)
        mean = torch.stack([system.mean for system in systems], dim=-1).unsqueeze(1)
        values = self.utility.value(f, mean)
        weights = self.weights(U)
        logits = self.logits(systems, weights, z)
        log_density = -0.5 * z.square().sum(dim=(-2, -1))
        all_inside = logsigmoid(logits).sum(dim=1)
        # For one label the log probability of rejection is that of acceptance less the logit.
        rejected = all_inside - logits.squeeze(1) if logits.shape[1] == 1 else _log_complement(all_inside)
        mixture = torch.softmax(torch.stack([all_inside - log_density, rejected]), dim=-1)
        expected = (mixture * values).sum(dim=-1)
        value = (1 - self.alpha) * expected[0] + self.alpha * expected[1]
        return value * self.in_distribution(weights)

    def draw(self, U: Tensor, systems: Sequence[Augmented]) -> tuple[Tensor, Tensor]:
        """Return whitened candidate labels and a draw of `f` given each: two `b x k x q x m`."""
        for_label, for_f = self.base_samples(U.shape[-2])
        if self.utility.baseline is not None:
            return self.utility.baseline.draw(U, systems, for_label, for_f)
        z = for_label.unsqueeze(0).expand(len(U), -1, -1, -1)
        labels, functions = [], []
        for i, system in enumerate(systems):
            label = z[..., i]
            if self.utility.optimistic:
                label = _upper_half(system, label)
            noise = times(for_f[..., i], system.function_root().mT)
            labels.append(label)
            functions.append(system.function_mean(label) + self.utility.spread * noise)
        return torch.stack(labels, dim=-1), torch.stack(functions, dim=-1)

    def base_samples(self, q: int) -> tuple[Tensor, Tensor]:
        """Return standard normal draws for labels and for `f`, each `k x q x m`; the same at every call."""
        if q not in self._base:
            m, k = len(self.factors), self.options.candidates
            draws = draw_sobol_normal_samples(2 * q * m, k, seed=self.seed, dtype=torch.float64)
            self._base[q] = (draws[:, : q * m].reshape(k, q, m), draws[:, q * m :].reshape(k, q, m))
        return self._base[q]

    def weights(self, U: Tensor) -> Tensor:
        """Return the importance weights at `b x q x d` points of the unit cube: `b x q x (n + 1)`."""
        return weights_at(self.log_ratio, self.factors[0].inputs, U)

    def logits(self, systems: Sequence[Augmented], weights: Tensor, z: Tensor) -> Tensor:
        """Return the relaxed masks before their last sigmoid, `b x q x k`."""
        mass = conformity_mass(quadratics(systems), weights, z, self.options.tau)
        return (mass - self.alpha) / self.options.tau

    def in_distribution(self, weights: Tensor) -> Tensor:
        """Return a mask that is 0 where the set is the whole line: CBO, B.7; `b`."""
        return logsigmoid((self.alpha - weights[..., -1]) / self.options.tau).sum(dim=-1).exp()


def _log_complement(log_p: Tensor) -> Tensor:
    """Return `log(1 - p)` of log probabilities."""
    return torch.log(-torch.expm1(log_p.clamp_max(-TINY)))


def _upper_half(system: Augmented, z: Tensor) -> Tensor:
    """Return whitened labels with each label reflected to above its mean; at q = 1 the absolute value."""
    if z.shape[-1] == 1:
        return z.abs()
    labels = (z @ system.root.mT).abs()
    return labels @ system.dual_root

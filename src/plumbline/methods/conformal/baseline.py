"""Joint draws of `f` at new points and at the data, for integrands whose baseline is uncertain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Generator, Tensor

from plumbline.methods.conformal.augmented import Augmented, Cotangents
from plumbline.methods.conformal.small_matrices import cholesky, diagonal_minus
from plumbline.models.algebra import cholesky_vjp
from plumbline.models.gp.process import GP

LEAST_OF_CONDITIONAL = 1e-8
"""What is added to variances of f so that they have a Cholesky factor: always where f is given at the data, and at the
data itself if there is no factor otherwise."""


@dataclass(frozen=True)
class BaselineDraws:
    """`k` draws of `f` at the data, with the factors for drawing `f` elsewhere given each.

    Attributes:
        values: `k x n x m`, in the models' standardised space.
        dual: `k x n x m`, `K^-1 (values - mean)`.
        inverse_roots: `m x n x n`, inverses of Cholesky factors of `K`.
        processes: the models.
        incumbents: row of the data that each draw's incumbent is at, `k`, where the integrand is the improvement of one
            outcome over it; gradients at constant labels need it.
    """

    values: Tensor
    dual: Tensor
    inverse_roots: Tensor
    processes: Sequence[GP]
    incumbents: Tensor | None = None

    def draw(
        self, outcome: int, system: Augmented, for_noise: Tensor, for_f: Tensor, constant: bool = False
    ) -> tuple[Tensor, Tensor, Callable[[Tensor, Tensor, Tensor], Cotangents]]:
        """Return whitened labels and `f` of one outcome, drawn jointly with `values`, and their VJP.

        `f = mean + k_X' dual + R for_f`, where `R R'` is the covariance of `f` given its values at the data, and
        `z = L^-1 (f + noise - predictive mean)`.

        Args:
            outcome: index of the outcome.
            system: augmented system at `b` batches of `q` test points.
            for_noise: `k x q` standard normal draws of the observation noise.
            for_f: `k x q` standard normal draws of `f` given its values at the data.
            constant: whether labels are constants in the gradient, `f + noise` as well as whitened: see `held`.

        Returns:
            Labels and `f`, both `b x k x q`, and a function of the gradients in them and in the predictive mean.
        """
        noise, dual_values = self.processes[outcome].noise, self.dual[..., outcome]
        inverse_root = self.inverse_roots[outcome]
        half = system.cross @ inverse_root.mT
        root = cholesky(diagonal_minus(half.new_tensor(LEAST_OF_CONDITIONAL), half @ half.mT - system.prior))
        f = system.constant + (system.cross @ dual_values.mT).mT + for_f @ root.mT
        away = f + noise.sqrt() * for_noise - system.mean.unsqueeze(1)
        z = away @ system.dual_root

        def vjp(grad_z: Tensor, grad_f: Tensor, grad_mean: Tensor) -> Cotangents:
            grad_away = grad_z @ system.dual_root.mT
            grad_f = grad_f - self.held(system, grad_f) if constant else grad_f + grad_away
            grad_conditional = cholesky_vjp(root, grad_f.mT @ for_f)
            return Cotangents(
                grad_mean=grad_mean - grad_away.sum(dim=1),
                grad_root=torch.zeros_like(root),
                grad_dual_root=away.mT @ grad_z,
                grad_cross=grad_f.mT @ dual_values - 2 * grad_conditional @ half @ inverse_root,
                grad_prior=grad_conditional,
            )

        return z, f, vjp

    def held(self, system: Augmented, grad_f: Tensor) -> Tensor:
        """Return what constant labels take away from the gradient in draws of `f`, `b x k x q`.

        Given labels `y`, draws move by Matheron's rule too: `f(u)` by `-cov(f(u), y) cov(y)^-1 dy`, where `dy` is the
        change of `y` as it is drawn, that of `f` at the test points. With `cov(y) = L L'` the covariances are
        `(L - P) L'` at the test points, and `slope L'` at the data. An improvement falls as `f` rises at its incumbent.

        Args:
            system: augmented system of the only outcome.
            grad_f: gradient of an improvement over the incumbents, in `f` at the test points.
        """
        assert self.incumbents is not None
        at_points = grad_f @ (system.root - system.own_slope)
        at_incumbents = -grad_f.sum(dim=-1, keepdim=True) * system.slope[:, self.incumbents]
        return (at_points + at_incumbents) @ system.dual_root.mT


def draw_baseline(processes: Sequence[GP], k: int, generator: Generator, distinct: int | None = None) -> BaselineDraws:
    """Return `k` posterior draws of `f` at the data by Matheron's rule: a prior draw plus an update.

    Args:
        processes: one an output, on the same data.
        k: number of draws.
        generator: random generator.
        distinct: number of distinct draws, used in turn where `k` would be too expensive.
    """
    turns = torch.arange(k) % (distinct or k)
    values, duals, roots = [], [], []
    for process in processes:
        K = process.prior(process.U, process.U)
        root = psd_safe_cholesky(K, jitter=LEAST_OF_CONDITIONAL)
        inverse = torch.linalg.solve_triangular(root, torch.eye(len(K), dtype=K.dtype), upper=False)
        base = torch.randn(distinct or k, len(K), generator=generator, dtype=K.dtype)
        noise = process.noise.sqrt() * torch.randn(*base.shape, generator=generator, dtype=K.dtype)
        prior = base @ root.mT
        # B (y - mean - prior draw - noise draw)
        update = process.a - (prior + noise) @ process.inverse_root.mT @ process.inverse_root
        values.append((process.at.constant + prior + update @ K)[turns])
        duals.append((base @ inverse + update)[turns])
        roots.append(inverse)
    return BaselineDraws(torch.stack(values, dim=-1), torch.stack(duals, dim=-1), torch.stack(roots), processes)

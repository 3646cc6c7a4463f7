"""Joint draws of `f` at new points and at the data, for utilities whose baseline is itself uncertain."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Generator, Tensor

from plumbline.calibration.conformal import Augmented, Factors, cholesky, covariances


@dataclass(frozen=True)
class BaselineDraws:
    """`k` draws of `f` at the data, and what it takes to draw `f` elsewhere given each.

    Attributes:
        values: `k x n x m`, in the models' standardised space.
        dual: `k x n x m`, `K^-1 (values - mean)`.
        inverse_roots: `m x n x n`, inverses of Cholesky factors of `K`.
        factors: of the models.
    """

    values: Tensor
    dual: Tensor
    inverse_roots: Tensor
    factors: Sequence[Factors]

    def draw(self, U: Tensor, systems: Sequence[Augmented], for_noise: Tensor, for_f: Tensor) -> tuple[Tensor, Tensor]:
        """Return whitened labels and `f`: two `b x k x q x m`, joint draws with `values`.

        Args:
            U: `b x q x d`, in the unit cube.
            systems: augmented at `U`.
            for_noise: `k x q x m` standard normal draws of the observation noise.
            for_f: `k x q x m` standard normal draws of `f` given its values at the data.
        """
        labels, functions = [], []
        for i, (factors, system) in enumerate(zip(self.factors, systems, strict=True)):
            mean, cross, prior = covariances(factors, U)
            half = cross @ self.inverse_roots[i].mT
            floor = 1e-8 * torch.eye(U.shape[-2], dtype=U.dtype)
            root = cholesky(prior - half @ half.mT + floor)
            f = mean.unsqueeze(1) + (cross @ self.dual[..., i].mT).mT + for_f[..., i] @ root.mT
            y = f + factors.noise.sqrt() * for_noise[..., i]
            labels.append((y - system.mean.unsqueeze(1)) @ system.dual_root)
            functions.append(f)
        return torch.stack(labels, dim=-1), torch.stack(functions, dim=-1)


def draw_baseline(
    factors: Sequence[Factors], k: int, generator: Generator, distinct: int | None = None
) -> BaselineDraws:
    """Return `k` posterior draws of `f` at the data by Matheron's rule: a prior draw plus an update.

    Args:
        factors: one an output, on the same data.
        k: number of draws.
        generator: seeded.
        distinct: draw only this many, each taken in turn, where more would be too dear.
    """
    turns = torch.arange(k) % (distinct or k)
    values, duals, roots = [], [], []
    for one in factors:
        with torch.no_grad():
            K = one.model.covar_module(one.inputs).to_dense()
            mean = one.model.mean_module(one.inputs)
        root = psd_safe_cholesky(K, jitter=1e-8)
        inverse = torch.linalg.solve_triangular(root, torch.eye(len(K), dtype=K.dtype), upper=False)
        base = torch.randn(distinct or k, len(K), generator=generator, dtype=K.dtype)
        noise = one.noise.sqrt() * torch.randn(*base.shape, generator=generator, dtype=K.dtype)
        prior = base @ root.mT
        # B (y - mean - prior draw - noise draw)
        update = one.a - (prior + noise) @ one.inverse_root.mT @ one.inverse_root
        values.append((mean + prior + update @ K)[turns])
        duals.append((base @ inverse + update)[turns])
        roots.append(inverse)
    return BaselineDraws(torch.stack(values, dim=-1), torch.stack(duals, dim=-1), torch.stack(roots), factors)

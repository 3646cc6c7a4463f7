"""Draws of a whole function from an exact process by Matheron's rule: Wilson et al. (2020).

A draw of the prior in random Fourier features, plus the kernel's functions at the data that make it a draw of the
posterior: once made, it is evaluated anywhere, with its gradient, in a time that does not grow with what was evaluated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from plumbline.models.algebra import Kernel, correlations, squared_distances
from plumbline.models.gp.process import GP

FEATURES = 512
"""Random frequencies of a draw of the prior; each has a cosine and a sine."""

DEGREES_OF_FREEDOM: dict[Kernel, int] = {"matern12": 1, "matern32": 3, "matern52": 5}
"""Of the spectral densities of the Matern kernels, which are Student's: twice their order."""


@dataclass(frozen=True)
class Paths:
    """P draws of f, `constant + Phi(x) w + k(x, U) v`.

    Attributes:
        process: whose draws they are.
        frequencies: `F x d`, of inputs in lengthscales.
        cosines, sines: `P x F`, their weights.
        update: `P x n`, the weights v of the kernel's functions at the data.
    """

    process: GP
    frequencies: Tensor
    cosines: Tensor
    sines: Tensor
    update: Tensor

    def __len__(self) -> int:
        return len(self.update)

    def only(self, chosen: Sequence[int]) -> "Paths":
        """Return some of the paths; one may be chosen several times."""
        rows = list(chosen)
        return replace(self, cosines=self.cosines[rows], sines=self.sines[rows], update=self.update[rows])

    def everywhere(self, X: Tensor) -> Tensor:
        """Return all paths at the same points, `n x d` in the problem's bounds: `P x n`, in the observations' units."""
        process = self.process
        scaled = process.standardisation.inputs(X) / process.at.lengthscale
        k = process.prior(process.standardisation.inputs(X), process.U)
        cosine, sine = waves(scaled, self.frequencies)
        drawn = self.cosines @ cosine.mT + self.sines @ sine.mT + self.update @ k.mT
        return process.standardisation.observations(process.at.constant + drawn)

    def each(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return each path at points of its own, `P x n x d` in the problem's bounds, and its gradients there.

        Returns:
            `P x n` and `P x n x d`, in units of the observations.
        """
        process, (P, n, d) = self.process, X.shape
        scaled = (process.standardisation.inputs(X) / process.at.lengthscale).view(1, P * n, d)
        r2 = squared_distances(scaled, process.scaled.unsqueeze(0))
        correlation, slope = (part.view(P, n, -1) * process.at.outputscale for part in correlations(r2, process.kernel))
        scaled = scaled.view(P, n, d)
        cosine, sine = waves(scaled, self.frequencies)
        a, b, v = self.cosines.unsqueeze(1), self.sines.unsqueeze(1), self.update.unsqueeze(1)
        value = (cosine * a).sum(-1) + (sine * b).sum(-1) + (correlation * v).sum(-1)
        towards = slope * v
        # The derivative of k(x, u) in scaled inputs is -slope (x - u).
        gradient = (cosine * b - sine * a) @ self.frequencies + towards @ process.scaled
        gradient -= towards.sum(-1, keepdim=True) * scaled
        gradient *= process.standardisation.scale / (process.at.lengthscale * process.standardisation.width)
        return process.standardisation.observations(process.at.constant + value), gradient


def waves(scaled: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of points in lengthscales, `batch_shape x n x d`: both `batch_shape x n x F`."""
    phase = scaled @ frequencies.mT
    return phase.cos(), phase.sin()


def draw_frequencies(kernel: Kernel, features: int, dim: int, generator: Generator) -> Tensor:
    """Return draws, `features x dim`, from the spectral density of a kernel of unit lengthscale.

    That of the squared exponential is normal, that of Matern-nu Student's with 2 nu degrees of freedom.
    """
    normal = torch.randn(features, dim, generator=generator, dtype=torch.float64)
    if kernel == "rbf":
        return normal
    freedom = DEGREES_OF_FREEDOM[kernel]
    spread = torch.randn(features, freedom, generator=generator, dtype=torch.float64).square().mean(-1, keepdim=True)
    return normal / spread.sqrt()


def draw_paths(process: GP, paths: int, generator: Generator, features: int = FEATURES) -> Paths:
    """Return draws of f from the posterior of an exact process.

    The update is `(K + noise)^-1 (y - constant - prior draw - noise draw)`.

    Args:
        process: fitted.
        paths: how many, P.
        generator: seeded.
        features: random frequencies, F.
    """

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    process = process.absorbed
    frequencies = draw_frequencies(process.kernel, features, process.U.shape[-1], generator)
    size = (process.at.outputscale / features) ** 0.5
    cosines, sines = size * normal(paths, features), size * normal(paths, features)
    cosine, sine = waves(process.scaled, frequencies)
    noise = process.at.noise.sqrt() * normal(paths, len(process.y))
    away = cosines @ cosine.mT + sines @ sine.mT + noise
    change = -(away @ process.inverse_root.mT) @ process.inverse_root
    return Paths(process, frequencies, cosines, sines, process.a + change)

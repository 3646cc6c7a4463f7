"""Draws of a function from the posterior of a GP by Matheron's rule: Wilson et al. (2020).

A path is a draw of the prior in random Fourier features plus an update in kernel functions at the data, which makes it
a draw of the posterior. Its values and gradients at any point cost a time that does not grow with earlier evaluations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from plumbline.models.algebra import Kernel, correlations, squared_distances
from plumbline.models.gp.process import GP

FEATURES = 512
"""Number of random frequencies of a draw of the prior; each has a cosine and a sine."""

DEGREES_OF_FREEDOM: dict[Kernel, int] = {"matern12": 1, "matern32": 3, "matern52": 5}
"""Degrees of freedom of the Matern kernels' spectral densities, which are Student's t: twice the kernel's order."""


@dataclass(frozen=True)
class Paths:
    """P draws of f, `constant + Phi(x) w + k(x, U) v`.

    Attributes:
        process: the GP whose posterior is drawn from.
        frequencies: `F x d`, for inputs in lengthscales.
        cosines, sines: `P x F`, weights w of the cosines and sines.
        update: `P x n`, weights v of the kernel functions at the data.
    """

    process: GP
    frequencies: Tensor
    cosines: Tensor
    sines: Tensor
    update: Tensor

    def __len__(self) -> int:
        return len(self.update)

    def only(self, chosen: Sequence[int]) -> "Paths":
        """Return the paths with numbers `chosen`, in which a number may occur several times."""
        rows = list(chosen)
        return replace(self, cosines=self.cosines[rows], sines=self.sines[rows], update=self.update[rows])

    def everywhere(self, X: Tensor) -> Tensor:
        """Return all paths at the same points, `n x d` in the problem's bounds: `P x n`, in units of observations."""
        process = self.process
        scaled = process.standardisation.inputs(X) / process.at.lengthscale
        k = process.prior(process.standardisation.inputs(X), process.U)
        cosine, sine = waves(scaled, self.frequencies)
        drawn = self.cosines @ cosine.mT + self.sines @ sine.mT + self.update @ k.mT
        return process.standardisation.observations(process.at.constant + drawn)

    def each(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values and gradients of each path at points of its own, `P x n x d` in the problem's bounds.

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
        weights = slope * v
        # The derivative of k(x, u) in scaled inputs is -slope (x - u).
        gradient = (cosine * b - sine * a) @ self.frequencies + weights @ process.scaled
        gradient -= weights.sum(-1, keepdim=True) * scaled
        gradient *= process.standardisation.scale / (process.at.lengthscale * process.standardisation.width)
        return process.standardisation.observations(process.at.constant + value), gradient


def waves(scaled: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of points in lengthscales, `batch_shape x n x d`: both `batch_shape x n x F`."""
    phase = scaled @ frequencies.mT
    return phase.cos(), phase.sin()


def draw_frequencies(kernel: Kernel, features: int, dim: int, generator: Generator) -> Tensor:
    """Return draws, `features x dim`, from the spectral density of a kernel of unit lengthscale.

    The squared exponential's is normal, that of Matern-nu Student's t with 2 nu degrees of freedom.
    """
    normal = torch.randn(features, dim, generator=generator, dtype=torch.float64)
    if kernel == "rbf":
        return normal
    freedom = DEGREES_OF_FREEDOM[kernel]
    spread = torch.randn(features, freedom, generator=generator, dtype=torch.float64).square().mean(-1, keepdim=True)
    return normal / spread.sqrt()


def draw_paths(process: GP, paths: int, generator: Generator, features: int = FEATURES) -> Paths:
    """Return draws of f from the posterior of a GP.

    The update is `(K + noise)^-1 (y - constant - prior draw - noise draw)`.

    Args:
        process: fitted GP.
        paths: number P of draws.
        generator: seeded generator.
        features: number F of random frequencies.
    """

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    process = process.absorbed
    frequencies = draw_frequencies(process.kernel, features, process.U.shape[-1], generator)
    size = (process.at.outputscale / features) ** 0.5
    cosines, sines = size * normal(paths, features), size * normal(paths, features)
    cosine, sine = waves(process.scaled, frequencies)
    noise = process.at.noise.sqrt() * normal(paths, len(process.y))
    prior_draws = cosines @ cosine.mT + sines @ sine.mT + noise
    change = -(prior_draws @ process.inverse_root.mT) @ process.inverse_root
    return Paths(process, frequencies, cosines, sines, process.a + change)

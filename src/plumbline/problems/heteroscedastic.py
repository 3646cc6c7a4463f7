"""Functions with input-dependent observation noise; CBO, figure 6, and LOCBO, figures 4 to 6."""

from abc import abstractmethod
from typing import Literal

import torch
from botorch.test_functions import Ackley, SyntheticTestFunction
from pydantic import NonNegativeFloat
from torch import Tensor

from plumbline.core.options import Options
from plumbline.problems.base import Context, problems


class Heteroscedastic(SyntheticTestFunction):
    """A function whose noise variance is a function of the input.

    `noise_std` is a method here, and becomes the noise of the outcome.
    """

    _is_minimization_by_default = False

    def __init__(self, noise_factor: float) -> None:
        self.continuous_inds = list(range(self.dim))
        super().__init__()
        self.noise_factor = noise_factor
        self.noise_std = self._noise_std  # the base class has set an attribute of this name to None

    @abstractmethod
    def noise_variance(self, X: Tensor) -> Tensor:
        """Return the noise variance at `X` (`n x d`) before multiplication by `noise_factor`: `n`."""

    def _noise_std(self, X: Tensor) -> Tensor:
        """Return the standard deviation of the noise at `X` (`batch x n x d`): `batch x n x 1`."""
        return (self.noise_factor * self.noise_variance(X)).sqrt().unsqueeze(-1)

    def forward(self, X: Tensor, noise: bool = True) -> Tensor:
        """Return the function at `X` (`batch x d`), with noise of torch's global stream if `noise`: `batch`."""
        F = self.evaluate_true(X)
        return F + self._noise_std(X).squeeze(-1) * torch.randn_like(F) if noise else F


class Sinc(Heteroscedastic):
    r"""`(10 sin x + 1) sin(3x) / x` on [-10, 10], which is 3 at 0; noise variance `2 / (1 + exp(x/2))`.

    The paper calls eps(x) the noise. Its code uses it as a variance, and so do we. The noise is large on the left,
    where the variance tends to 2, and vanishes to the right.
    """

    dim = 1
    _bounds = [(-10.0, 10.0)]  # noqa: RUF012 - BoTorch's class attributes
    _optimal_value = 11.6123695567004
    _optimizers = [(0.4664947738918001,)]  # noqa: RUF012

    def _evaluate_true(self, X: Tensor) -> Tensor:
        x = X.squeeze(-1)
        # torch.sinc(t) = sin(pi t) / (pi t), smooth at 0: sin(3x)/x without the division.
        return (10 * torch.sin(x) + 1) * 3 * torch.sinc(3 * x / torch.pi)

    def noise_variance(self, X: Tensor) -> Tensor:
        """Return `2 / (1 + exp(x/2))`: `n`."""
        return 2 * torch.sigmoid(-X.squeeze(-1) / 2)


class DoubleKnot(Heteroscedastic):
    r"""`-x_1 exp(-x_1^2 - x_2^2)` on [-2, 6]^2; noise variance 0.1 `||x||`; Gramacy (2005).

    Our copy of the paper lost the exponent. It has eps(x) proportional to `||x||`, and its code uses 0.1 `||x||` as a
    variance. The function has one maximum, at (-1/sqrt 2, 0), and one minimum, in a corner of a box that is flat
    elsewhere.
    """

    dim = 2
    _bounds = [(-2.0, 6.0), (-2.0, 6.0)]  # noqa: RUF012
    _optimal_value = 0.42888194248036  # exp(-1/2) / sqrt 2, rounded up
    _optimizers = [(-0.7071067811865476, 0.0)]  # noqa: RUF012

    def _evaluate_true(self, X: Tensor) -> Tensor:
        return -X[..., 0] * torch.exp(-X.square().sum(dim=-1))

    def noise_variance(self, X: Tensor) -> Tensor:
        """Return the distance from the origin: `n`."""
        return torch.linalg.vector_norm(X, dim=-1)


class Rippled(Heteroscedastic):
    r"""`x sin(2x) + cos(pi x)` on [-5, 5]; noise variance `(|x| + 1) / 10`; LOCBO, section V-B.

    The function is even: its two maximisers mirror each other, and the noise is large there.
    """

    dim = 1
    _bounds = [(-5.0, 5.0)]  # noqa: RUF012
    _optimal_value = 4.95801360994341
    _optimizers = [(-3.9933485208154305,), (3.9933485208154305,)]  # noqa: RUF012

    def _evaluate_true(self, X: Tensor) -> Tensor:
        x = X.squeeze(-1)
        return x * torch.sin(2 * x) + torch.cos(torch.pi * x)

    def noise_variance(self, X: Tensor) -> Tensor:
        """Return `(|x| + 1) / 10`: `n`."""
        return (X.squeeze(-1).abs() + 1) / 10


class NoisyAckley(Heteroscedastic):
    r"""BoTorch's Ackley function in two dimensions, negated, on [-10, 10]^2; LOCBO, section V-C.

    The noise variance is `(||x|| + 10) / 20`: 0.5 at the optimum, which is the origin, and 1.2 in the corners.
    """

    dim = 2
    _bounds = [(-10.0, 10.0), (-10.0, 10.0)]  # noqa: RUF012
    _optimal_value = 0.0
    _optimizers = [(0.0, 0.0)]  # noqa: RUF012

    def __init__(self, noise_factor: float) -> None:
        super().__init__(noise_factor)
        self._ackley = Ackley(dim=self.dim, negate=True)

    def _evaluate_true(self, X: Tensor) -> Tensor:
        return self._ackley(X, noise=False)

    def noise_variance(self, X: Tensor) -> Tensor:
        """Return `(||x|| + 10) / 20`: `n`."""
        return (torch.linalg.vector_norm(X, dim=-1) + 10) / 20


class SincOptions(Options):
    """Options of `sinc`; the noise variance is multiplied by `noise_factor`, 0 for none."""

    noise_factor: NonNegativeFloat = 1.0


class DoubleKnotOptions(Options):
    """Options of `double-knot`; the noise variance is `noise_factor` times the distance from the origin."""

    noise_factor: NonNegativeFloat = 0.1


class RippledOptions(Options):
    """Options of `rippled`; the noise variance is multiplied by `noise_factor`, 0 for none."""

    noise_factor: NonNegativeFloat = 1.0


class NoisyAckleyOptions(Options):
    """Options of `ackley-noisy`.

    Attributes:
        noise_factor: factor of the noise variance, 0 for no noise.
        dim: 2, as in the paper.
    """

    noise_factor: NonNegativeFloat = 1.0
    dim: Literal[2] = 2


@problems.register("sinc", SincOptions, "1-d, many local maxima, noise that dies away to the right")
def sinc(options: SincOptions, _: Context) -> Sinc:
    """Return the sinc problem."""
    return Sinc(options.noise_factor)


@problems.register(
    "double-knot", DoubleKnotOptions, "2-d, a hill and a hollow in a flat box, noise that grows outwards"
)
def double_knot(options: DoubleKnotOptions, _: Context) -> DoubleKnot:
    """Return the double-knot problem."""
    return DoubleKnot(options.noise_factor)


@problems.register("rippled", RippledOptions, "1-d, five hills, two of them global, noise that grows outwards")
def rippled(options: RippledOptions, _: Context) -> Rippled:
    """Return the rippled problem."""
    return Rippled(options.noise_factor)


@problems.register("ackley-noisy", NoisyAckleyOptions, "2-d, a deep hole in a rippled plain, noise that grows outwards")
def ackley_noisy(options: NoisyAckleyOptions, _: Context) -> NoisyAckley:
    """Return the Ackley function with noise."""
    return NoisyAckley(options.noise_factor)

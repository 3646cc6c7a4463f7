"""Functions of known norm in the Hilbert space of a kernel; CBO, algorithm 3 and figures 9, 14 and 15."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from botorch.test_functions import SyntheticTestFunction
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from pydantic import PositiveFloat, PositiveInt
from scipy.optimize import minimize
from torch import Generator, Tensor
from torch.quasirandom import SobolEngine

from plumbline.core.seeding import draw_seed
from plumbline.problems.base import Context, problems
from plumbline.problems.build import with_noise
from plumbline.problems.options import ScalableOptions

KernelName = Literal["rbf", "matern52"]

SEARCHED = 4096
"""Number of Sobol points that the search for the maximum evaluates besides the basis."""

ROUNDING = 1e-13
"""Of a value, in units of the norm."""

STARTS = 32
"""Number of the best points that climbs start from."""


class RKHSOptions(ScalableOptions):
    """Options of a random function from a kernel's Hilbert space.

    Attributes:
        kernel: kernel of unit output scale.
        lengthscale: lengthscale in the unit cube, one for all axes.
        basis: number of basis points.
        noise_variance: sigma^2 of algorithm 3, which regularises the coefficients; the noise of observations is
            `noise_std`.
    """

    kernel: KernelName = "rbf"
    lengthscale: PositiveFloat = 0.1
    basis: PositiveInt = 16
    noise_variance: PositiveFloat = 0.04


def make_kernel(name: KernelName, lengthscale: float) -> Kernel:
    """Return a float64 kernel of unit output scale with fixed parameters."""
    kernel = (RBFKernel() if name == "rbf" else MaternKernel(nu=2.5)).double()
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)  # a float would be converted to float32
    return kernel.requires_grad_(False)


def draw_coefficients(K: Tensor, noise_variance: float, generator: Generator) -> Tensor:
    r"""Return the coefficients of algorithm 3: `n`.

    .. math:: u \sim N(0, K), \quad y \sim N(u, \sigma^2 I), \quad c = (K + \sigma^2 I)^{-1} y.

    `y` is drawn directly from its marginal `N(0, L L')` with `L L' = K + \sigma^2 I`, which is well conditioned where
    `K` alone is not; then `c = L^{-T} eps` for the same standard normal `eps`.

    Args:
        K: `n x n`, the kernel at the basis points.
        noise_variance: sigma^2.
        generator: generator of the draw.
    """
    n = len(K)
    L = torch.linalg.cholesky(K + noise_variance * torch.eye(n, dtype=K.dtype))
    eps = torch.randn(n, 1, generator=generator, dtype=K.dtype)
    return torch.linalg.solve_triangular(L.mT, eps, upper=True).squeeze(-1)


class RKHSFunction(SyntheticTestFunction):
    r"""`f(x) = sum_i c_i kappa(x, z_i)` on the unit cube, a function of norm `sqrt(c' K c)` in the space of `kappa`.

    Attributes:
        kernel: kappa.
        basis: `n x d`, the points `z_i`.
        coefficients: `n`, the numbers `c_i`.
        norm: the norm of f.
        optimizers: `1 x d`, the best point found.
    """

    _is_minimization_by_default = False

    def __init__(self, kernel: Kernel, basis: Tensor, coefficients: Tensor) -> None:
        """Create the function of a kernel, `n x d` basis points and `n` coefficients.

        Its maximum has no closed form. `optimal_value` is the best value that L-BFGS-B finds from the best of the basis
        points and of 4,096 Sobol points: a lower bound, always the same for the same function. Far from the basis
        points f is nearly zero, so its maxima are near them.
        """
        self.dim = basis.shape[-1]
        self.continuous_inds = list(range(self.dim))
        self._bounds = [(0.0, 1.0)] * self.dim
        super().__init__()
        self.kernel = kernel
        self.register_buffer("basis", basis)
        self.register_buffer("coefficients", coefficients)
        norm2 = coefficients @ kernel(basis).to_dense() @ coefficients
        self.norm = float(norm2.clamp_min(0.0).sqrt())
        best = self._climb()
        self.register_buffer("optimizers", best)
        # Values of one point differ by rounding from batch to batch: none of them is to lie beyond.
        self._optimal_value = float(self._evaluate_true(best)) + ROUNDING * max(1.0, self.norm)

    def _evaluate_true(self, X: Tensor) -> Tensor:
        flat = X.reshape(-1, self.dim)
        return (self.kernel(flat, self.basis).to_dense() @ self.coefficients).reshape(X.shape[:-1])

    def _climb(self) -> Tensor:
        """Return the best point found: `1 x d`."""
        spread_out = SobolEngine(self.dim).draw(SEARCHED, dtype=self.basis.dtype)
        X = torch.cat([self.basis, spread_out])
        X = X[self._evaluate_true(X).argsort(descending=True, stable=True)[:STARTS]]
        # All climbs together, then the best alone: a stopping rule for the sum of the climbs stops some too early.
        tops = climb(self._evaluate_true, X, tolerance=1e-9)
        return climb(self._evaluate_true, tops[self._evaluate_true(tops).argmax()].unsqueeze(0), tolerance=1e-15)


def climb(f: Callable[[Tensor], Tensor], X: Tensor, tolerance: float) -> Tensor:
    """Return the ends of L-BFGS-B from `X` (`n x d`), which maximises the sum of `f` in the unit cube: `n x d`."""

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.from_numpy(flat).reshape(X.shape).requires_grad_()
        value = -f(point).sum()
        (slope,) = torch.autograd.grad(value, point)
        return value.item(), slope.numpy().ravel()

    options = {"ftol": tolerance, "gtol": 1e-9, "maxiter": 500}
    end = minimize(loss, X.numpy().ravel(), jac=True, method="L-BFGS-B", bounds=[(0, 1)] * X.numel(), options=options)
    return torch.from_numpy(end.x).reshape(X.shape)


@problems.register("rkhs", RKHSOptions)
def rkhs(options: RKHSOptions, context: Context) -> RKHSFunction:
    """A random function of known norm in the Hilbert space of a kernel (rkhs-5)."""
    engine = SobolEngine(options.dim, scramble=True, seed=draw_seed(context.generator))
    basis = engine.draw(options.basis, dtype=torch.float64)
    kernel = make_kernel(options.kernel, options.lengthscale)
    coefficients = draw_coefficients(kernel(basis).to_dense(), options.noise_variance, context.generator)
    return with_noise(RKHSFunction(kernel, basis, coefficients), options)

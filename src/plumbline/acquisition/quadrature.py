"""Gauss-Hermite quadrature for expectations under the standard normal distribution."""

from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def gauss_hermite(nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights, which sum to one; the arrays are cached and must not be changed."""
    points, weights = np.polynomial.hermite.hermgauss(nodes)
    return np.sqrt(2.0) * points, weights / np.sqrt(np.pi)

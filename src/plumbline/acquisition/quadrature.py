"""Expectations under a standard normal distribution by Gauss and Hermite's rule."""

from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def gauss_hermite(nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights, which sum to one; they are kept, and not to be written to."""
    points, weights = np.polynomial.hermite.hermgauss(nodes)
    return np.sqrt(2.0) * points, weights / np.sqrt(np.pi)

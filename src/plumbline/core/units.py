"""Units in which sizes are usual, for algorithms with absolute tolerances."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST, MOST = 1e-2, 1e3
"""Sizes between which absolute tolerances do no harm."""

FARTHEST = 1000
"""Greatest power of two, or one over it, that is a unit: its inverse is a float64 too."""


def usual_unit(size: ArrayLike) -> NDArray[np.float64]:
    """Return units in which sizes are usual: one where they are, elsewhere the nearest power of two.

    Division by a power of two changes no digit: what is computed in other units is the same.

    Args:
        size: standard deviations of observations, or widths of inputs, of any shape; what is not positive and finite
            has the unit one.
    """
    sizes = np.asarray(size, np.float64)
    odd = (sizes > 0) & np.isfinite(sizes) & ((sizes < LEAST) | (sizes > MOST))
    return np.exp2(np.round(np.log2(np.where(odd, sizes, 1.0))).clip(-FARTHEST, FARTHEST))

"""Hypervolume of a growing set of points, without torch."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BLOCK = 1024


def hypervolume_so_far(F: Array, ref_point: Array) -> Array:
    """Return the volume that the points so far dominate above a reference point, after each of them.

    The front is kept, and its volume computed anew only where a point enters it: most points of a run do not.

    Args:
        F: `n x m` values to be maximised; a row with NaN dominates nothing.
        ref_point: `m`.

    Returns:
        `n` volumes, by `moocore`.
    """
    import moocore  # here, since few records have several objectives

    volumes = np.zeros(len(F))
    front = np.empty((0, F.shape[1]))
    above = np.flatnonzero((ref_point < F).all(axis=1))
    for block in np.split(above, range(BLOCK, len(above), BLOCK)):
        for i in block[~_dominated(F[block], front)]:
            if _dominated(F[i : i + 1], front)[0]:
                continue
            front = np.vstack([front[~(F[i] >= front).all(axis=1)], F[i]])
            volumes[i] = moocore.hypervolume(front, ref=ref_point, maximise=True)
    return np.maximum.accumulate(volumes)


def _dominated(points: Array, front: Array) -> NDArray[np.bool_]:
    """Tell of each of `n x m` points whether a point of the `k x m` front dominates or equals it: `n`."""
    return np.any(np.all(front[None] >= points[:, None], axis=-1), axis=-1)

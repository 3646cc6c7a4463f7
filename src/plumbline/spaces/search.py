"""How hard a space is searched, and which points lie in a region of it."""

from pydantic import PositiveInt
from torch import Tensor

from plumbline.options import Options


class SearchOptions(Options):
    """Options of the multi-start search in a box: starts, random points they are chosen from, and L-BFGS iterations."""

    restarts: PositiveInt = 10
    raw_samples: PositiveInt = 256
    maxiter: PositiveInt = 200


def inside(X: Tensor, region: Tensor) -> Tensor:
    """Return which of the points `X` (`n x d`) lie in `region` (`2 x d`): `n` booleans."""
    return ((region[0] <= X) & (region[1] >= X)).all(dim=-1)

"""Thompson sampling: draws of f as acquisition functions, with maximisers; Thompson (1933), Wilson et al. (2020)."""

from typing import NamedTuple

import torch
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from plumbline.core.lbfgsb import Array, minimise
from plumbline.core.units import usual_unit
from plumbline.models.gp.pathwise import Paths
from plumbline.models.gp.process import GP
from plumbline.spaces.base import Space
from plumbline.spaces.search import SearchOptions, inside
from plumbline.spaces.table import Table
from plumbline.spaces.with_gradient import Differentiated

ALIKE = 1e-6
"""Draws count as equal below this difference, in the unit cube or in standard deviations of the observations."""


class PathAcquisition(Differentiated):
    """The value of one draw of f at a point.

    Args:
        path: one draw.
    """

    def __init__(self, path: Paths) -> None:
        super().__init__(path.process.model)
        self.path = path
        self.unit = path.process.standardisation.scale

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values at `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        value, gradient = self.path.each(X.view(1, len(X), -1))
        return value.squeeze(0), gradient.view_as(X)

    def values(self, X: Tensor) -> Tensor:
        """Return the values at `b x 1 x d` points: `b`."""
        return self.path.everywhere(X.squeeze(-2)).squeeze(0)


class Peaks(NamedTuple):
    """Maximisers of draws of f, `P x d`, and their values, `P`."""

    X: Tensor
    f: Tensor


def peaks(paths: Paths, space: Space, options: SearchOptions, seed: int) -> Peaks:
    """Return the maximiser of each path in a settled space: a row of a table, or the best end of climbs in a box.

    Climbs of all paths run together, each from the best Sobol points and data.

    Args:
        paths: P paths.
        space: settled space.
        options: options of the search.
        seed: seed of the Sobol points.
    """
    if isinstance(space, Table):
        f, best = paths.everywhere(space.rows).max(-1)
        return Peaks(space.rows[best], f)
    data = paths.process.standardisation.points(paths.process.U)
    raw = draw_sobol_samples(space.bounds, n=options.raw_samples, q=1, seed=seed).squeeze(1)
    raw = torch.cat([raw, data[inside(data, space.bounds)]])
    starts = raw[paths.everywhere(raw).topk(min(options.restarts, len(raw)), dim=-1).indices]
    ends, f = climb_paths(paths, starts, space.bounds, options.maxiter)
    best = f.argmax(-1)
    along = torch.arange(len(paths))
    return Peaks(ends[along, best], f[along, best])


def climb_paths(paths: Paths, starts: Tensor, bounds: Tensor, maxiter: int) -> tuple[Tensor, Tensor]:
    """Return the ends of L-BFGS-B on each path from starts of its own, and the path's values there.

    Args:
        paths: P paths.
        starts: `P x r x d`.
        bounds: `2 x d`.
        maxiter: greatest number of iterations of a climb.

    Returns:
        `P x r x d` and `P x r`.
    """
    r, d = starts.shape[-2:]
    standardisation = paths.process.standardisation
    unit, units = usual_unit(standardisation.scale), usual_unit(standardisation.width)

    def loss(x: Array, going: list[int]) -> tuple[Array, Array]:
        path = paths.only([index // r for index in going])
        value, gradient = path.each(torch.from_numpy(x).view(-1, 1, d))
        return -value.squeeze(-1).numpy() / unit, -gradient.squeeze(-2).numpy() / unit

    ends = minimise(loss, starts.reshape(-1, d).numpy(), bounds[0].numpy(), bounds[1].numpy(), units, maxiter)
    values = -torch.from_numpy(ends.values * unit).view(starts.shape[:-1])
    return torch.from_numpy(ends.points).view_as(starts), values


def standardised(process: GP, peaks: Peaks) -> Peaks:
    """Return draws of the optimum in the unit cube, with standardised values."""
    return Peaks(process.standardisation.inputs(peaks.X), process.standardisation.outputs(peaks.f))


def degenerate(draws: Tensor) -> bool:
    """Return whether draws of the optimum, `P x k`, are NaN or all equal, so that there is nothing to learn."""
    spread = draws.amax(0) - draws.amin(0)
    return not bool(torch.isfinite(draws).all()) or bool((spread < ALIKE).all())

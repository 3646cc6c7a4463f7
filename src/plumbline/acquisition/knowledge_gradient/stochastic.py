"""Stochastic gradient ascent of the knowledge gradient: Wu & Frazier (2016)."""

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.knowledge_gradient.mean_update import Targets, updated_means
from plumbline.core.lbfgsb import Array, minimise
from plumbline.core.options import Options
from plumbline.core.units import usual_unit
from plumbline.models.gp.process import GP

SAMPLES = 8
"""Draws of the next observation in each step."""

INNER = 20
"""L-BFGS iterations of a climb to the maximum of the updated mean."""


class AscentOptions(Options):
    """Options of stochastic gradient ascent.

    Attributes:
        steps: number of ascent steps.
        learning_rate: learning rate of Adam in the unit cube; it falls with the square root of the step.
    """

    steps: PositiveInt = 50
    learning_rate: PositiveFloat = 0.05


def greatest_updated(process: GP, queries: Tensor, Z: Tensor, points: Tensor, bounds: Tensor, maxiter: int) -> Tensor:
    """Return maximisers of the mean after an observation at each query, by a climb from the best of `points`.

    Args:
        process: GP before the observation.
        queries: `b x d`, in the problem's bounds.
        Z: `b x s`, standardised observations.
        points: `T x d`, candidates for starts of climbs.
        bounds: `2 x d`.
        maxiter: iterations of a climb.

    Returns:
        `b x s x d`.
    """
    targets = Targets(process, points)
    change, _ = targets.mean_changes(queries)
    starts = points[(targets.mean + change.unsqueeze(-2) * Z.unsqueeze(-1)).argmax(-1)].flatten(0, 1)
    means = updated_means(process, queries.repeat_interleave(Z.shape[-1], 0), Z.flatten())
    unit, units = usual_unit(process.standardisation.scale), usual_unit(process.standardisation.width)

    def loss(x: Array, going: list[int]) -> tuple[Array, Array]:
        value, gradient = means(torch.from_numpy(x), going)
        return -value.numpy() / unit, -gradient.numpy() / unit

    ends = minimise(loss, starts.numpy(), bounds[0].numpy(), bounds[1].numpy(), units, maxiter)
    return torch.from_numpy(ends.points).view(*Z.shape, -1)


def envelope_gradient(process: GP, queries: Tensor, Z: Tensor, maximisers: Tensor, best: Tensor) -> Tensor:
    """Return estimates of the knowledge gradient's gradient in queries: means of `Z` times the gradient at x*.

    The same term at a fixed point has mean zero. Subtracting it, a control variate, leaves no noise where an
    observation does not change the maximiser.

    Args:
        process: fitted GP.
        queries: `b x d`.
        Z: `b x s`, standard normal.
        maximisers: x*, maximisers of the updated means, `b x s x d`.
        best: the fixed point, `d`: the maximiser of the current mean.

    Returns:
        `b x d`.
    """
    points = torch.cat([maximisers, best.expand(len(queries), 1, -1)], 1)
    _, vjp = Targets(process, points).mean_changes(queries)
    return vjp(torch.cat([Z, -Z.sum(-1, keepdim=True)], -1) / Z.shape[-1])


def ascend(
    process: GP,
    starts: Tensor,
    points: Tensor,
    bounds: Tensor,
    options: AscentOptions,
    generator: Generator,
) -> tuple[Tensor, Tensor]:
    """Return the ends of stochastic gradient ascent of the knowledge gradient, averaged over the last half of steps.

    The gradient in x of `max_x' mu_n+1(x')` is that of `mu_n+1(x*)` at a fixed maximiser x* (the envelope theorem).
    It is unbiased if the inner climbs find the maximisers.

    Args:
        process: fitted GP.
        starts: `b x d`.
        points: `T x d`, candidates for starts of inner climbs; later steps add the previous maximisers.
        bounds: `2 x d`.
        options: steps and their sizes.
        generator: generator of the fantasy observations.

    Returns:
        `b x d`, and the maximisers of the last step, `(b s) x d`: good points for evaluating the ends.
    """
    low, width = bounds[0], bounds[1] - bounds[0]
    at = (starts - low) / width
    adam = torch.optim.Adam([at], lr=options.learning_rate, maximize=True)
    best = points[Targets(process, points).mean.argmax()]
    average, maximisers = torch.zeros_like(at), points[:0]
    for step in range(options.steps):
        queries = low + width * at
        Z = torch.randn(len(at), SAMPLES, generator=generator, dtype=at.dtype)
        peaks = greatest_updated(process, queries, Z, torch.cat([points, maximisers]), bounds, INNER)
        at.grad = envelope_gradient(process, queries, Z, peaks, best) * width / process.standardisation.scale
        adam.param_groups[0]["lr"] = options.learning_rate / (1 + step) ** 0.5
        adam.step()
        at.clamp_(0.0, 1.0)
        if 2 * step >= options.steps - 1:
            average += at
        maximisers = peaks.flatten(0, 1)
    return low + width * average / len(range(options.steps // 2, options.steps)), maximisers

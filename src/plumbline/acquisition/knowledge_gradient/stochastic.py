"""The knowledge gradient climbed by stochastic gradients: Wu & Frazier (2016)."""

import torch
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from pydantic import PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.knowledge_gradient.mean_update import Targets, updated_means
from plumbline.core.options import Options
from plumbline.models.gp.process import GP

SAMPLES = 8
"""Draws of the next observation in each step."""

INNER = 20
"""L-BFGS iterations of a climb to the maximum of the updated mean."""


class AscentOptions(Options):
    """Options of stochastic gradient ascent.

    Attributes:
        steps: of each climb.
        learning_rate: of Adam in the unit cube; it falls with the square root of the step.
    """

    steps: PositiveInt = 50
    learning_rate: PositiveFloat = 0.05


def greatest_updated(process: GP, queries: Tensor, Z: Tensor, points: Tensor, bounds: Tensor, maxiter: int) -> Tensor:
    """Return where the mean is greatest after an observation at each query: a climb from the best of some points.

    Args:
        process: before the observation.
        queries: `b x d`, in the problem's bounds.
        Z: `b x s`, standard normal: the observations.
        points: `T x d`, where climbs begin.
        bounds: `2 x d`.
        maxiter: iterations of a climb.

    Returns:
        `b x s x d`.
    """
    targets = Targets(process, points)
    gain, _ = targets.gains(queries)
    starts = points[(targets.mean + gain.unsqueeze(-2) * Z.unsqueeze(-1)).argmax(-1)].flatten(0, 1)
    means = updated_means(process, queries.repeat_interleave(Z.shape[-1], 0), Z.flatten())

    def loss(x, batch_indices):  # type: ignore[no-untyped-def]
        value, gradient = means(torch.from_numpy(x), list(batch_indices))
        return -value.numpy(), -gradient.numpy()

    ends, _, _ = fmin_l_bfgs_b_batched(
        loss, starts.numpy(), bounds=bounds.mT.tolist(), maxiter=maxiter, pass_batch_indices=True
    )
    return torch.from_numpy(ends).view(*Z.shape, -1)


def envelope_gradient(process: GP, queries: Tensor, Z: Tensor, found: Tensor, best: Tensor) -> Tensor:
    """Return estimates of the knowledge gradient's gradient in queries: the means of `Z` times that of the gain at x*.

    The same at a fixed point has mean zero: taken off, it leaves no noise where an observation does not change which
    point is best.

    Args:
        process: fitted.
        queries: `b x d`.
        Z: `b x s`, standard normal.
        found: x*, where the updated means are greatest, `b x s x d`.
        best: the fixed point, `d`: where the mean is greatest before.

    Returns:
        `b x d`.
    """
    watched = torch.cat([found, best.expand(len(queries), 1, -1)], 1)
    _, vjp = Targets(process, watched).gains(queries)
    return vjp(torch.cat([Z, -Z.sum(-1, keepdim=True)], -1) / Z.shape[-1])


def ascend(
    process: GP,
    starts: Tensor,
    points: Tensor,
    bounds: Tensor,
    options: AscentOptions,
    generator: Generator,
) -> tuple[Tensor, Tensor]:
    """Return where stochastic gradient ascent of the knowledge gradient ends, averaged over the last half of its steps.

    The gradient in x of `max_x' mu_n+1(x')` is that of `mu_n+1(x*)`, with the maximiser x* held where it is (the
    envelope theorem). It is unbiased as far as maximisers are found.

    Args:
        process: fitted.
        starts: `b x d`.
        points: `T x d`, where inner climbs begin; from the second step on also where those before ended.
        bounds: `2 x d`.
        options: steps and their sizes.
        generator: of the observations.

    Returns:
        `b x d`, and the maximisers of the last step, `(b s) x d`: good points to judge the ends by.
    """
    low, width = bounds[0], bounds[1] - bounds[0]
    at = (starts - low) / width
    adam = torch.optim.Adam([at], lr=options.learning_rate, maximize=True)
    best = points[Targets(process, points).mean.argmax()]
    average, maximisers = torch.zeros_like(at), points[:0]
    for step in range(options.steps):
        queries = low + width * at
        Z = torch.randn(len(at), SAMPLES, generator=generator, dtype=at.dtype)
        found = greatest_updated(process, queries, Z, torch.cat([points, maximisers]), bounds, INNER)
        at.grad = envelope_gradient(process, queries, Z, found, best) * width / process.standardisation.scale
        adam.param_groups[0]["lr"] = options.learning_rate / (1 + step) ** 0.5
        adam.step()
        at.clamp_(0.0, 1.0)
        if 2 * step >= options.steps - 1:
            average += at
        maximisers = found.flatten(0, 1)
    return low + width * average / len(range(options.steps // 2, options.steps)), maximisers

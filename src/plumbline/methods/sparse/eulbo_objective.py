"""The expected-utility lower bound: joint refinement of a query and the process that chose it.

Maus et al. (2024), equation 8 and algorithm 1. Steps of the process on a minibatch and steps of the query alternate in
maximising the ELBO of all data plus the expected log-utility of the query. The objective is equation 8 divided by N:
the ELBO is a mean over the minibatch and the utility has the weight `1 / N`. The paper's algorithm sums over a
minibatch instead, and its code adds the utility to the mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from plumbline.methods.sparse.point_posteriors import PointPosteriors
from plumbline.methods.sparse.soft_utility import SoftUtility
from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.minibatches import Progress, RowAdam, Shuffled, Step, TrainingOptions, train
from plumbline.models.svgp.objective import (
    Batch,
    Cotangents,
    Forward,
    Layout,
    Objective,
    Parameters,
    Prepared,
    fidelity,
    prepare,
)
from plumbline.models.svgp.training import ATTEMPTS, Outcome, checked, masked, retry

Weighting = Literal["evidence", "minibatch", "datum"]
"""Weight of the utility: that of the evidence of all data (equation 8), of a minibatch (appendix A to the letter), or
of one datum (the published code)."""

Refines = Literal["all", "variational", "variational-inducing", "nothing"]
"""The parameters of the process that the EULBO refines besides the query; AABO, section 4.3."""

PARTS: dict[Refines, frozenset[str]] = {
    "all": frozenset(Parameters._fields),
    "variational": frozenset({"mean", "factor"}),
    "variational-inducing": frozenset({"mean", "factor", "inducing"}),
    "nothing": frozenset(),
}


class EulboOptions(TrainingOptions):
    """Options of maximising the EULBO; AABO, table 1.

    Attributes:
        query_rate: learning rate of the query, in the unit cube.
        weighting: weight of the utility.
        refines: refined parameters of the process.
        turns: whether process and query move in every step (the text) or in alternate epochs (the code).
        climb: the points that move: the queries and a utility's own points, or the queries alone (the code).
        frozen_factors: whether the Cholesky factors of `K(Z, Z)` and of the covariance of `q(v)` stay those of the
            start (the code, for the knowledge gradient).
        attempts: greatest number of attempts, each with a tenth of the previous learning rates (8 in the code).
    """

    query_rate: PositiveFloat = 0.001
    weighting: Weighting = "evidence"
    refines: Refines = "all"
    turns: Literal["steps", "epochs"] = "steps"
    climb: Literal["all", "queries"] = "all"
    frozen_factors: bool = False
    attempts: PositiveInt = ATTEMPTS


def refined_parameters(layout: Layout, options: EulboOptions) -> Tensor | None:
    """Return the mask of the refined parameters of a row, `p` booleans; None for all."""
    if options.refines == "all" and not options.frozen_factors:
        return None
    names = PARTS[options.refines] - ({"factor"} if options.frozen_factors else set())
    sizes = zip(Parameters._fields, layout.sizes, strict=True)
    return torch.cat([torch.full((size,), name in names) for name, size in sizes])


def columns(passed: Forward, first: int, last: int | None) -> Forward:
    """Return a forward pass at some of its points."""
    part = slice(first, last)
    whitened = replace(passed.whitened, A=passed.whitened.A[..., part])
    return replace(passed, whitened=whitened, B=passed.B[..., part])


def joined(fit: Cotangents, utility: Cotangents, weight: Tensor) -> Cotangents:
    """Return the derivatives of a fit plus `weight` (`b`) times a utility; its points follow the data."""
    wide = weight[:, None, None]
    scalars = [one + weight * other for one, other in zip(fit[2:], utility[2:], strict=True)]
    return Cotangents(
        torch.cat([fit.grad_whitened, utility.grad_whitened * wide], -1),
        torch.cat([fit.grad_product, utility.grad_product * wide], -1),
        *scalars,
    )


def weighted(batch: Batch, weighting: Weighting) -> tuple[Batch, Tensor]:
    """Return the minibatch with the number of data that share its divergence, and the utility's weight, `b`."""
    if weighting == "minibatch":
        batch = batch._replace(data=torch.full_like(batch.data, batch.y.shape[-1]))
    return batch, torch.ones_like(batch.data) if weighting == "datum" else batch.data.reciprocal()


def eulbo_step(
    rows: Tensor,
    points: Tensor,
    boxes: Tensor,
    layout: Layout,
    kernel: SparseKernel,
    utility: SoftUtility,
    objective: Objective,
    options: EulboOptions,
    learning_rate_factor: float = 1.0,
) -> Step:
    """Return a step of maximising the EULBO, which moves `rows` and `points` in place; AABO, algorithm 1.

    Args:
        rows: `b x p`, parameters of the processes.
        points: `b x k x d`, the queries and a utility's own points, in the unit cube.
        boxes: `b x 2 x d`, boxes that the points are projected on.
        layout: layout of a row.
        kernel: kernel of the processes.
        utility: utility of the points.
        objective: ELBO or PPGPR.
        options: learning rates, clipping, weights.
        learning_rate_factor: factor of the learning rates.
    """
    processes = RowAdam(rows, options.learning_rate * learning_rate_factor, options.clip)
    queries = RowAdam(points.flatten(1), options.query_rate * learning_rate_factor, options.clip)
    free = refined_parameters(layout, options)
    free = None if free is None else free.to(rows.device)
    moving = utility.q if options.climb == "queries" else points.shape[1]
    low, high = boxes.unsqueeze(2).unbind(1)
    frozen = prepare(rows, layout, kernel).inducing.L if options.frozen_factors else None

    def prepared_for(index: Tensor | None) -> Prepared:
        return prepare(_taken(rows, index), layout, kernel, None if frozen is None else _taken(frozen, index))

    # The seeds of the last step and their processes after it: reused if the next step has the same seeds.
    last: tuple[list[int], Prepared] | None = None

    def step(going: Sequence[int], batch: Batch, epochs: Sequence[int]) -> Tensor:
        nonlocal last
        index = None if len(going) == len(rows) else torch.tensor(going, device=rows.device)
        mine = utility if index is None else utility.of(index)
        here = _taken(points, index)
        prepared = last[1] if last and last[0] == list(going) else prepared_for(index)
        broken = prepared.inducing.broken
        passed = prepared.at(torch.cat([batch.X, here], 1))
        n = batch.X.shape[1]
        batch, weight = weighted(batch, options.weighting)
        fit, to_fit = fidelity(columns(passed, 0, n), batch, objective)
        expected = mine.expected_log(PointPosteriors.of(passed, n))
        turns = [options.turns == "steps" or epoch % 2 == 0 for epoch in epochs]
        if options.refines != "nothing" and any(turns):
            gradient = passed.vjp(*joined(to_fit, expected.cotangents(), weight), divergence=-1 / batch.data)
            _move(processes, going, gradient if free is None else gradient * free, turns)
            # The query's step uses the updated process, and so does the next step of both.
            prepared = prepared_for(index)
        last = list(going), prepared
        turns = [options.turns == "steps" or epoch % 2 == 1 for epoch in epochs]
        if any(turns):
            broken = broken | prepared.inducing.broken
            passed = prepared.at(here)
            gradient = mine.expected_log(PointPosteriors.of(passed)).grad_points(passed)
            gradient[:, moving:] = 0.0
            _move(queries, going, gradient.flatten(1), turns)
            # Points that did not move may lie outside their box, and stay there.
            project(points[:, :moving], low, high, [seed for seed, turn in zip(going, turns, strict=True) if turn])
        return masked(fit + weight * expected.value, broken)

    return step


def _taken(values: Tensor, index: Tensor | None) -> Tensor:
    """Return the parts of the active seeds; nothing is copied if all are active."""
    return values if index is None else values[index]


def project(points: Tensor, low: Tensor, high: Tensor, seeds: Sequence[int]) -> None:
    """Move the points of some seeds into their boxes, in place.

    Args:
        points: `b x k x d`.
        low, high: corners of the boxes, `b x 1 x d`.
        seeds: indices of the seeds whose points move.
    """
    if len(seeds) == len(points):
        points.clamp_(low, high)
        return
    index = torch.tensor(seeds, device=points.device)
    points[index] = points[index].clamp(low[index], high[index])


def _move(adam: RowAdam, going: Sequence[int], gradient: Tensor, turns: Sequence[bool]) -> None:
    """Take a step of the seeds whose turn it is."""
    if all(turns):
        adam.step(going, gradient)
    elif any(turns):
        adam.step([seed for seed, turn in zip(going, turns, strict=True) if turn], gradient[list(turns)])


@torch.no_grad()
def maximise_eulbo(
    start: Tensor,
    points: Tensor,
    boxes: Tensor,
    layout: Layout,
    kernel: SparseKernel,
    utility: SoftUtility,
    sources: Callable[[], Sequence[Shuffled]],
    objective: Objective,
    options: EulboOptions,
) -> Outcome:
    """Return parameters and points of several seeds that maximise the EULBO, from a warm start; AABO, algorithm 1.

    Arguments are those of `eulbo_step`, and:
        start: `b x p`; neither it nor `points` is changed.
        sources: makes the minibatches of each seed, the same at each call.
    """

    def attempt(going: Sequence[int], learning_rate_factor: float) -> tuple[list[Tensor], list[Progress]]:
        index = torch.tensor(going, device=start.device)
        rows, here = start[index].clone(), points[index].clone()
        drawn = sources()
        step = eulbo_step(
            rows, here, boxes[index], layout, kernel, utility.of(index), objective, options, learning_rate_factor
        )
        progress = train([drawn[i] for i in going], options, step)
        return [rows, here], checked(rows, progress, layout, kernel)

    return retry([start, points], attempt, options.attempts)

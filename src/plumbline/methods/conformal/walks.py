"""Langevin chains of several searches at once, which learn density ratios along the way; CBO, Algorithm 4."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor

from plumbline.core.numbers import Array
from plumbline.methods.conformal.acquisition import ConformalAcquisition
from plumbline.methods.conformal.density_ratio import RatioClassifier, RatioClassifiers
from plumbline.methods.conformal.search import LangevinOptions, WithGradient, askable, langevin
from plumbline.methods.conformal.single_points import SinglePoints


@dataclass(frozen=True)
class Walk:
    """The chains' unit cube, scaled from `bounds`, beside the models', scaled from `domain` (both `2 x d`)."""

    bounds: Tensor
    domain: Tensor

    @cached_property
    def everywhere(self) -> bool:
        """Whether both cubes agree, as they do outside a search region."""
        return torch.equal(self.bounds, self.domain)

    def in_domain(self, U: Tensor) -> Tensor:
        """Map points of the walk's cube (`... x d`) to the models' cube."""
        if self.everywhere:
            return U
        low, high = self.corners
        return low + (high - low) * U

    @cached_property
    def corners(self) -> Tensor:
        """The corners of the walk's cube in the models' cube, `2 x d`."""
        return (self.bounds - self.domain[0]) / (self.domain[1] - self.domain[0])


def draw_rows(rows: Array, n: int, generators: Sequence[Generator]) -> Array:
    """Return `m x n x d` rows of `m x r x d`, drawn with replacement, each n by a generator of their own."""
    m, r, _ = rows.shape
    drawn = torch.empty(m, n, dtype=torch.int64)
    for own, generator in zip(drawn, generators, strict=True):
        torch.randint(r, (n,), generator=generator, out=own)
    return rows[np.arange(m)[:, None], drawn.numpy()]


def leaders(values: Tensor, chains: Tensor) -> Tensor:
    """Return the index of the best state of each chain, the greatest first.

    Args:
        values: values of the states, `n`.
        chains: chain of each state, `n`.
    """
    order = values.argsort(descending=True, stable=True)
    _, first = np.unique(chains[order].numpy(), return_index=True)
    return order[torch.from_numpy(first).sort().values]


@dataclass(frozen=True)
class Chains:
    """The chains of one search, about to start.

    Attributes:
        acquisition: the acquisition function without a shift.
        walk: the cube where they walk.
        classifier: of data and iterates; m = 1.
        first: starts, `chains x q x d`.
        options: options of the chains.
        generator: randomness of the round.
    """

    acquisition: ConformalAcquisition
    walk: Walk
    classifier: RatioClassifiers
    first: Tensor
    options: LangevinOptions
    generator: Generator


@dataclass(frozen=True)
class Walked:
    """The end of one search's chains.

    Attributes:
        acquisition: the acquisition function under the density ratio that they learned.
        walk: the cube where they walked.
        states: candidate states in that cube, `n x q x d`, and the chain of each, `n`; see `askable`.
    """

    acquisition: ConformalAcquisition
    walk: Walk
    states: tuple[Tensor, Tensor]


def walked(searches: Sequence[Chains]) -> list[Walked]:
    """Let the chains of several searches walk together, and learn a density ratio for each; CBO, Algorithm 4.

    What a search gets does not depend on the others, to the last bit.

    Args:
        searches: of one method, with data sets of one size; one alone, or all of single points and one outcome.
    """
    options, generators = searches[0].options, [search.generator for search in searches]
    corners = torch.stack([search.walk.corners for search in searches], dim=1).numpy()[:, :, None, None]
    low, width = corners[0], corners[1] - corners[0]
    data = np.stack([search.acquisition.processes[0].U.numpy() for search in searches])
    classifiers = RatioClassifiers.together([search.classifier for search in searches])
    first = torch.stack([search.first for search in searches]).numpy()
    differentiated = with_gradient([search.acquisition for search in searches], first.shape[-2], classifiers)

    def objective(U: Array) -> tuple[Array, Array]:
        value, gradient = differentiated(low + width * U)
        return value, width * gradient

    def learn(visited: Array) -> None:
        m, n, d = data.shape
        queries = draw_rows(visited.reshape(m, -1, d), n, generators)
        classifiers.update(data, low[:, 0] + width[:, 0] * queries)

    visited = torch.from_numpy(langevin(objective, first, options, generators, learn))
    return [
        Walked(
            search.acquisition.under(RatioClassifier(classifiers.only(i))),
            search.walk,
            askable(search.first, visited[i], options),
        )
        for i, search in enumerate(searches)
    ]


def with_gradient(acquisitions: Sequence[ConformalAcquisition], q: int, classifiers: RatioClassifiers) -> WithGradient:
    """Return acquisition functions of q points with their gradients, under classifiers that go on learning."""
    points = [part for one in acquisitions if (part := one.single_points()) is not None]
    if q == 1 and len(points) == len(acquisitions):
        together = replace(SinglePoints.together(points), ratios=classifiers)

        def of_single_points(U: Array) -> tuple[Array, Array]:
            value, gradient = together.value_and_gradient(U[:, :, 0])
            return value, gradient[:, :, None]

        return of_single_points
    (alone,) = acquisitions
    learning = alone.under(RatioClassifier(classifiers))

    def of_batches(U: Array) -> tuple[Array, Array]:
        value, gradient = learning.value_and_gradient_in_cube(torch.from_numpy(U[0]))
        return value.numpy()[None], gradient.numpy()[None]

    return of_batches

"""A box whose inputs change by blocks, one block per round in turn."""

import torch
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.spaces.box import Box
from plumbline.spaces.table import Table


class Blocks(Box):
    """Inputs that change by blocks, one block per round in turn, while all others are fixed; LOCBO, section V-D.

    Turns are by queries, hence a round has one. Designs and random search draw from the whole box.

    Attributes:
        indices: the inputs of each block.
        start: `d`, values of the fixed inputs in the first round. From then on they are those of the best observed
            query, as in the published code (the paper does not specify them).
        candidates: number of random values of a block that a method chooses from.
    """

    sequential = True

    def __init__(
        self, bounds: Tensor, indices: tuple[tuple[int, ...], ...], start: Tensor, candidates: int = 100
    ) -> None:
        super().__init__(bounds)
        self.indices = indices
        self.start = start
        self.candidates = candidates

    def settle(self, history: History, generator: Generator) -> Table:
        """Return `candidates` random points that differ in the block whose turn it is."""
        queries = history.queries
        block = list(self.indices[len(queries) % len(self.indices)])
        values = history.Y[history.initial :, 0].nan_to_num(nan=-torch.inf)
        best = queries[values.argmax()] if len(queries) else self.start
        X = best.repeat(self.candidates, 1)
        low, high = self.bounds[:, block]
        X[:, block] = low + (high - low) * torch.rand(
            self.candidates, len(block), generator=generator, dtype=self.bounds.dtype
        )
        return Table(self.bounds, X)

    def within(self, region: Tensor, history: History, least: int) -> "Blocks":
        """Return the same blocks, with values drawn in the region."""
        return Blocks(region, self.indices, self.start, self.candidates)

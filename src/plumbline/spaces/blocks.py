"""A box whose inputs change together, one block a round in turn."""

import torch
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.spaces.box import Box
from plumbline.spaces.table import Table


class Blocks(Box):
    """Inputs that change together, one block a round in turn, while all others keep their values; LOCBO, section V-D.

    Attributes:
        indices: the inputs of each block.
        start: `d`, what the other inputs keep in the first round; from then on they keep those of the best observation
            among the points asked for, as in the published code (the paper does not say).
        candidates: how many random values of a block a method chooses from.
    """

    def __init__(
        self, bounds: Tensor, indices: tuple[tuple[int, ...], ...], start: Tensor, candidates: int = 100
    ) -> None:
        super().__init__(bounds)
        self.indices = indices
        self.start = start
        self.candidates = candidates

    def settle(self, history: History, generator: Generator) -> Table:
        """Return `candidates` random points that differ in the block whose turn it is."""
        asked = history.queries
        block = list(self.indices[len(asked) % len(self.indices)])
        values = history.Y[history.initial :, 0].nan_to_num(nan=-torch.inf)
        kept = asked[values.argmax()] if len(asked) else self.start
        X = kept.repeat(self.candidates, 1)
        low, high = self.bounds[:, block]
        X[:, block] = low + (high - low) * torch.rand(
            self.candidates, len(block), generator=generator, dtype=self.bounds.dtype
        )
        return Table(self.bounds, X)

    def within(self, region: Tensor, history: History, least: int) -> "Blocks":
        """Return the same blocks, their values drawn in the region."""
        return Blocks(region, self.indices, self.start, self.candidates)

"""Inputs that change together, one block a round in turn."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor


@dataclass(frozen=True)
class Blocks:
    """Inputs that change together, one block a round in turn, while all others keep their values; LOCBO, section V-D.

    Attributes:
        indices: the inputs of each block.
        start: `d`, what the other inputs keep in the first round; from then on they keep those of the best observation
            among the points asked for, as in the published code (the paper does not say).
        candidates: how many random values of a block a method chooses from.
    """

    indices: tuple[tuple[int, ...], ...]
    start: Tensor
    candidates: int = 100

    def draw(self, asked: Tensor, values: Tensor, bounds: Tensor, generator: Generator) -> Tensor:
        """Return `candidates x d` points that differ in the block whose turn it is.

        Args:
            asked: `rounds x d`, the points asked for so far.
            values: `rounds`, what was observed there.
            bounds: `2 x d`.
            generator: seeded.
        """
        rounds = len(asked)
        block = list(self.indices[rounds % len(self.indices)])
        X = (asked[values.argmax()] if rounds > 0 else self.start).repeat(self.candidates, 1)
        low, high = bounds[:, block]
        X[:, block] = low + (high - low) * torch.rand(
            self.candidates, len(block), generator=generator, dtype=bounds.dtype
        )
        return X

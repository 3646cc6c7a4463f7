"""Methods without a model."""

from typing import Any

import torch
from botorch.utils.sampling import draw_sobol_samples
from torch import Generator

from plumbline.methods.base import Domain, History, Method, Proposal, methods
from plumbline.options import Options
from plumbline.seeding import draw_seed


@methods.register("random", Options)
class RandomSearch(Method):
    """Uniform random points, or rows of the table without replacement."""

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` independent draws."""
        if self.domain.candidates is not None:
            rest = self.remaining(history)
            return Proposal(rest[torch.randperm(len(rest), generator=generator)[:q]])
        low, high = self.domain.bounds
        return Proposal(low + (high - low) * torch.rand(q, len(low), generator=generator, dtype=low.dtype))


@methods.register("sobol", Options)
class SobolSearch(Method):
    """The next points of a scrambled Sobol sequence, or rows of the table nearest to them."""

    def __init__(self, domain: Domain, options: Options) -> None:
        super().__init__(domain, options)
        self.seed: int | None = None

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return the `q` points of the sequence that follow as many as were observed."""
        if self.seed is None:
            self.seed = draw_seed(generator)
        n = len(history)
        X = draw_sobol_samples(self.domain.bounds, n=n + q, q=1, seed=self.seed).squeeze(1)[n:]
        if self.domain.candidates is None:
            return Proposal(X)
        rest = self.remaining(history)
        spread = self.domain.bounds[1] - self.domain.bounds[0]
        rows: list[int] = []
        for distances in torch.cdist(X / spread, rest / spread)[: len(rest)]:
            distances[rows] = torch.inf
            rows.append(int(distances.argmin()))
        return Proposal(rest[rows])

    def state_dict(self) -> dict[str, Any]:
        """Return the seed of the scrambling, drawn in the first round."""
        return {"seed": self.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the same sequence."""
        self.seed = state.get("seed")

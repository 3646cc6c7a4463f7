"""Methods without a model."""

import torch
from botorch.utils.sampling import draw_sobol_samples
from torch import Generator

from plumbline.methods.base import History, Method, Proposal, methods
from plumbline.options import Options


class SobolOptions(Options):
    """Options of the Sobol method: the seed of the scrambling."""

    scramble_seed: int = 0


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


@methods.register("sobol", SobolOptions)
class SobolSearch(Method):
    """The next points of a scrambled Sobol sequence, or rows of the table nearest to them."""

    Options = SobolOptions

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return the `q` points of the sequence that follow as many as were observed."""
        n = len(history)
        X = draw_sobol_samples(self.domain.bounds, n=n + q, q=1, seed=self.options.scramble_seed).squeeze(1)[n:]
        if self.domain.candidates is None:
            return Proposal(X)
        rest = self.remaining(history)
        spread = self.domain.bounds[1] - self.domain.bounds[0]
        rows: list[int] = []
        for distances in torch.cdist(X / spread, rest / spread):
            distances[rows] = torch.inf
            rows.append(int(distances.argmin()))
        return Proposal(rest[rows])

"""Model-free methods: random and quasi-random search."""

from typing import Any

from botorch.utils.sampling import draw_sobol_samples
from torch import Generator

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.methods.base import Domain, Method, Proposal, methods


@methods.register("random", Options)
class RandomSearch(Method):
    """Uniform random points, or rows of the table without replacement."""

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` independent draws."""
        return Proposal(self.domain.space.draw(q, history, generator))


@methods.register("sobol", Options)
class SobolSearch(Method):
    """The next points of a scrambled Sobol sequence, or rows of the table nearest to them."""

    def __init__(self, domain: Domain, options: Options) -> None:
        super().__init__(domain, options)
        self.seed: int | None = None

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return the next `q` points of the sequence, after as many as there are observations."""
        if self.seed is None:
            self.seed = draw_seed(generator)
        n = len(history)
        X = draw_sobol_samples(self.domain.bounds, n=n + q, q=1, seed=self.seed).squeeze(1)[n:]
        return Proposal(self.domain.space.nearest(X, history))

    def state_dict(self) -> dict[str, Any]:
        """Return the seed of the scrambling, drawn in the first round."""
        return {"seed": self.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the sequence."""
        self.seed = state.get("seed")

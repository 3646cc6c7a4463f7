"""An optimiser with `ask` and `tell`, which knows nothing of plumbline."""

import numpy as np


class DifferentialEvolution:
    """A difference of two good points, added to a third: Storn and Price (1997)."""

    def __init__(self, bounds, seed, weight=0.7, parents=10):
        self.low, self.high = bounds
        self.generator = np.random.default_rng(seed)
        self.weight, self.parents = weight, parents
        self.points, self.values = [], []

    def tell(self, x, y):
        """Receive a value, to be maximised, and its point (`d`)."""
        self.points.append(x)
        self.values.append(y)

    def ask(self):
        """Return the next point, `d`."""
        best = np.argsort(self.values)[-self.parents :]
        base, one, other = (self.points[i] for i in self.generator.choice(best, 3))
        return np.clip(base + self.weight * (one - other), self.low, self.high)

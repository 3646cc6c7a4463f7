"""Optimisers with `ask` and `tell`, sound and otherwise; they know nothing of plumbline."""

import numpy as np


class Steps:
    """Normal steps from the best point, of a length that shrinks in each round."""

    def __init__(self, bounds, seed, length=0.2):
        self.low, self.high = bounds
        self.generator = np.random.default_rng(seed)
        self.length = length
        self.told = []

    def tell(self, x, y):
        self.told.append((y, tuple(x)))

    def ask(self):
        best = np.array(max(self.told)[1])
        step = self.length * (self.high - self.low) * self.generator.normal(size=len(best))
        return np.clip(best + step, self.low, self.high)

    def memory(self):
        return {"length": self.length}

    def remember(self, memory):
        self.length = 0.9 * memory["length"]


class Batch(Steps):
    """A batch whose size it is made with, in a list."""

    def __init__(self, bounds, seed, batch_size):
        super().__init__(bounds, seed)
        self.batch_size = batch_size

    def ask(self):
        return [list(super(Batch, self).ask()) for _ in range(self.batch_size)]


class Counted(Steps):
    """A batch of the size that is asked for."""

    def ask(self, n):
        return np.array([Steps.ask(self) for _ in range(n)])


class Odd(Steps):
    """Returns what it is made with."""

    def __init__(self, bounds, seed, answer):
        super().__init__(bounds, seed)
        self.answer = answer

    def ask(self):
        return self.answer


class Broken(Steps):
    """Raises when it has been told ten values."""

    def ask(self):
        if len(self.told) >= 10:
            raise RuntimeError("ten are enough")
        return super().ask()


class Leaking(Steps):
    """Remembers what no file can keep."""

    def memory(self):
        return {"generator": self.generator}


class Least(Steps):
    """Minimises."""

    def ask(self):
        return np.array(min(self.told)[1])


class Forgetful:
    """Remembers, and takes nothing over."""

    def ask(self):
        return [0.0]

    def tell(self, x, y):
        pass

    def memory(self):
        return {}


class Mute:
    """Has no `tell`."""

    def ask(self):
        return [0.0]


function = len

"""What every method has in common: what it is told, what it proposes, and the registry."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from torch import Generator, Tensor

from plumbline.calibration.predictive import SetPredictive
from plumbline.errors import PlumblineError
from plumbline.methods.questions import Question
from plumbline.options import parse
from plumbline.problems.blocks import Blocks
from plumbline.registry import Registry

methods = Registry("method", "plumbline.methods")

Predictor = Callable[[Tensor], SetPredictive]
"""Maps `n x d` points to the predictive distribution of observations there."""


class CovariateShift(Protocol):
    """Known densities of data, `p`, and of queries, `p'`."""

    def source(self, n: int, generator: Generator) -> Tensor:
        """Return `n x d` draws of `p`."""
        ...

    def target(self, n: int, generator: Generator) -> Tensor:
        """Return `n x d` draws of `p'`."""
        ...

    def log_ratio(self, X: Tensor) -> Tensor:
        """Return `log p'(x) / p(x)` at `... x d`: `...`."""
        ...


@dataclass(frozen=True)
class Domain:
    """Where a method may look.

    Attributes:
        bounds: `2 x d`.
        candidates: `N x d` rows to choose from, or None for the whole box.
        ref_point: `m`, what several outcomes must exceed to count in the hypervolume; None for one outcome.
        shift: where queries come from by design, if they are not chosen (offline checks of coverage).
        blocks: inputs that change together, for methods that search where a utility is greatest; None for all at once.
    """

    bounds: Tensor
    candidates: Tensor | None = None
    ref_point: Tensor | None = None
    shift: CovariateShift | None = None
    blocks: Blocks | None = None


@dataclass(frozen=True)
class History:
    """What has been observed.

    Attributes:
        X: `n x d`, in the problem's bounds.
        Y: `n x m` noisy values, to be maximised.
        initial: how many of the rows are the initial design; the method asked for the others.
    """

    X: Tensor
    Y: Tensor
    initial: int = 0

    def __len__(self) -> int:
        return len(self.X)

    def join(self, X: Tensor, Y: Tensor) -> "History":
        """Return the history with more rows."""
        return History(torch.cat([self.X, X]), torch.cat([self.Y, Y]), self.initial)


@dataclass(frozen=True)
class Proposal:
    """What a method asks for.

    Attributes:
        X: `q x d` points to evaluate.
        predict: maps `n x d` points to the predictive distribution of observations there, before any is made; None
            for methods without a model.
        acquisition: maps `n x d` points to the utility that was maximised, `n`; None for methods without one.
        seconds: wall time of the parts, `fit` and `acquire`.
        notes: numbers worth a column of a log (the scale of a recalibration, say).
        observed: `q x m` booleans, which outcomes of which point are asked for; None for all. The others are NaN.
    """

    X: Tensor
    predict: Predictor | None = None
    acquisition: Callable[[Tensor], Tensor] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, float] = field(default_factory=dict)
    observed: Tensor | None = None


class Method(ABC):
    """A policy: `ask` for points, `tell` what came of them.

    A method draws from the generator that it is given and from nothing else, and keeps in `state_dict` whatever it
    needs besides the history: a trial that was killed goes on from there.
    """

    together: ClassVar[int] = 1
    """How many seeds are asked at once, at most; 1 for one trial after another."""

    def __init__(self, domain: Domain, options: Any) -> None:
        """Make a method for a domain; `options` is of the class that it is registered with."""
        self.domain = domain
        self.options = options

    @abstractmethod
    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points to evaluate next."""

    @classmethod
    def ask_many(cls, questions: Sequence[Question]) -> list[Proposal | Exception]:
        """Return an answer to each question, or the error that it met; the questions are of seeds that run together.

        What a question is answered must not depend on which others come with it: a trial that was killed comes back
        in other company. A class that answers many at once does so inside their `surroundings`, on their `device`, and
        lets `torch.cuda.OutOfMemoryError` pass: it is asked again with half as many.
        """
        return [question.ask() for question in questions]

    def predictor(self, history: History) -> Predictor | None:
        """Return predictions from `history` alone, for points distributed like its own; None without a model."""
        return None

    def tell(self, X: Tensor, Y: Tensor) -> None:  # noqa: B027 - a hook
        """Take note of `Y` (`q x m`) observed at `X` (`q x d`); most methods read the history instead."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed method needs besides the history."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027 - a hook
        """Take up the state that `state_dict` returned."""

    def choices(self, history: History, generator: Generator) -> Tensor | None:
        """Return the `N x d` points to choose from in this round; None for the whole box.

        Raises:
            PlumblineError: no row of a table is left.
        """
        if self.domain.candidates is not None:
            return self.remaining(history)
        if self.domain.blocks is not None:
            asked, values = history.X[history.initial :], history.Y[history.initial :, 0]
            return self.domain.blocks.draw(asked, values, self.domain.bounds, generator)
        return None

    def remaining(self, history: History) -> Tensor:
        """Return the candidates (`N x d`) that were not evaluated yet.

        Raises:
            PlumblineError: none is left.
        """
        assert self.domain.candidates is not None
        seen = (self.domain.candidates.unsqueeze(1) == history.X).all(dim=-1).any(dim=-1)
        rest = self.domain.candidates[~seen]
        if len(rest) == 0:
            raise PlumblineError("every row of the table has been evaluated: lower `rounds` or enlarge `pool`")
        return rest


def build_method(name: str, options: dict[str, Any], domain: Domain) -> Method:
    """Return the method called `name` for `domain`.

    Raises:
        PlumblineError: unknown name, or options that are not the method's.
    """
    entry = methods[name]
    return entry.build(domain, parse(entry.options, options, f"method {name!r}"))

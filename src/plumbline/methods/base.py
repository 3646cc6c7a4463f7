"""What every method has in common: where it may look, what it proposes, and the registry."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.options import parse
from plumbline.core.outcomes import CovariateShift, Outcome
from plumbline.methods.ask import AskRequest
from plumbline.methods.proposal import Predictor, Proposal
from plumbline.registry.registry import Registry
from plumbline.spaces.base import Space

methods = Registry("method", "plumbline.methods")

Takes = Literal[
    "anything", "one objective", "several objectives", "one objective and constraints", "what its base takes"
]
"""The outcomes that a method can make use of; of a wrapper its base decides, which was asked before."""

Feature = Literal["steps", "new points", "lengthscales", "gp", "one gp", "kernel", "batched fit", "shared gp"]

FEATURES: dict[Feature, str] = {
    "steps": "steps of a round that a wrapper can replace",
    "new points": "rounds that ask for points not observed before",
    "lengthscales": "a surrogate with lengthscales",
    "gp": "an exact Gaussian process, or one an outcome, as surrogate",
    "one gp": "one exact Gaussian process as surrogate",
    "kernel": "an option `model` that says the kernel",
    "batched fit": "Gaussian processes fitted to many data sets at once",
    "shared gp": "proposals from a Gaussian process that other methods share",
}
"""What a method may provide, and another need of its base or its members."""


@dataclass(frozen=True)
class Domain:
    """What a method may know of a problem.

    Attributes:
        space: where it may look.
        outcomes: what an evaluation returns.
        shift: where queries come from by design, if they are not chosen (offline checks of coverage).
    """

    space: Space
    outcomes: tuple[Outcome, ...] = (Outcome("objective"),)
    shift: CovariateShift | None = None

    @property
    def bounds(self) -> Tensor:
        """The box around the space, `2 x d`."""
        return self.space.bounds

    @property
    def takes(self) -> Takes:
        """Which methods it is for."""
        roles = [outcome.role for outcome in self.outcomes]
        if roles == ["objective"]:
            return "one objective"
        if set(roles) == {"objective"}:
            return "several objectives"
        return "one objective and constraints" if roles.count("objective") == 1 else "anything"


class Method(ABC):
    """A policy: `ask` for points, `tell` what came of them.

    A method draws from the generator that it is given and from nothing else, and keeps in `state_dict` whatever it
    needs besides the history: a trial that was killed goes on from there.
    """

    takes: ClassVar[Takes] = "anything"
    """The outcomes that it can make use of."""
    provides: ClassVar[frozenset[Feature]] = frozenset()
    """What others can rely on that have it as their base or member."""
    passes_on: ClassVar[frozenset[Feature]] = frozenset()
    """What it provides as soon as its base does."""
    lockstep_size: int = 1
    """How many seeds are asked at once, at most; 1 for one trial after another."""

    def __init__(self, domain: Domain, options: Any) -> None:
        """Make a method for a domain; `options` is of the class that it is registered with."""
        self.domain = domain
        self.options = options

    @abstractmethod
    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points to evaluate next."""

    @classmethod
    def ask_many(cls, requests: Sequence[AskRequest]) -> list[Proposal | Exception]:
        """Return an answer to each request, or the error that it met; the requests are of seeds in lockstep.

        An answer must not depend on which other requests come with it: a trial that was killed comes back in other
        company. A class that answers many at once does so inside their `isolated` blocks, on their `device`, and
        lets `torch.cuda.OutOfMemoryError` pass: it is asked again with half as many.
        """
        return [request.ask() for request in requests]

    def predictor(self, history: History) -> Predictor | None:
        """Return predictions from `history` alone, for points distributed like its own; None without a model."""
        return None

    def recommend(self, history: History, generator: Generator) -> Tensor:
        """Return the point that is held to be the optimum of one objective, `1 x d`: where the best observation is.

        Raises:
            PlumblineError: each evaluation failed.
        """
        y = history.Y[:, 0]
        if bool(y.isnan().all()):
            raise PlumblineError("nothing to recommend: each evaluation failed")
        return history.X[y.nan_to_num(-torch.inf).argmax()].unsqueeze(0)

    def tell(self, X: Tensor, Y: Tensor) -> None:  # noqa: B027 - a hook
        """Take note of `Y` (`q x m`) observed at `X` (`q x d`); most methods read the history instead."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed method needs besides the history."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027 - a hook
        """Take up the state that `state_dict` returned."""


def build_method(name: str, options: dict[str, Any], domain: Domain) -> Method:
    """Return the method called `name` for `domain`.

    Raises:
        PlumblineError: unknown name, options that are not the method's, or outcomes that it cannot make use of.
    """
    entry = methods[name]
    method: Method = entry.build(domain, parse(entry.options, options, f"method {name!r}"))
    refuse_other_outcomes(name, method, domain)
    return method


def lockstep_size(name: str, options: dict[str, Any]) -> int:
    """Return how many seeds of a method are asked at once, at most: as many as its innermost base says."""
    entry = methods[name]
    base = getattr(parse(entry.options, options, f"method {name!r}"), "base", None)
    if base is not None:
        return lockstep_size(base.name, base.options)
    return getattr(entry.build, "lockstep_size", 1)


def features(name: str, options: dict[str, Any], role: str = "method") -> frozenset[Feature]:
    """Return what a method with these options provides, of its base what it passes on; errors call it by its `role`.

    Raises:
        PlumblineError: unknown name, or options of a wrapper that are not its own.
    """
    entry = methods[name]
    provided: frozenset[Feature] = getattr(entry.build, "provides", frozenset())
    passed_on: frozenset[Feature] = getattr(entry.build, "passes_on", frozenset())
    if not passed_on:
        return provided
    base = parse(entry.options, options, f"{role} {name!r}").base  # type: ignore[attr-defined]
    return provided | (passed_on & features(base.name, base.options))


def refuse_lack(role: str, name: str, options: dict[str, Any], needs: frozenset[Feature]) -> None:
    """Raise PlumblineError, naming methods that would do, where a base or member does not provide all of `needs`."""
    lacking = [feature for feature in FEATURES if feature in needs - features(name, options, role)]
    if not lacking:
        return
    able = [
        other for other, entry in methods.entries().items() if needs <= getattr(entry.build, "provides", frozenset())
    ]
    named = f"{lacking[0]!r} ({FEATURES[lacking[0]]})"
    raise PlumblineError(f"{role} {name!r} does not provide {named}: use {', '.join(able)}")


def refuse_other_outcomes(name: str, method: Method, domain: Domain) -> None:
    """Raise PlumblineError, naming methods that would do, where `method` cannot make use of the domain's outcomes."""
    if method.takes in ("anything", "what its base takes", domain.takes):
        return
    named = ", ".join(f"{outcome.name} ({outcome.role})" for outcome in domain.outcomes)
    there = domain.takes if {outcome.role for outcome in domain.outcomes} == {"objective"} else named
    fit = [
        other
        for other, entry in methods.entries().items()
        if getattr(entry.build, "takes", "anything") in ("anything", domain.takes)
    ]
    raise PlumblineError(f"method {name!r} is for {method.takes}; this problem has {there}: use {', '.join(fit)}")

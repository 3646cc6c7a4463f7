"""The interface of methods: the domain, the registry, and the features that wrappers rely on."""

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError, kind_of
from plumbline.core.history import History
from plumbline.core.libraries import absent
from plumbline.core.named_numbers import refuse_odd_numbers
from plumbline.core.options import parse
from plumbline.core.outcomes import CovariateShift, Outcome
from plumbline.methods.ask import AskRequest
from plumbline.methods.proposal import Predictor, Proposal
from plumbline.registry.registry import Registry
from plumbline.spaces.base import Space, checked_points
from plumbline.spaces.blocks import Blocks
from plumbline.spaces.box import Box

methods = Registry("method", "plumbline.methods")

Takes = Literal[
    "anything", "one objective", "several objectives", "one objective and constraints", "what its base takes"
]
"""The outcomes that a method supports; those of a wrapper are its base's, which is checked first."""

SpaceKind = Literal["anything", "a box"]
"""The spaces that a method searches; a box may have stepped inputs."""

Feature = Literal[
    "steps",
    "new points",
    "lengthscales",
    "one posterior",
    "gp",
    "one gp",
    "kernel",
    "batched fit",
    "shared gp",
    "lockstep",
]

FEATURES: dict[Feature, str] = {
    "steps": "steps of a round that a wrapper can replace",
    "new points": "rounds that ask for points not observed before",
    "lengthscales": "a surrogate with lengthscales",
    "one posterior": "one posterior of the objective as surrogate, to draw from",
    "gp": "an exact Gaussian process, or one an outcome, as surrogate",
    "one gp": "one exact Gaussian process as surrogate",
    "kernel": "an option `model` that says the kernel",
    "batched fit": "Gaussian processes fitted to many data sets at once",
    "shared gp": "proposals from a Gaussian process that other methods share",
    "lockstep": "steps that several seeds take jointly",
}
"""Features that a method may provide, and that another may need of its base or members."""


@dataclass(frozen=True)
class Domain:
    """The part of a problem known to a method.

    Attributes:
        space: the search space.
        outcomes: the outcomes of an evaluation.
        shift: the distribution of queries if these are drawn rather than chosen (offline checks of coverage).
        noise_free: whether the problem declares that observations have no noise.
    """

    space: Space
    outcomes: tuple[Outcome, ...] = (Outcome("objective"),)
    shift: CovariateShift | None = None
    noise_free: bool = False

    @property
    def bounds(self) -> Tensor:
        """The box around the space, `2 x d`."""
        return self.space.bounds

    @property
    def takes(self) -> Takes:
        """The kind of methods that support the domain."""
        roles = [outcome.role for outcome in self.outcomes]
        if roles == ["objective"]:
            return "one objective"
        if set(roles) == {"objective"}:
            return "several objectives"
        return "one objective and constraints" if roles.count("objective") == 1 else "anything"


class Method(ABC):
    """A policy: `ask` proposes points, `tell` receives their observations.

    A method draws only from the generator given to it. Its `state_dict` holds all state besides the history, so that an
    interrupted trial can be resumed.
    """

    takes: ClassVar[Takes] = "anything"
    """The supported outcomes."""
    spaces: ClassVar[SpaceKind] = "anything"
    """The supported spaces."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions its results depend on and a trial's key has; they may be absent."""
    provides: ClassVar[frozenset[Feature]] = frozenset()
    """Features for methods that have it as their base or member."""
    passes_on: ClassVar[frozenset[Feature]] = frozenset()
    """Features that it provides if its base does."""
    lockstep_size: int = 1
    """Greatest number of seeds in one `ask_many`; 1 for one trial after another."""

    def __init__(self, domain: Domain, options: Any) -> None:
        """Make a method for a domain; `options` is an instance of its registered class of options."""
        self.domain = domain
        self.options = options

    @abstractmethod
    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points to evaluate next."""

    @classmethod
    def ask_many(cls, requests: Sequence[AskRequest]) -> list[Proposal | Exception]:
        """Return a proposal for each request, or the error that it raised; the requests are of seeds in lockstep.

        A proposal must not depend on the other requests, which differ when a trial is resumed. A class that answers
        several jointly does so inside their `isolated` blocks and on their `device`. It does not catch
        `torch.cuda.OutOfMemoryError`: the runner retries with half as many requests.
        """
        return [request.ask() for request in requests]

    def predictor(self, history: History) -> Predictor | None:
        """Return predictions from `history` alone, for points distributed like its own; None without a model."""
        return None

    def recommend(self, history: History, generator: Generator) -> Tensor:
        """Return the estimated maximiser of one objective, `1 x d`: the point of the best observation.

        Raises:
            PlumblineError: every evaluation failed.
        """
        y = history.Y[:, 0]
        if bool(y.isnan().all()):
            raise PlumblineError("nothing to recommend: every evaluation failed")
        return history.X[y.nan_to_num(-torch.inf).argmax()].unsqueeze(0)

    def tell(self, X: Tensor, Y: Tensor) -> None:  # noqa: B027 - a hook
        """Receive `Y` (`q x m`), observed at `X` (`q x d`); most methods read the history instead."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of a resumed method besides the history."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027 - a hook
        """Restore a state from `state_dict`."""


def build_method(name: str, options: dict[str, Any], domain: Domain) -> Method:
    """Return the method called `name` for `domain`.

    Raises:
        PlumblineError: unknown name, options of another method, an absent library, or unsupported outcomes or space.
    """
    entry = methods[name]
    parsed = parse(entry.options, options, f"method {name!r}")
    refuse_absent_libraries(name, getattr(entry.build, "libraries", ()))
    method: Method = entry.build(domain, parsed)
    refuse_other_outcomes(name, method, domain)
    refuse_other_spaces(name, method, domain.space)
    return method


def lockstep_size(name: str, options: dict[str, Any], wanted: int = 1) -> int:
    """Return the greatest number of seeds of a method in one `ask_many`.

    Args:
        name: of the method.
        options: its options.
        wanted: the number where its steps can be taken jointly, if greater than that of its innermost base.
    """
    entry = methods[name]
    base = getattr(parse(entry.options, options, f"method {name!r}"), "base", None)
    usual = getattr(entry.build, "lockstep_size", 1) if base is None else lockstep_size(base.name, base.options)
    return max(usual, wanted) if "lockstep" in features(name, options) else usual


def features(name: str, options: dict[str, Any], role: str = "method") -> frozenset[Feature]:
    """Return the features of a method with these options, including those passed on from its base.

    Raises:
        PlumblineError: unknown name, or invalid options of a wrapper; the message calls the method by its `role`.
    """
    entry = methods[name]
    provided: frozenset[Feature] = getattr(entry.build, "provides", frozenset())
    passed_on: frozenset[Feature] = getattr(entry.build, "passes_on", frozenset())
    if not passed_on:
        return provided
    base = parse(entry.options, options, f"{role} {name!r}").base  # type: ignore[attr-defined]
    return provided | (passed_on & features(base.name, base.options))


def refuse_lack(role: str, name: str, options: dict[str, Any], needs: frozenset[Feature]) -> None:
    """Raise PlumblineError, naming suitable methods, if a base or member does not provide all of `needs`."""
    lacking = [feature for feature in FEATURES if feature in needs - features(name, options, role)]
    if not lacking:
        return
    able = [
        other for other, entry in methods.entries().items() if needs <= getattr(entry.build, "provides", frozenset())
    ]
    named = f"{lacking[0]!r} ({FEATURES[lacking[0]]})"
    raise PlumblineError(f"{role} {name!r} does not provide {named}: use {', '.join(able)}")


def refuse_other_outcomes(name: str, method: Method, domain: Domain) -> None:
    """Raise PlumblineError, naming suitable methods, if `method` does not support the domain's outcomes."""
    if method.takes in ("anything", "what its base takes", domain.takes):
        return
    named = ", ".join(f"{outcome.name} ({outcome.role})" for outcome in domain.outcomes)
    there = domain.takes if {outcome.role for outcome in domain.outcomes} == {"objective"} else named
    fit = [
        other
        for other, entry in methods.entries().items()
        if getattr(entry.build, "takes", "anything") in ("anything", domain.takes)
        and _is_searched(getattr(entry.build, "spaces", "anything"), domain.space)
        and not absent(getattr(entry.build, "libraries", ()))
    ]
    raise PlumblineError(f"method {name!r} is for {method.takes}; this problem has {there}: use {', '.join(fit)}")


def refuse_absent_libraries(name: str, libraries: Sequence[str]) -> None:
    """Raise PlumblineError, with the command that installs it, if a library of the method `name` is absent."""
    for library in absent(libraries):
        raise PlumblineError(f'method {name!r}: the package {library} is not installed: pip install "plumbline[peers]"')


def refuse_other_spaces(name: str, method: Method, space: Space) -> None:
    """Raise PlumblineError if `method` does not search spaces of this kind."""
    if _is_searched(method.spaces, space):
        return
    kind = "rows of a table" if space.finite else "inputs that change in blocks"
    raise PlumblineError(f"method {name!r} searches a box; this problem has {kind}: use a method such as 'logei'")


def _is_searched(kind: SpaceKind, space: Space) -> bool:
    return kind == "anything" or (isinstance(space, Box) and not isinstance(space, Blocks))


def checked(name: str, proposal: object, request: AskRequest, domain: Domain) -> Proposal:
    """Return a proposal, with a copy of its points, that holds what was asked for.

    Args:
        name: name of the method, for messages.
        proposal: what it returned.
        request: what it was asked.
        domain: where.

    Raises:
        PlumblineError: the message says what the method returned, and what is wanted.
    """
    whose = f"method {name!r}"
    if not isinstance(proposal, Proposal):
        raise PlumblineError(f"{whose} returned {kind_of(proposal)}: a Proposal is wanted")
    X = checked_points(whose, proposal.X, domain.space)
    # A table may have fewer rows left.
    if len(X) != request.q and len(X) != len(domain.space.draw(request.q, request.history, Generator())):
        raise PlumblineError(f"{whose} proposed {len(X)} points, {request.q} were asked for")
    if domain.space.finite and (outside := domain.space.rows_outside(X)).any():
        raise PlumblineError(f"{whose} proposed x = {X[int(outside.nonzero()[0])].tolist()}: it is no row of the table")
    for what, numbers in ("notes", proposal.notes), ("seconds", proposal.seconds):
        refuse_odd_numbers(whose, what, numbers)
    wanted = (len(X), len(domain.outcomes))
    observed = proposal.observed
    if observed is not None and not (isinstance(observed, Tensor) and observed.dtype == torch.bool):
        raise PlumblineError(f"{whose} returned `observed` that is no tensor of booleans, {wanted[0]} x {wanted[1]}")
    if observed is not None and observed.shape != wanted:
        raise PlumblineError(f"{whose}: a proposal asks for outcomes {tuple(observed.shape)}; there are {wanted}")
    return replace(proposal, X=X)


def refuse_lost_state(name: str, state: object) -> None:
    """Raise PlumblineError if a checkpoint would not give a method's `state_dict` back, naming the entry."""
    whose = f"method {name!r}"
    if not isinstance(state, dict):
        raise PlumblineError(f"{whose}: its `state_dict` is a {type(state).__name__}, not a dictionary")
    lost = next((key for key, value in state.items() if not _is_kept({key: value})), None)
    if lost is not None:
        raise PlumblineError(
            f"{whose}: entry {lost!r} of its `state_dict`, a {type(state[lost]).__name__}, cannot be saved and read "
            "back: keep tensors, numbers, text, and lists and dictionaries of these"
        )


def _is_kept(state: dict[Any, Any]) -> bool:
    """Whether a state survives a checkpoint, which runs no code when it is read."""
    file = io.BytesIO()
    try:
        torch.save(state, file)
        file.seek(0)
        torch.load(file, weights_only=True)
    except Exception:  # any object may refuse to be pickled in its own way
        return False
    return True

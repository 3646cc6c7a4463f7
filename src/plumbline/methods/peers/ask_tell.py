"""Any optimiser with `ask` and `tell`, of a library or the user's own, named by the path of its class."""

import math
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field, JsonValue, field_validator

from plumbline.core.errors import PlumblineError, kind_of
from plumbline.core.history import History
from plumbline.core.inputs import Code
from plumbline.core.options import Options
from plumbline.methods.base import Domain, Proposal, methods
from plumbline.methods.named_class import class_at, class_path, parameters_of, refuse_arguments
from plumbline.methods.peers.adapter import Array, PeerMethod


class AskTellOptions(Options):
    """Options of an optimiser that is named by its path.

    Attributes:
        optimiser: its class, `package.module:Class` or `package.module.Class`.
        arguments: arguments of the class besides those that the method knows.
        minimise: whether it minimises: it is then told `-y`.
    """

    optimiser: Annotated[str, Code()]
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    minimise: bool = False

    @field_validator("optimiser")
    @classmethod
    def _is_a_path(cls, path: str) -> str:
        return class_path(path)


KNOWN = ("bounds", "seed", "q", "batch_size")
"""Arguments that the method fills in."""


def optimiser_class(path: str) -> type:
    """Return the class of optimisers at a path.

    Raises:
        PlumblineError: there is no such module or class, or it lacks `ask`, `tell`, or one of `memory` and `remember`.
    """
    found = class_at(path, f"optimiser {path!r}")
    for name in ("ask", "tell"):
        if not callable(getattr(found, name, None)):
            raise PlumblineError(
                f"optimiser {path!r} has no method {name!r}: `ask()`, which returns a point, "
                "and `tell(x, y)` are wanted: write a class around it that has them"
            )
    if hasattr(found, "memory") != hasattr(found, "remember"):
        raise PlumblineError(
            f"optimiser {path!r} has one of `memory()` and `remember(memory)`: both or none are wanted"
        )
    return found


def takes_number(ask: Any) -> bool:
    """Whether an `ask` cannot be called without the number of points."""
    return any(one.default is one.empty for one in parameters_of(ask).values())


def asked_points(whose: str, optimiser: Any, q: int, dim: int) -> Array:
    """Return `q` points of an optimiser, `q x d`: its `ask` is called until there are so many.

    Args:
        whose: the optimiser, for messages.
        optimiser: whose `ask` returns a point (`d`) or some (`k x d`).
        q: their number.
        dim: d.

    Raises:
        PlumblineError: what it returned are no points, or too many.
    """
    rows: list[Array] = []
    counted = takes_number(optimiser.ask)
    wanted = f"{dim} or k x {dim} is wanted"
    while len(rows) < q:
        asked = optimiser.ask(q - len(rows)) if counted else optimiser.ask()
        try:
            given = np.asarray(asked)
            # Truth values, dates and complex numbers would become other numbers, and None would be NaN.
            if given.dtype.kind in "bcmM" or (given.dtype.kind == "O" and None in given.ravel().tolist()):
                raise TypeError(given.dtype)
            points = given.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            what = "None" if asked is None else f"{kind_of(asked)} that is no array of numbers"
            raise PlumblineError(f"{whose}: its `ask` returned {what}: {wanted}") from error
        if points.ndim == 0 and not isinstance(asked, np.ndarray):
            raise PlumblineError(f"{whose}: its `ask` returned {kind_of(asked)}: {wanted}")
        if points.ndim not in (1, 2) or points.shape[-1] != dim or not len(points):
            shape = " x ".join(map(str, points.shape)) or "()"
            raise PlumblineError(f"{whose}: its `ask` returned an array of shape {shape}: {wanted}")
        rows.extend(np.atleast_2d(points))
    if len(rows) > q:
        raise PlumblineError(
            f"{whose}: its `ask` returned {len(rows)} points where q = {q} are evaluated a round: "
            "let it take their number, as `ask(q)` or in its `__init__`"
        )
    return np.array(rows)


@methods.register("ask-tell", AskTellOptions)
class AskTell(PeerMethod):
    """Any optimiser with `ask` and `tell` that is named by the path of its class.

    In each round it is made anew with the round's seed, told the history point by point in its order, without failed
    evaluations, and asked. What its class takes by the name of `bounds` (`2 x d`), `seed`, `q` or `batch_size` is
    filled in. Values are to be maximised, unless `minimise` is set.
    """

    options: AskTellOptions

    def __init__(self, domain: Domain, options: AskTellOptions) -> None:
        """Make the method.

        Raises:
            PlumblineError: there is no such class, or its arguments are not known.
        """
        super().__init__(domain, options)
        self.whose = f"optimiser {options.optimiser!r}"
        self.made = optimiser_class(options.optimiser)
        refuse_arguments(self.whose, self.made, options.arguments, KNOWN)
        self.state: dict[str, Any] = {}

    def optimiser(self, q: int, seed: int) -> Any:
        """Return a new optimiser, without data, that remembers what the last one did."""
        known = {"bounds": self.sides.copy(), "seed": seed, "q": q, "batch_size": q}
        taken = {name: value for name, value in known.items() if name in parameters_of(self.made)}
        made = self.made(**taken | self.options.arguments)
        if self.state:
            made.remember(dict(self.state))
        return made

    def propose(self, history: History, q: int, seed: int) -> Proposal:
        """Return the `q` points of a new optimiser that was told the history."""
        optimiser = self.optimiser(q, seed)
        sign = -1.0 if self.options.minimise else 1.0
        for x, y in zip(history.X.numpy(), history.Y[:, 0].tolist(), strict=True):
            if not math.isnan(y):
                optimiser.tell(x.copy(), sign * y)
        started = perf_counter()
        X = torch.from_numpy(asked_points(self.whose, optimiser, q, self.sides.shape[1]))
        seconds = perf_counter() - started
        self.state = optimiser.memory() if hasattr(optimiser, "memory") else {}
        return Proposal(X, seconds={"acquire": seconds})

    def state_dict(self) -> dict[str, Any]:
        """Return what the last optimiser remembers."""
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what the last optimiser remembered."""
        self.state = state

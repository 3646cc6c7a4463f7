"""State of the process that numbers depend on, and that a script, a notebook or another module may have changed."""

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch


class State(NamedTuple):
    """What libraries take as given: nearly every method has other last digits under another default type.

    Attributes:
        dtype: torch's default type, of the constants that libraries make.
        grad: whether torch keeps gradients.
        errors: what NumPy does about floating-point errors, by their kind.
    """

    dtype: torch.dtype
    grad: bool
    errors: dict[str, Any]


USUAL = State(torch.float32, True, {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"})
"""The state when Python starts."""


def present() -> State:
    """Return the state of the process."""
    return State(torch.get_default_dtype(), torch.is_grad_enabled(), dict(np.geterr()))


def put(state: State) -> None:
    """Set the state of the process."""
    torch.set_default_dtype(state.dtype)
    torch.set_grad_enabled(state.grad)
    np.seterr(**state.errors)


_LEFT: dict[str, State] = {}
"""The state that one's own modules left when they were loaded, by name: Python does not run them again."""


@contextmanager
def kept_state(own: Collection[str] = ()) -> Iterator[None]:
    """Run a block in the usual state; with modules of one's own, in the present one. The present one is put back.

    What one of these modules sets as it is loaded is set again in every later block with it.

    Args:
        own: names of one's own modules that the block may load.
    """
    before, loaded = present(), {module for module in own if module in sys.modules}
    put(next((_LEFT[module] for module in own if module in _LEFT), before) if own else USUAL)
    began = present()
    try:
        yield
    finally:
        if (left := present()) != began:
            _LEFT.update({module: left for module in own if module in sys.modules and module not in loaded})
        put(before)

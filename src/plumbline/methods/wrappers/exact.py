"""Methods around others whose surrogate is an exact Gaussian process, or one an outcome."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

from pydantic import model_validator

from plumbline.methods.base import methods
from plumbline.methods.wrapper import ComposedWrapperOptions
from plumbline.models.gp.process import GP

Surrogate = GP | list[GP]
"""A process, or one an outcome."""


def surrogate_kind(name: str) -> Any:
    """Return the type that the `fit` of the method called `name` says that it returns; None if it has no `fit`."""
    fit = getattr(methods[name].build, "fit", None)
    return getattr(fit, "__annotations__", {}).get("return")


def processes_of(surrogate: Surrogate) -> list[GP]:
    """Return the processes of a surrogate, one an outcome."""
    return surrogate if isinstance(surrogate, list) else [surrogate]


def changed(surrogate: Surrogate, change: Callable[[GP], GP]) -> Surrogate:
    """Return a surrogate with each of its processes changed."""
    return [change(one) for one in surrogate] if isinstance(surrogate, list) else change(surrogate)


class ExactWrapperOptions(ComposedWrapperOptions):
    """Options of every method around another with exact processes."""

    wants: ClassVar[str] = "a method with exact Gaussian processes, such as 'ucb'"

    @model_validator(mode="after")
    def _base_has_exact_processes(self) -> Self:
        if surrogate_kind(self.base.name) not in (GP, list[GP], Surrogate):
            raise ValueError(f"base: it wraps {self.wants}, and {self.base.name!r} is none")
        return self

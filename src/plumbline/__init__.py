"""Plumbline: a reproducibility study of Bayesian optimisation under imperfect models.

The functions of `plumbline.api` are here by name, imported when they are first used:

    import plumbline as pb

    pb.methods()                              # entries of config/methods: one row per method
    runs = pb.run("ei", "ackley-2", seeds=3)  # trials: one row per seed and evaluation
    pb.run("ucb", "ackley-2", seeds=3)
    pb.compare(["ei", "ucb"], "ackley-2")     # means, and differences paired by seed, with intervals
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import plumbline.methods

if TYPE_CHECKING:
    from plumbline.api import (
        PlumblineError,
        atlas,
        bench,
        claims,
        classes,
        compare,
        diagnose,
        experiments,
        methods,
        run,
        runs,
        seeds,
        show,
        tasks,
    )

__all__ = [
    "PlumblineError",
    "atlas",
    "bench",
    "claims",
    "classes",
    "compare",
    "diagnose",
    "experiments",
    "methods",
    "run",
    "runs",
    "seeds",
    "show",
    "tasks",
]


class _Methods(ModuleType):
    """The folder of methods, which answers to `pb.methods()` too: Python binds a folder's name to the package."""

    def __call__(self) -> Any:
        return import_module("plumbline.api").methods()


plumbline.methods.__class__ = _Methods


def __getattr__(name: str) -> Any:
    """Return a function of `plumbline.api`: pandas, and torch for trials, are imported at its first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("plumbline.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Public libraries as contenders: those of plumbline's methods, with their defaults unless it says otherwise.

A library's optimiser is kept from round to round, as its users do; as a method of a trial it is built anew in each.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, NamedTuple

from peers.ours import PlumblinePeer
from peers.protocol import Array, Contender, Instance, Peer
from plumbline.core.errors import unknown
from plumbline.methods.base import build_method
from plumbline.methods.peers.adapter import Optimiser, OptimiserMethod, quiet
from plumbline.registry.references import MethodRef

INSTALL = "python -m pip install -r envs/peers.lock"
"""What installs them, beside what envs/requirements.lock has."""


class LibraryPeer:
    """An optimiser of a library in the middle of its run."""

    def __init__(self, optimiser: Optimiser) -> None:
        self.optimiser = optimiser

    def ask(self) -> Array:
        """Return the point to evaluate next, `d`."""
        with quiet():
            return self.optimiser.ask(1)[0]

    def tell(self, x: Array, y: float) -> None:
        """Pass the value `y` at `x` (`d`) on."""
        with quiet():
            self.optimiser.tell(x, y)


def peer(name: str, **options: Any) -> Callable[[Instance], Peer]:
    """Return what starts the method called `name`: its library's optimiser, or the method where it keeps none."""

    def start(instance: Instance) -> Peer:
        method = build_method(name, options, instance.domain)
        if not isinstance(method, OptimiserMethod):
            return PlumblinePeer(MethodRef(name=name, options=options), instance)
        with quiet():
            return LibraryPeer(method.optimiser(instance.seed, 1))

    return start


class Library(NamedTuple):
    """How to build a peer, and the distributions that its results depend on, its own first."""

    build: Callable[[Instance], Peer]
    distributions: tuple[str, ...]


LIBRARIES: Mapping[str, Library] = MappingProxyType(
    {
        "botorch": Library(peer("botorch-loop", raw_samples=256), ("botorch", "gpytorch", "torch")),
        "optuna": Library(peer("optuna", sampler="gp"), ("optuna", "torch")),
        "scikit-optimize": Library(peer("skopt", acquisition="EI"), ("scikit-optimize", "scikit-learn")),
        "bayesian-optimization": Library(peer("bayesian-optimization"), ("bayesian-optimization", "scikit-learn")),
        "ax": Library(peer("ax"), ("ax-platform", "botorch", "torch")),
        "smac": Library(peer("smac"), ("smac", "scikit-learn")),
    }
)


def installed(libraries: Mapping[str, Library], wanted: list[str]) -> tuple[list[Contender], list[str]]:
    """Return the contenders among `wanted` whose library is installed, and the names of the others.

    Raises:
        PlumblineError: there is no peer of a name.
    """
    found, missing = [], []
    for name in wanted:
        if name not in libraries:
            raise unknown("peer", name, libraries)
        try:
            versions = ", ".join(f"{one} {version(one)}" for one in libraries[name].distributions)
        except PackageNotFoundError:
            missing.append(name)
        else:
            found.append(Contender(name, versions, libraries[name].build))
    return found, missing

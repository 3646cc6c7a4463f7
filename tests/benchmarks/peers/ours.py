"""Plumbline's methods as contenders, by their names in the public interface."""

from importlib.metadata import version

import numpy as np
import torch

from peers.protocol import Array, Contender, Instance
from plumbline.api.running import TrialRequest, entries_and_stand_ins, find_repository
from plumbline.cli.trial import settings_of
from plumbline.core import seeding
from plumbline.core.history import History
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import build_method
from plumbline.registry.catalogue import catalogue
from plumbline.registry.references import MethodRef, canonical_json, canonical_options, short_digest
from plumbline.registry.source_digest import source_digest
from plumbline.store.keys import methods_of


class PlumblinePeer:
    """A method with the history and the random streams that a trial of the same seed gives it."""

    def __init__(self, reference: MethodRef, instance: Instance) -> None:
        self.instance = instance
        self.method = build_method(reference.name, reference.options, instance.domain)
        self.X: list[Array] = []
        self.y: list[float] = []

    def ask(self) -> Array:
        """Return the proposal of the next round, `d`."""
        initial = len(self.instance.y)
        X, Y = torch.from_numpy(np.array(self.X)), torch.tensor(self.y, dtype=torch.float64).unsqueeze(-1)
        stream = seeding.generator(self.instance.identity, self.instance.seed, "method", len(Y) - initial + 1)
        proposal = AskRequest(self.method, History(X, Y, initial), 1, stream).ask()
        if isinstance(proposal, Exception):
            raise proposal
        return proposal.X[0].numpy()

    def tell(self, x: Array, y: float) -> None:
        """Receive the value at `x` (`d`); the method hears of its own queries alone, as in a trial."""
        self.X.append(x)
        self.y.append(y)
        if len(self.y) > len(self.instance.y):
            self.method.tell(torch.from_numpy(x).unsqueeze(0), torch.tensor([[y]], dtype=torch.float64))


def find_method(name: str) -> MethodRef:
    """Return what a name stands for: an entry of config/methods, else a registered class.

    Args:
        name: perhaps with options of the method: `logei:model.kernel=rbf:search.restarts=5`.

    Raises:
        PlumblineError: an unknown name or option.
    """
    entry, *pairs = name.split(":")
    entries, stand_ins = entries_and_stand_ins(find_repository(), real=False)
    kind = "method" if entry in entries.methods else "method_class"
    request = TrialRequest(**{kind: entry}, problem="branin", options=settings_of(pairs))  # type: ignore[arg-type]
    return request.spec(entries, stand_ins, 0).method


def our_method(name: str) -> Contender:
    """Return a method of plumbline as a contender; its version changes with its options and its source."""
    reference = find_method(name)
    modules = {catalogue().find("method", one.name).module for one in methods_of(reference.name, reference.options)}
    options = canonical_options("method", reference.name, reference.options)
    digest = short_digest(canonical_json([reference.name, options, source_digest(*sorted(modules))]))
    versions = f"plumbline source {digest[:8]}, torch {version('torch')}"
    return Contender(name, versions, lambda instance: PlumblinePeer(reference, instance), ours=True)

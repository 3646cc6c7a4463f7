"""Selection of the kernel of best fit in each round: BOWH, dynamic kernel selection."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

import torch
from linear_operator.utils.errors import NanError
from pydantic import ConfigDict, Field, model_validator
from torch import Generator

from plumbline.core.history import History
from plumbline.core.options import Options, parse
from plumbline.methods.base import Domain, build_method, features, methods
from plumbline.methods.composed import Choice, ComposedMethod, Round, Steps
from plumbline.methods.wrapper import ComposedWrapper, ComposedWrapperOptions
from plumbline.methods.wrappers.exact import Surrogate, processes_of
from plumbline.models.algebra import Kernel
from plumbline.models.failures import FIT_FAILURES
from plumbline.models.gp.criteria import CRITERIA, Criterion
from plumbline.models.gp.fit import ModelOptions
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import conditioned
from plumbline.models.standardisation import standardisation_of

OWN = -1
"""The note of a round in which the base's own kernel replaced all candidates."""


class KernelNotFittedWarning(RuntimeWarning):
    """The fit with one of the kernels failed: the kernel was left out of the round."""


class NoKernelFittedWarning(RuntimeWarning):
    """The fits with all kernels failed: the round uses the last round's kernel, or the base's own."""


class Candidate(Options):
    """A candidate kernel; without `ard` it may be its name alone.

    Attributes:
        kernel: kernel of a Gaussian process.
        ard: one lengthscale an input, or one for all; null for the setting of the base's model.
    """

    model_config = ConfigDict(json_schema_extra={"type": ["object", "string"]})

    kernel: Kernel
    ard: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_a_word(cls, data: Any) -> Any:
        return {"kernel": data} if isinstance(data, str) else data

    def model(self, base: ModelOptions) -> ModelOptions:
        """Return the base's model with this kernel."""
        ard = base.ard if self.ard is None else self.ard
        return type(base).model_validate({**base.model_dump(), "kernel": self.kernel, "ard": ard})


EVERY_KERNEL = tuple(Candidate(kernel=kernel) for kernel in ("rbf", "matern12", "matern32", "matern52"))


class KernelSelectionOptions(ComposedWrapperOptions):
    """Options of kernel selection.

    Attributes:
        base: the method whose kernel is selected; priors and other options of its `model` stay.
        kernels: the candidates.
        criterion: criterion of the selection, greatest is best: log marginal likelihood, minus half of the BIC, or the
            leave-one-out log predictive density. Each is at the fitted hyperparameters, without their priors and
            summed over outcomes. `random` draws each kernel with equal probability.
    """

    needs = frozenset({"steps", "gp", "kernel"})

    kernels: tuple[Candidate, ...] = Field(default=EVERY_KERNEL, min_length=1)
    criterion: Criterion | Literal["random"] = "likelihood"

    @model_validator(mode="after")
    def _kernels_fit_the_base(self) -> Self:
        self.models()
        return self

    def models(self) -> list[ModelOptions]:
        """Return the base's model with each of the kernels."""
        base = parse(methods[self.base.name].options, self.base.options, f"base {self.base.name!r}")
        return [candidate.model(base.model) for candidate in self.kernels]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Selected:
    """The selection of a round.

    Attributes:
        kernel: index among the candidates; OWN for the base's own.
        surrogate: surrogate fitted with this kernel.
    """

    kernel: int
    surrogate: Surrogate


@methods.register("kernel-selection", KernelSelectionOptions)
class KernelSelectionMethod(ComposedWrapper):
    """Any method with Gaussian processes whose kernel is selected in each round.

    A kernel whose fit fails is left out of the round, with the event `KernelNotFittedWarning`. If all fits fail, the
    event is `NoKernelFittedWarning`, and the round uses the last round's kernel and hyperparameters. In the first round
    it fits the base's own model, and raises its error if that fails too.
    """

    options: KernelSelectionOptions

    def __init__(self, domain: Domain, options: KernelSelectionOptions) -> None:
        super().__init__(domain, options)
        base = options.base
        self.models_of = options.models()
        self.candidates = [
            cast(
                ComposedMethod,
                build_method(base.name, {**base.options, "model": model.model_dump()}, domain),
            )
            for model in self.models_of
        ]
        self.several = "one gp" not in features(base.name, base.options)
        self.kernel = OWN
        self.at: list[Hyperparameters] = []

    @property
    def steps(self) -> Steps[Any]:
        """The base's steps with the surrogate of the selected kernel."""
        return replace(self.base.steps, fit=self.fit, fit_round=self.fit_round, notes=self.notes)

    def fit(self, data: History) -> Surrogate:
        """Return the surrogate with the best kernel; under random selection, with that of the last round."""
        return self.selected(data).surrogate

    def fit_round(self, round: Round) -> Surrogate:
        """Return the surrogate with the kernel selected in the round, and store its hyperparameters."""
        chosen = self.selected(round.data, round.generator)
        self.kernel = chosen.kernel
        self.at = [process.at for process in processes_of(chosen.surrogate)]
        return chosen.surrogate

    def selected(self, data: History, generator: Generator | None = None) -> Selected:
        """Return the kernel selected for some data, and the surrogate with it.

        Args:
            data: the observations.
            generator: random generator of a random selection; None for the last round's kernel.
        """
        by_chance = self.options.criterion == "random"
        best, greatest = None, -math.inf
        for place in self._order(generator) if by_chance else range(len(self.candidates)):
            try:
                surrogate = self.candidates[place].steps.fit(data)
                score = self._score(surrogate, place)
            except FIT_FAILURES as error:
                message = f"kernel {self.options.kernels[place].kernel!r}: {error}"
                warnings.warn(message, KernelNotFittedWarning, stacklevel=2)
                continue
            if score > greatest:
                best, greatest = Selected(place, surrogate), score
            if by_chance:
                break
        return best or self._instead(data)

    def _order(self, generator: Generator | None) -> list[int]:
        """Return the candidates in a random order, or the last round's before the others."""
        if generator is not None:
            return torch.randperm(len(self.candidates), generator=generator).tolist()
        return sorted(range(len(self.candidates)), key=lambda place: place != self.kernel)

    def _score(self, surrogate: Surrogate, place: int) -> float:
        """Return the criterion of a surrogate; raise NanError if it is not finite."""
        criterion = self.options.criterion
        rule = CRITERIA["likelihood" if criterion == "random" else criterion]
        score = sum(rule(process, self.models_of[place]) for process in processes_of(surrogate))
        if not math.isfinite(score):
            raise NanError("its criterion is not finite")
        return score

    def _instead(self, data: History) -> Selected:
        """Return the last round's kernel at its hyperparameters, or the base's own before any."""
        warnings.warn("no kernel could be fitted", NoKernelFittedWarning, stacklevel=3)
        if not self.at:
            return Selected(OWN, self.base.steps.fit(data))
        options = self.base.options.model if self.kernel == OWN else self.models_of[self.kernel]
        box = options.box(self.domain.bounds)
        observed = torch.isfinite(data.Y).unbind(-1)
        processes = [
            conditioned(data.X[there], y[there], box, options.kernel, at, standardisation_of(box, y[there, 0]))
            for there, y, at in zip(observed, data.Y.split(1, dim=-1), self.at, strict=True)
        ]
        return Selected(self.kernel, processes if self.several else processes[0])

    def notes(self, choice: Choice[Any], round: Round) -> dict[str, float]:
        """Return the base's notes and the index of the kernel among the candidates, from 0."""
        return {**self.base.steps.notes(choice, round), "kernel": float(self.kernel)}

    def state_dict(self) -> dict[str, Any]:
        """Return the last round's kernel with its hyperparameters, and the base's state."""
        return {**super().state_dict(), "kernel": self.kernel, "at": [tuple(at) for at in self.at]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore kernel and hyperparameters, and the base's state."""
        super().load_state_dict(state)
        if state:
            self.kernel, self.at = state["kernel"], [Hyperparameters(*at) for at in state["at"]]

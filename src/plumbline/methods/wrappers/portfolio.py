"""The common base of portfolios: several acquisition functions over one surrogate."""

import math
import warnings
from typing import ClassVar, Self, cast

import torch
from botorch.acquisition import AcquisitionFunction
from linear_operator.utils.errors import NanError
from pydantic import Field, model_validator
from torch import Tensor

from plumbline.acquisition.analytic import AnalyticAcquisition, upper_confidence_bound
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.methods.base import Domain, Feature, build_method, methods, refuse_lack
from plumbline.methods.composed import Choice, Round
from plumbline.methods.gp.entropy_search import InformationFailedWarning
from plumbline.methods.gp.single_outcome import GPMethod, GPOptions
from plumbline.models.failures import FIT_FAILURES, SEARCH_FAILURES
from plumbline.models.gp.process import GP
from plumbline.registry.references import Json, MethodChoice

FAILURES = (*FIT_FAILURES, *SEARCH_FAILURES, InformationFailedWarning)
"""Errors of members on numerical failure; an entropy search warns, and falls back on noisy expected improvement."""


class MemberFailedWarning(RuntimeWarning):
    """A member of a portfolio failed numerically: it was left out of the round."""


class PortfolioOptions(GPOptions):
    """Options of every portfolio.

    Attributes:
        model: model of the shared surrogate; members have none of their own.
        search, mc_samples: options of the members that give none.
        members: the methods that propose, two or more: names, or names and options.
    """

    needs: ClassVar[frozenset[Feature]] = frozenset({"shared gp"})
    """Features that each member must provide."""

    members: tuple[MethodChoice, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _members_share_a_surrogate(self) -> Self:
        for member in self.members:
            name = member.name
            try:
                refuse_lack("member", name, member.options, self.needs)
                if "model" in member.options:
                    raise ValueError(f"members: {name!r} has a `model`: it is the portfolio's, which all of them share")
                parse(methods[name].options, self.options_of(member), f"member {name!r}")
            except PlumblineError as error:
                raise ValueError(str(error)) from error
        return self

    def options_of(self, member: MethodChoice) -> Json:
        """Return a member's options with the shared model, and with the portfolio's search where it has none."""
        shared = {"search": self.search.model_dump(), "mc_samples": self.mc_samples}
        return {**shared, **member.options, "model": self.model.model_dump()}

    @property
    def names(self) -> list[str]:
        """Names of the members in notes, numbered from the second of a name on."""
        plain = [member.name for member in self.members]
        earlier = [plain[:i].count(name) for i, name in enumerate(plain)]
        return [f"{name}-{count + 1}" if count else name for name, count in zip(plain, earlier, strict=True)]


class Portfolio(GPMethod):
    """Several methods over one Gaussian process; a subclass chooses the member that proposes in a round.

    A member that fails numerically is left out of the round, with the event `MemberFailedWarning`. So is an entropy
    search that would fall back on noisy expected improvement, since that may be another member.
    """

    provides = GPMethod.provides - {"shared gp"}
    options: PortfolioOptions

    def __init__(self, domain: Domain, options: PortfolioOptions) -> None:
        super().__init__(domain, options)
        self.members = [
            cast(GPMethod, build_method(member.name, options.options_of(member), domain)) for member in options.members
        ]

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return the posterior mean; the search maximises the proposing member's acquisition function instead."""
        return AnalyticAcquisition(surrogate, upper_confidence_bound(0.0), unit=surrogate.standardisation.scale)

    def proposed(self, place: int, surrogate: GP, round: Round) -> Choice[GP] | None:
        """Return a member's choice; None, with a warning, on numerical failure."""
        member = self.members[place]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", InformationFailedWarning)
                choice = member.search(member.utility(surrogate, round), surrogate, round)
            if not bool(torch.isfinite(choice.X).all()):
                raise NanError("its proposal is not finite")
        except FAILURES as error:
            message = f"member {self.options.names[place]!r}: {' '.join(str(error).split())}"
            warnings.warn(message, MemberFailedWarning, stacklevel=2)
            return None
        return choice

    def shares(self, chances: Tensor) -> dict[str, float]:
        """Return notes of the members' probabilities."""
        return {f"weight.{name}": chance for name, chance in zip(self.options.names, chances.tolist(), strict=True)}

    def nobody(self) -> PlumblineError:
        """Return the error of a round in which every member failed."""
        return PlumblineError(f"no member of the portfolio came to a proposal: {', '.join(self.options.names)}")


def best(Y: Tensor) -> float:
    """Return the greatest of `n x 1` observations; minus infinity where all of them failed."""
    return float(Y.nan_to_num(nan=-math.inf).max())

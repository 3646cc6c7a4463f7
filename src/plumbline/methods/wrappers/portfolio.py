"""Several acquisition functions over one surrogate; what is shared by the rules that say which of them proposes."""

import math
import warnings
from typing import ClassVar, Self, cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import ModelFittingError, OptimizationGradientError
from linear_operator.utils.errors import NanError, NotPSDError
from pydantic import Field, model_validator
from torch import Tensor

from plumbline.acquisition.analytic import AnalyticAcquisition, upper_confidence_bound
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.methods.base import Domain, Feature, build_method, methods, refuse_lack
from plumbline.methods.composed import Choice, Round
from plumbline.methods.gp.entropy_search import InformationFailedWarning
from plumbline.methods.gp.single_outcome import GPMethod, GPOptions
from plumbline.models.gp.process import GP
from plumbline.registry.references import Json, MethodChoice

FAILURES = (
    ModelFittingError,
    NanError,
    NotPSDError,
    OptimizationGradientError,
    torch.linalg.LinAlgError,
    InformationFailedWarning,
)
"""What a member may raise where its arithmetic ends; an entropy search warns of that, and asks another instead."""


class MemberFailedWarning(RuntimeWarning):
    """A member of a portfolio came to no proposal: it was left out of the round."""


class PortfolioOptions(GPOptions):
    """Options of every portfolio.

    Attributes:
        model: of the one surrogate; members have none of their own.
        search, mc_samples: of the members that give none.
        members: the methods that propose, two or more: names, or names and options.
    """

    needs: ClassVar[frozenset[Feature]] = frozenset({"shared gp"})
    """What each member must provide."""

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
        """Return a member's options with the model of all, and with the portfolio's search where it has none."""
        shared = {"search": self.search.model_dump(), "mc_samples": self.mc_samples}
        return {**shared, **member.options, "model": self.model.model_dump()}

    @property
    def names(self) -> list[str]:
        """What members are called in notes: their names, numbered from the second of a name on."""
        plain = [member.name for member in self.members]
        earlier = [plain[:i].count(name) for i, name in enumerate(plain)]
        return [f"{name}-{count + 1}" if count else name for name, count in zip(plain, earlier, strict=True)]


class Portfolio(GPMethod):
    """Several methods over one exact Gaussian process; a subclass says which of them proposes in a round.

    A member whose arithmetic ends is left out of the round, which has the event `MemberFailedWarning`; so is an entropy
    search that would ask noisy expected improvement instead, which is another member's business.
    """

    provides = GPMethod.provides - {"shared gp"}
    options: PortfolioOptions

    def __init__(self, domain: Domain, options: PortfolioOptions) -> None:
        super().__init__(domain, options)
        self.members = [
            cast(GPMethod, build_method(member.name, options.options_of(member), domain)) for member in options.members
        ]

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return the posterior mean; what is maximised is that of the member which proposes."""
        return AnalyticAcquisition(surrogate, upper_confidence_bound(0.0))

    def proposed(self, place: int, surrogate: GP, round: Round) -> Choice[GP] | None:
        """Return what a member would ask for; None, with a warning, where its arithmetic ends."""
        member = self.members[place]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", InformationFailedWarning)
                choice = member.search(member.utility(surrogate, round), surrogate, round)
            if not bool(torch.isfinite(choice.X).all()):
                raise NanError("its proposal is no number")
        except FAILURES as error:
            message = f"member {self.options.names[place]!r}: {' '.join(str(error).split())}"
            warnings.warn(message, MemberFailedWarning, stacklevel=2)
            return None
        return choice

    def shares(self, chances: Tensor) -> dict[str, float]:
        """Return notes of the members' chances."""
        return {f"weight.{name}": chance for name, chance in zip(self.options.names, chances.tolist(), strict=True)}

    def nobody(self) -> PlumblineError:
        """Return the error of a round in which no member came to a proposal."""
        return PlumblineError(f"no member of the portfolio came to a proposal: {', '.join(self.options.names)}")


def best(Y: Tensor) -> float:
    """Return the greatest of `n x 1` observations; minus infinity where all of them failed."""
    return float(Y.nan_to_num(nan=-math.inf).max())

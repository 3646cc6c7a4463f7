"""A search that another one checks in each round: how much of the utility does it find?"""

import warnings
from dataclasses import replace
from typing import Any, Self, cast

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import model_validator

from plumbline.core.errors import PlumblineError
from plumbline.core.streams import kept_streams
from plumbline.methods.base import Domain, Method, build_method, methods, refuse_lack
from plumbline.methods.composed import Choice, ComposedMethod, Round, Steps
from plumbline.methods.wrapper import ComposedWrapper, ComposedWrapperOptions, Wrapper
from plumbline.registry.references import MethodChoice


class AuditedSearchOptions(ComposedWrapperOptions):
    """Options of a search that is audited.

    Attributes:
        base: the method; its own search chooses the queries.
        audit: a method with the same surrogate as `base`, whose search is the measure. Its utility has the same
            maximiser and is easier to climb, or its starts are better: `logei` within `informed-search` for `ei`.
    """

    needs = frozenset({"steps", "new points", "one posterior"})

    audit: MethodChoice

    @model_validator(mode="after")
    def _audit_searches(self) -> Self:
        try:
            refuse_lack("audit", self.audit.name, self.audit.options, self.needs)
        except PlumblineError as error:
            raise ValueError(str(error)) from error
        return self


@methods.register("audited-search", AuditedSearchOptions)
class AuditedSearch(ComposedWrapper):
    """Any method that searches, as it is; each round notes how its search compares with that of another method.

    Both maximise under the same surrogate. The notes `utility_of_search` and `utility_of_audit` are the base's utility
    of the points that its search and the audit's return. A later refinement of the query is not audited. Queries do not
    depend on the audit. Its state, such as a trust region, does not go on from round to round.
    """

    options: AuditedSearchOptions

    def __init__(self, domain: Domain, options: AuditedSearchOptions) -> None:
        super().__init__(domain, options)
        self.audit = cast(ComposedMethod, build_method(options.audit.name, options.audit.options, domain))
        if surrogate_fit(self.base) is not surrogate_fit(self.audit):
            raise PlumblineError(
                f"audit {options.audit.name!r} has another surrogate than base {options.base.name!r}, and cannot "
                "search under it: use a method of the same family"
            )

    @property
    def steps(self) -> Steps[Any]:
        """The base's steps, with another search after its search."""
        return replace(self.base.steps, search=self.search)

    def search(self, utility: AcquisitionFunction, surrogate: Any, round: Round) -> Choice[Any]:
        """Return the base's choice, with the utility that it and the audit find."""
        choice = self.base.steps.search(utility, surrogate, round)
        # What the audit draws or warns of is not the method's.
        with kept_streams(), warnings.catch_warnings(action="ignore"):
            audited = self.audited(surrogate, round)
        with torch.no_grad():
            found, best = (float(utility(X.unsqueeze(0))) for X in (choice.X, audited.X))
        return replace(choice, notes={**choice.notes, "utility_of_search": found, "utility_of_audit": best})

    def audited(self, surrogate: Any, round: Round) -> Choice[Any]:
        """Return the audit's choice in the same region."""
        steps = self.audit.steps
        own = replace(round, generator=round.generator.clone_state())
        own = replace(own, space=steps.search_region(surrogate, own))
        return steps.search(steps.utility(surrogate, own), surrogate, own)


def surrogate_fit(method: Method) -> Any:
    """Return the function that fits a method's surrogate, or that of its innermost base."""
    while isinstance(method, Wrapper):
        method = method.base
    return getattr(type(method), "fit", None)

"""Methods around other methods, by composition."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

from botorch.acquisition import AcquisitionFunction
from pydantic import model_validator
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.options import Options, parse
from plumbline.methods.base import Domain, Method, Predictor, Proposal, build_method, methods
from plumbline.methods.composed import Choice, ComposedMethod, Round
from plumbline.registry.references import MethodChoice
from plumbline.spaces.base import Space


class WrapperOptions(Options):
    """Options of every method around another.

    Attributes:
        base: the method that is wrapped: its name, or name and options.
    """

    wraps: ClassVar[type[Any]] = Method
    """The kind of method that can be the base."""

    wants: ClassVar[str] = "a method"
    """That kind in words."""

    base: MethodChoice

    @model_validator(mode="after")
    def _base_can_be_wrapped(self) -> Self:
        try:
            entry = methods[self.base.name]
            parse(entry.options, self.base.options, f"base {self.base.name!r}")
        except PlumblineError as error:
            raise ValueError(str(error)) from error
        if not (isinstance(entry.build, type) and issubclass(entry.build, self.wraps)):
            raise ValueError(f"base: it wraps {self.wants}, and {self.base.name!r} is none")
        return self


class ComposedWrapperOptions(WrapperOptions):
    """Options of every method around another that has a surrogate, a utility and a search."""

    wraps: ClassVar[type[Any]] = ComposedMethod
    wants: ClassVar[str] = "a method with a surrogate, a utility and a search"


class Wrapper(Method):
    """Any method, as it is: a subclass changes what it wants to change.

    Attributes:
        base: the wrapped method.
    """

    takes = "what its base takes"
    options: WrapperOptions

    def __init__(self, domain: Domain, options: WrapperOptions) -> None:
        super().__init__(domain, options)
        self.base = build_method(options.base.name, options.base.options, domain)
        self.together = self.base.together

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return what the base asks for."""
        return self.base.ask(history, q, generator)

    def predictor(self, history: History) -> Predictor | None:
        """Return the base's predictions."""
        return self.base.predictor(history)

    def recommend(self, history: History, generator: Generator) -> Tensor:
        """Return what the base holds to be the optimum."""
        return self.base.recommend(history, generator)

    def tell(self, X: Tensor, Y: Tensor) -> None:
        """Tell the base."""
        self.base.tell(X, Y)

    def state_dict(self) -> dict[str, Any]:
        """Return the base's state."""
        return {"base": self.base.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the base's state."""
        self.base.load_state_dict(state.get("base", {}))


class ComposedWrapper(Wrapper, ComposedMethod[Any]):
    """Any method with a surrogate, a utility and a search, as it is; a subclass changes one of the three."""

    base: ComposedMethod[Any]
    options: ComposedWrapperOptions

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points of great utility."""
        return ComposedMethod.ask(self, history, q, generator)

    def predictor(self, history: History) -> Predictor:
        """Return predictions from `history` alone."""
        return ComposedMethod.predictor(self, history)

    def model_free_start(self, history: History, q: int, generator: Generator) -> Proposal | None:
        """Return what the base asks for without its surrogate, if anything."""
        return self.base.model_free_start(history, q, generator)

    def seen(self, history: History) -> History:
        """Return what the base's surrogate is to see."""
        return self.base.seen(history)

    def fit(self, data: History) -> Any:
        """Return the base's surrogate."""
        return self.base.fit(data)

    @classmethod
    def models(cls, asked: Sequence[tuple[ComposedMethod[Any], Round]]) -> list[Any]:
        """Return the bases' surrogates; a wrapper with a `fit` of its own is asked by it."""
        if cls.fit is not ComposedWrapper.fit:
            return super().models(asked)
        bases = [(cast(Self, method).base, round) for method, round in asked]
        return type(bases[0][0]).models(bases)

    @classmethod
    def refine(cls, chosen: Sequence[tuple[ComposedMethod[Any], Choice[Any], Round]]) -> list[Choice[Any]]:
        """Return what the bases make of the choices."""
        bases = [(cast(Self, method).base, choice, round) for method, choice, round in chosen]
        return type(bases[0][0]).refine(bases)

    def where(self, surrogate: Any, round: Round) -> Space:
        """Return where the base looks."""
        return self.base.where(surrogate, round)

    def utility(self, surrogate: Any, round: Round) -> AcquisitionFunction:
        """Return the base's utility."""
        return self.base.utility(surrogate, round)

    def search(self, utility: AcquisitionFunction, surrogate: Any, round: Round) -> Choice[Any]:
        """Return what the base's search chooses."""
        return self.base.search(utility, surrogate, round)

    def predictive(self, surrogate: Any) -> Predictor:
        """Return the base's predictions."""
        return self.base.predictive(surrogate)

    def forecast(self, choice: Choice[Any]) -> Predictor:
        """Return the predictions that the base is judged by."""
        return self.base.forecast(choice)

    def notes(self, choice: Choice[Any], round: Round) -> dict[str, float]:
        """Return the base's numbers."""
        return self.base.notes(choice, round)

    def register_forecast(self, proposal: Proposal) -> None:
        """Let the base take note of what is proposed."""
        self.base.register_forecast(proposal)

    def lengthscales(self, surrogate: Any) -> Tensor:
        """Return those of the base's surrogate."""
        return self.base.lengthscales(surrogate)

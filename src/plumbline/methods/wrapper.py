"""Methods around other methods, by composition."""

from typing import Any, ClassVar, Self

from pydantic import model_validator
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.options import Options, parse
from plumbline.methods.base import Domain, Feature, Method, Predictor, Proposal, build_method, methods, refuse_lack
from plumbline.methods.composed import ComposedMethod, Steps
from plumbline.methods.lockstep import LockstepMethod
from plumbline.registry.references import MethodChoice


class WrapperOptions(Options):
    """Options of every method around another.

    Attributes:
        base: the method that is wrapped: its name, or name and options.
    """

    needs: ClassVar[frozenset[Feature]] = frozenset()
    """Features that the base must provide."""

    base: MethodChoice

    @model_validator(mode="after")
    def _base_can_be_wrapped(self) -> Self:
        try:
            refuse_lack("base", self.base.name, self.base.options, self.needs)
            parse(methods[self.base.name].options, self.base.options, f"base {self.base.name!r}")
        except PlumblineError as error:
            raise ValueError(str(error)) from error
        return self


class ComposedWrapperOptions(WrapperOptions):
    """Options of every method that replaces steps of another."""

    needs = frozenset({"steps"})


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
        self.lockstep_size = self.base.lockstep_size

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return the base's proposal."""
        return self.base.ask(history, q, generator)

    def predictor(self, history: History) -> Predictor | None:
        """Return the base's predictions."""
        return self.base.predictor(history)

    def recommend(self, history: History, generator: Generator) -> Tensor:
        """Return the base's recommendation."""
        return self.base.recommend(history, generator)

    def tell(self, X: Tensor, Y: Tensor) -> None:
        """Tell the base."""
        self.base.tell(X, Y)

    def state_dict(self) -> dict[str, Any]:
        """Return the base's state."""
        return {"base": self.base.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the base's state."""
        self.base.load_state_dict(state.get("base", {}))


class ComposedWrapper(LockstepMethod, Wrapper):
    """Any method of steps, as it is; a subclass replaces some: `replace(self.base.steps, notes=self.notes)`."""

    passes_on = frozenset({"steps", "new points", "lengthscales", "one posterior", "gp", "one gp", "lockstep"})
    base: ComposedMethod
    options: ComposedWrapperOptions

    @property
    def steps(self) -> Steps[Any]:
        """The base's steps."""
        return self.base.steps

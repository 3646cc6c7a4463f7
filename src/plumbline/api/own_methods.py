"""What a reader means by a method of their own: an entry, a registered class, or a class by its path."""

import inspect
from typing import TYPE_CHECKING, NamedTuple

from plumbline.api.running import NestedOptions
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.inputs import module_and_name, refuse_file
from plumbline.core.nested import merge
from plumbline.registry.catalogue import catalogue
from plumbline.registry.references import MethodRef
from plumbline.registry.registry import import_module

if TYPE_CHECKING:
    from plumbline.study.methods_and_tasks import MethodsAndTasks

SURROGATE_OF = "atlas-logei"
"""The entry whose Gaussian process acquisition functions share."""


class OwnMethod(NamedTuple):
    """A method of one's own.

    Attributes:
        name: in tables.
        ref: what is run.
        place: file and line of its class; empty where it is named by no path.
    """

    name: str
    ref: MethodRef
    place: str = ""


def own_method(target: str, options: NestedOptions, entries: "MethodsAndTasks") -> OwnMethod:
    """Return what a target stands for: an entry, a registered class, or a class by its path.

    Raises:
        PlumblineError: nothing of this name, code that cannot be imported, or a class that is none of both kinds.
    """
    if target in entries.methods:
        ref = entries.methods[target].ref
        return OwnMethod(target, ref.model_copy(update={"options": merge(ref.options, dict(options))}))
    if catalogue().has("method", target):
        return OwnMethod(target, MethodRef(name=target, options=dict(options)))
    try:
        refuse_file(target)
    except ValueError as error:
        raise PlumblineError(str(error)) from error
    module, name = module_and_name(target)
    if not module or not name:
        raise unknown(
            "target",
            target,
            [*entries.methods, *catalogue().method],
            "plumbline methods",
        )
    import_module(module)
    kind, known = kind_of_class(target)
    if kind == "botorch-acquisition":
        if SURROGATE_OF not in entries.methods:
            raise PlumblineError(
                f"class {target!r}: config/methods has no entry {SURROGATE_OF!r}, whose model it takes"
            )
        known["model"] = entries.methods[SURROGATE_OF].ref.options["model"]
    ref = MethodRef(name=kind, options=merge(known, dict(options)))
    return OwnMethod(ref.label, ref, place_of_class(target))


def kind_of_class(target: str) -> tuple[str, dict[str, object]]:
    """Return the registered method that a class at a path runs as, with the option that names the class.

    Raises:
        PlumblineError: there is no such class, or it is none that a method takes.
    """
    from botorch.acquisition import AcquisitionFunction

    from plumbline.methods.base import Method
    from plumbline.methods.named_class import class_at

    found = class_at(target, f"class {target!r}")
    if issubclass(found, Method):
        raise PlumblineError(f"class {target!r} is a method of plumbline: give the name that it is registered by")
    if issubclass(found, AcquisitionFunction):
        return "botorch-acquisition", {"acquisition": target}
    if all(callable(getattr(found, name, None)) for name in ("ask", "tell")):
        return "ask-tell", {"optimiser": target}
    raise PlumblineError(
        f"class {target!r} is neither an acquisition function of BoTorch (a subclass of AcquisitionFunction) nor an "
        "optimiser with `ask()` and `tell(x, y)`"
    )


def place_of_class(target: str) -> str:
    """Return the file and line of the class at a path; `compiled code` where it has none."""
    from plumbline.methods.named_class import class_at

    found = class_at(target, f"class {target!r}")
    try:
        return f"{inspect.getsourcefile(found)}, line {inspect.getsourcelines(found)[1]}"
    except (OSError, TypeError):
        return "compiled code"

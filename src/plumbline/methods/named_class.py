"""Classes that options name by their path, and the arguments of their constructors."""

import importlib
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import JsonValue

from plumbline.core.errors import PlumblineError, absent_module, unknown
from plumbline.core.inputs import module_and_name, refuse_file


def class_path(path: str) -> str:
    """Return the path of a class, `package.module.Class` or `package.module:Class`.

    A class of a script or a notebook has no file of its own, whose code would be in the key of its trials.

    Raises:
        ValueError: no class can have this path, or it is that of a class of a script or a notebook.
    """
    module, name = module_and_name(path)
    if module == "__main__":
        raise ValueError(f"{path!r} is a class of this script or notebook: save it in a file, and name that")
    refuse_file(path)
    if not all(part.isidentifier() for part in [*module.split("."), name]):
        raise ValueError(f"{path!r} is no class: write `package.module.Class` or `package.module:Class`")
    return path


def class_at(path: str, whose: str) -> type:
    """Return the class at a path; `whose` it is, for messages: "acquisition 'straddle:Straddle'".

    Raises:
        PlumblineError: there is no such module or class.
    """
    module, name = module_and_name(path)
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # a module that theirs imports
        raise PlumblineError(f"{whose}: {absent_module(error.name)}") from error
    if found is None:
        raise PlumblineError(f"{whose}: module {module!r} has no {name!r}")
    if not isinstance(found, type):
        raise PlumblineError(f"{whose} is a {type(found).__name__}: a class is wanted")
    return found


def parameters_of(made: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class by name, without `*args` and `**kwargs`."""
    parameters = inspect.signature(made).parameters
    return {name: one for name, one in parameters.items() if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}


def refuse_arguments(
    whose: str, made: Callable[..., Any], given: Mapping[str, JsonValue], known: Collection[str]
) -> None:
    """Raise PlumblineError, naming it, for an argument that the class does not take, or one that nobody gives it.

    Args:
        whose: the class, for messages.
        made: the class.
        given: arguments from its options.
        known: names of those that the method fills in.
    """
    parameters = parameters_of(made)
    variadic = any(one.kind == one.VAR_KEYWORD for one in inspect.signature(made).parameters.values())
    for name in given:
        if name not in parameters and not variadic:
            raise PlumblineError(f"{whose}: {unknown('argument', name, list(parameters))}")
    for name, one in parameters.items():
        if one.default is one.empty and name not in given and name not in known:
            raise PlumblineError(
                f"{whose} needs an argument {name!r}, which the method does not know: give it in `arguments`"
            )

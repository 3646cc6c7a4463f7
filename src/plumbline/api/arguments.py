"""Arguments of the Python interface: one of the wrong kind, or an empty path, is refused before anything is done."""

import inspect
import os
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from plumbline.core.errors import PlumblineError, describe_os_error, shown
from plumbline.core.inputs import named_by

P = ParamSpec("P")
R = TypeVar("R")

KINDS: dict[Any, tuple[str, tuple[type, ...]]] = {
    str: ("text", (str,)),
    bool: ("True or False", (bool,)),
    int: ("a whole number", (Integral,)),
    float: ("a number", (Real,)),
    Path: ("a path", (str, os.PathLike)),
    Mapping: ("a mapping", (Mapping,)),
    NoneType: ("None", (NoneType,)),
}
"""Words for what annotations ask for, and the classes that will do: NumPy's numbers are among them."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, which raises PlumblineError where an argument is not of the kind that it is annotated with.

    An empty path is refused, as on the command line: a variable that is not set would be the working directory.
    Whether a name is known, and what a list may contain, is for the function to say. What the machine refuses, as
    writing into a folder, is a PlumblineError too.
    """
    signature = inspect.signature(function)
    kinds = {one.name: _kinds(one) for one in signature.parameters.values()}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if kinds[name] and not any(_is(value, kind) for kind in kinds[name]):
                wanted = " or ".join(KINDS[kind][0] for kind in kinds[name])
                raise PlumblineError(f"{name}: {wanted} is wanted (got {shown(value)}){_instead(name, value)}")
            if Path in kinds[name] and isinstance(value, str) and not value.strip():
                raise PlumblineError(f"{name}: it is empty: name a file or a folder")
        try:
            return function(*args, **kwargs)
        except BrokenPipeError:
            raise
        except OSError as error:
            if error.errno is None:
                raise
            raise PlumblineError(describe_os_error(error)) from error

    return call


def option_named(name: str) -> str:
    """Return how an argument is named in errors that the command line shows too: by its option, and in Python."""
    return f"`--{name.replace('_', '-')}` (in Python `{name}`)"


def _instead(name: str, value: object) -> str:
    """Return how a class or a function is named, for an argument that is the name of one."""
    if name == "target":
        return f": {named_by(value)}" * isinstance(value, type)
    if name in ("method", "method_class", "problem") and callable(value):
        return ": give the name that it is registered by; `plumbline new package` shows how one is registered"
    return ""


def _kinds(parameter: inspect.Parameter) -> list[Any]:
    """Return the keys of `KINDS` that a parameter may be of; none where it may be something else.

    A literal is text here, so that the function can say which words are allowed. So is what only type checkers can look
    up, if the default is.
    """
    annotation = parameter.annotation
    if isinstance(annotation, str):
        return [str] if isinstance(parameter.default, str) else []
    union = get_origin(annotation) in (UnionType, Union)
    origins = [get_origin(one) or one for one in (get_args(annotation) if union else (annotation,))]
    kinds = [str if one is Literal else one for one in origins]
    return kinds if all(kind in KINDS for kind in kinds) else []


def _is(value: object, kind: Any) -> bool:
    if isinstance(value, bool) and kind is not bool:
        return False
    return isinstance(value, KINDS[kind][1])

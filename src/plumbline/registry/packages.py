"""Methods and problems of other packages, which declare them as entry points in their `pyproject.toml`:

    [project.entry-points."plumbline.methods"]
    my-ei = "my_package.methods"

The name is the registered one, the value the module that registers it. To read the declarations imports nothing.
"""

import importlib.metadata
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from plumbline.core.errors import PlumblineError

GROUPS = {"method": "plumbline.methods", "problem": "plumbline.problems"}
"""Groups of entry points by what they declare."""

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Declared:
    """A name that a package declares.

    Attributes:
        kind: `method` or `problem`.
        name: as it is registered.
        module: that registers it.
        distribution: name of the package's distribution.
        version: of the distribution.
    """

    kind: str
    name: str
    module: str
    distribution: str
    version: str

    @property
    def package(self) -> str:
        """The package in messages and listings."""
        return f"{self.distribution} {self.version}"


@cache
def _declarations(kind: str) -> Mapping[str, list[Declared]]:
    """Return the declarations of a kind by name, sorted: this looks into every installed distribution."""
    found: dict[str, list[Declared]] = {}
    if kind in GROUPS:
        for point in importlib.metadata.entry_points(group=GROUPS[kind]):
            about = point.dist
            assert about is not None  # a distribution was asked
            one = Declared(kind, point.name, point.value, about.metadata["Name"], about.version)
            found.setdefault(point.name, []).append(one)
    return dict(sorted(found.items()))


def declared_names(kind: str) -> list[str]:
    """Return the names of a kind that packages declare, sorted."""
    return list(_declarations(kind))


def declared(kind: str, name: str) -> Declared | None:
    """Return the declaration of a name; None where no package declares it.

    Raises:
        PlumblineError: two packages declare it, it names no module, or the name of a problem ends like a dimension.
    """
    found = _declarations(kind).get(name, [])
    if len(found) > 1:
        both = " and ".join(one.package for one in found)
        raise PlumblineError(f"{kind} {name!r} is declared by two packages, {both}: uninstall one of them")
    for one in found:
        if not _MODULE.fullmatch(one.module):
            raise PlumblineError(
                f"package {one.package}: entry point {name!r} of {GROUPS[kind]!r} is {one.module!r}: "
                f"write the module that registers the {kind}, `my_package.{kind}s`"
            )
        if kind == "problem" and re.search(r"-\d+$", name):
            raise PlumblineError(
                f"package {one.package}: problem {name!r}: a number at the end of a name is a dimension: "
                f"call it {re.sub(r'-(?=[0-9]+$)', '', name)!r}"
            )
        return one
    return None


@cache
def top_modules() -> frozenset[str]:
    """Return the top-level modules of the packages that declare methods or problems."""
    points = (point for group in GROUPS.values() for point in importlib.metadata.entry_points(group=group))
    tops = set()
    for point in points:
        files = (point.dist.files if point.dist is not None else None) or ()
        tops |= {file.parts[0].removesuffix(".py") for file in files if file.suffix == ".py"}
        tops.add(point.value.partition(":")[0].partition(".")[0].strip())
    return frozenset(tops)


def place_in_packages(error: BaseException) -> str:
    """Return file and line of the innermost frame of `error` in a package that declares methods or problems.

    Empty where there is none.
    """
    places = [
        f"{frame.f_code.co_filename}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] in top_modules()
    ]
    return places[-1] if places else ""

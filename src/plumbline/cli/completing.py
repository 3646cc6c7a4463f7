"""Words with which a shell completes a command: names of methods, tasks, experiments, claims and registered classes.

They are asked for while someone types: they take less than a second, and where they cannot be read there are none.
"""

from collections.abc import Callable
from typing import get_args

import typer

Words = Callable[[str], list[str]]
"""From the beginning of a word to the words that begin so."""


def complete(*kinds: str) -> Words:
    """Return what completes a name of one of `kinds`, which `names_of` explains."""

    def words(incomplete: str) -> list[str]:
        return _beginning(incomplete, *kinds)

    return words


def complete_list(kind: str) -> Words:
    """Return what completes the last of several names separated by commas."""

    def words(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in _beginning(last, kind)]

    return words


def complete_name(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a name of the kind that precedes it: `plumbline show method cu`."""
    return _beginning(incomplete, context.params["kind"])


def complete_class(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a name of the kind of class that precedes it: `plumbline classes metric re`."""
    return _beginning(incomplete, f"{context.params['kind']} class")


def _beginning(incomplete: str, *kinds: str) -> list[str]:
    try:
        found = dict.fromkeys(name for kind in kinds for name in names_of(kind))
    except Exception:  # between two letters nobody wants to read what is wrong with a file
        return []
    return [name for name in found if name.startswith(incomplete)]


def names_of(kind: str) -> list[str]:
    """Return the names of a kind.

    Args:
        kind: `method`, `task`, `experiment` or `claim`; `track`: a track or a task of the atlas; `metric class` and the
            like: registered classes; `kind` and `kind of class`: these themselves.
    """
    from plumbline.api.listings import (
        KINDS,
        claim_names,
        class_names,
        listed_experiments,
        listed_methods,
        listed_tasks,
    )
    from plumbline.api.showing import Shown

    if (one := kind.removesuffix(" class")) != kind and one in KINDS:
        return class_names(one)
    names: dict[str, Callable[[], list[str]]] = {
        "method": lambda: [row[0] for row in listed_methods().rows],
        "task": lambda: [row[0] for row in listed_tasks().rows],
        "experiment": lambda: [row[0] for row in listed_experiments().rows],
        "claim": claim_names,
        "track": _atlas_names,
        "kind": lambda: [*get_args(Shown)],
        "kind of class": lambda: [*KINDS],
    }
    return names[kind]()


def _atlas_names() -> list[str]:
    """Return the tracks of the atlas, then its tasks."""
    from csv import DictReader

    from plumbline.core.places import ATLAS, own_or_shipped
    from plumbline.store.reference_files import EditionFiles

    with EditionFiles(own_or_shipped(ATLAS)).tasks.open(encoding="utf-8", newline="") as file:
        rows = [*DictReader(file)]
    return [row["track"] for row in rows] + [row["task"] for row in rows]

"""Inheritance between entries of the YAML files: `like` names another, whose fields an entry has but for its own.

It reaches one level: the entry that is named stands for itself, so that two places say all that an entry is.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.nested import merge


def inherit(
    entries: Mapping[str, Any], kind: str, source: Callable[[str], str], own: Collection[str] = ()
) -> dict[str, Any]:
    """Return the entries, each with the fields of the one that it is `like`.

    Args:
        entries: by name, as they are written.
        kind: what errors call an entry.
        source: what errors about an entry begin with.
        own: fields that are not handed down.

    Raises:
        PlumblineError: an entry like one that there is not, like itself, or like one that is like another.
    """
    return {name: _inherited(name, entries, kind, source(name), own) for name in entries}


def _inherited(name: str, entries: Mapping[str, Any], kind: str, source: str, own: Collection[str]) -> Any:
    entry = entries[name]
    if not isinstance(entry, dict):
        raise PlumblineError(f"{source}: an entry is a mapping of fields to values, not {entry!r}")
    like = entry.get("like")
    if not like:
        return entry
    if not isinstance(like, str) or like not in entries:
        raise PlumblineError(f"{source}: like: {unknown(kind, str(like), entries)}")
    if like == name:
        raise PlumblineError(f"{source}: like: {name!r} is the entry itself")
    parent = entries[like]
    if not isinstance(parent, dict):
        return entry  # its own error is the one to report
    if further := parent.get("like"):
        raise PlumblineError(
            f"{source}: like: {like!r} is itself like {further!r}, and `like` reaches one level: "
            f"write `like: {further}` with what differs"
        )
    return merge({key: value for key, value in parent.items() if key not in own}, entry)

"""Nested mappings of options."""

from typing import Any


def merge(below: Any, above: Any) -> Any:
    """Return `above` laid over `below`: mappings are merged at any depth, anything else is replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {key: merge(below.get(key), value) for key, value in above.items()}

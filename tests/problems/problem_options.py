"""Options of problems, whichever problems are registered."""

from typing import Any

from pydantic import ValidationError

from plumbline.problems.base import problems


def acceptable(name: str, options: dict[str, Any]) -> bool:
    """Return whether a problem can be built from these options."""
    try:
        problems[name].options.model_validate(options)
    except ValidationError:
        return False
    return True

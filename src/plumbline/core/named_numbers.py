"""Numbers by name, as the code of methods and problems returns them."""

import math
from collections.abc import Mapping
from numbers import Real

from plumbline.core.errors import PlumblineError


def refuse_odd_numbers(whose: str, what: str, numbers: object) -> None:
    """Raise PlumblineError unless `numbers` maps names to finite numbers."""
    if not isinstance(numbers, Mapping):
        raise PlumblineError(f"{whose} returned `{what}` of type {type(numbers).__name__}: a dictionary is wanted")
    for key, value in numbers.items():
        if not isinstance(key, str) or not isinstance(value, Real) or not math.isfinite(value):
            raise PlumblineError(f"{whose} returned `{what}` with {key!r}: {value!r}; finite floats by name are wanted")

"""Numbers by name that are no finite floats are refused, with whose they are."""

import numpy as np
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.named_numbers import refuse_odd_numbers


@pytest.mark.parametrize("numbers", [{}, {"a": 1}, {"a": -0.5, "b": np.float32(2)}, {"a": True}])
def test_finite_numbers_pass(numbers: object) -> None:
    refuse_odd_numbers("method 'x'", "diagnostics", numbers)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([1.0], "method 'x' returned `diagnostics` of type list: a dictionary is wanted"),
        ({"a": float("nan")}, "with 'a': nan; finite floats by name are wanted"),
        ({"a": 1.0, "b": -float("inf")}, "with 'b': -inf"),
        ({"a": "1"}, "with 'a': '1'"),
        ({"a": 1j}, "with 'a': 1j"),
        ({3: 1.0}, "with 3: 1.0"),
    ],
)
def test_others_are_refused(numbers: object, message: str) -> None:
    with pytest.raises(PlumblineError) as error:
        refuse_odd_numbers("method 'x'", "diagnostics", numbers)
    assert message in str(error.value)

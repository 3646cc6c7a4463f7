"""What is done as the published code does it."""

from typing import Any

import pytest
from pydantic import ValidationError

from plumbline.methods.sparse.eulbo import EulboMethodOptions
from plumbline.methods.sparse.options import SparseOptions, Variant, departures_of

EVERY = ("one", "two", "three")


@pytest.mark.parametrize(
    ("variant", "expected"),
    [("paper", set()), ("code", set(EVERY)), (("three", "one"), {"one", "three"}), ((), set())],
)
def test_departures_are_none_or_all_or_those_named(variant: Variant[str], expected: set[str]) -> None:
    assert departures_of(variant, EVERY) == expected


@pytest.mark.parametrize("options", [EulboMethodOptions, SparseOptions])
def test_options_take_departures_of_their_own_alone(options: Any) -> None:
    everything = options.model_validate({"variant": "code"}).departures
    assert everything
    assert options.model_validate({}).departures == set()
    assert options.model_validate({"variant": sorted(everything)}).departures == everything
    with pytest.raises(ValidationError):
        options.model_validate({"variant": ["no-such-departure"]})

"""Variants: the text, the published code, or some of its departures."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from plumbline.methods.conformal import variants as conformal
from plumbline.methods.conformal.method import ConformalImprovementOptions, ConformalOptions
from plumbline.methods.localised import variants as localised
from plumbline.methods.localised.locbo import LocalisedImprovementOptions
from plumbline.methods.localised.ocbo import RecalibratedOptions
from plumbline.methods.sparse.eulbo import EulboMethodOptions
from plumbline.methods.sparse.options import SparseOptions
from plumbline.methods.variants import Variant, VariantOptions, departures_of

EVERY = ("one", "two", "three")
BY_OPTIONS = [ConformalOptions, ConformalImprovementOptions, RecalibratedOptions, LocalisedImprovementOptions]


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


@pytest.mark.parametrize("options", [EulboMethodOptions, SparseOptions, *BY_OPTIONS])
@pytest.mark.parametrize("variant", ["cod", ["no-such-departure"], [1], 1, [["coded-tails"]], None])
def test_a_variant_that_there_is_not_is_an_error(options: Any, variant: Any) -> None:
    with pytest.raises(ValidationError, match="variant"):
        options.model_validate({"variant": variant})


def test_the_tables_have_each_departure_that_can_be_named() -> None:
    named = {*get_args(conformal.ConformalDeparture), *get_args(conformal.IncumbentDeparture)}
    assert set(conformal.DEPARTURES) == named
    named = {*get_args(localised.OnlineDeparture), *get_args(localised.PosteriorDeparture)}
    assert set(localised.DEPARTURES) == named


@pytest.mark.parametrize("options", BY_OPTIONS)
def test_each_departure_changes_options_of_its_method(options: type[VariantOptions]) -> None:
    given: dict[str, Any] = {"online": {"forgetting": 1e-4}} if "online" in options.model_fields else {}
    plain = options.model_validate(given).model_dump(exclude={"variant"})
    for name in options.departures:
        changed = options.model_validate({**given, "variant": [name]}).model_dump(exclude={"variant"})
        assert changed != plain, name
    plain = options.model_validate({}).model_dump(exclude={"variant"})
    together = options.model_validate({"variant": list(options.code)}).model_dump(exclude={"variant"})
    assert options.model_validate({"variant": "code"}).model_dump(exclude={"variant"}) == together != plain


def test_a_departure_changes_single_fields_of_nested_options() -> None:
    plain = LocalisedImprovementOptions()
    raw = LocalisedImprovementOptions.model_validate({"variant": ["raw-inputs"]})
    assert raw.model == plain.model.model_copy(update={"inputs": "raw"})
    forgetful = {"variant": ["late-counting"], "online": {"kappa": 4, "counted_from": 7}}
    online = LocalisedImprovementOptions.model_validate(forgetful).online
    assert (online.kappa, online.counted_from) == (4, 2), "a departure overrides what is given"


@pytest.mark.parametrize("options", BY_OPTIONS)
def test_options_that_are_dumped_are_read_again_as_they_were(options: type[VariantOptions]) -> None:
    for variant in ("paper", "code", [next(iter(options.departures))]):
        once = options.model_validate({"variant": variant})
        assert options.model_validate(once.model_dump()) == once

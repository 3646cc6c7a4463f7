"""Files and methods that options declare, found in their JSON schema."""

from contextlib import suppress
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from plumbline.core.inputs import INPUT, METHOD, Input, declared, replaced
from plumbline.core.options import Options
from plumbline.registry.catalogue import catalogue, option_model
from plumbline.registry.references import MethodChoice


class Inner(Options):
    dataset: Annotated[str, Input("features/{}.parquet")]


class Fancy(Options):
    by_name: dict[str, Inner] = Field(default_factory=dict)
    pair: tuple[MethodChoice, Inner] | None = None


def test_mappings_and_pairs_declare_too() -> None:
    given = {
        "by_name": {"x": {"dataset": "a"}},
        "pair": ["ei", {"dataset": "b"}],
    }
    found = {one.place: one.value for one in declared(Fancy.model_json_schema(), given)}
    assert found == {("by_name", "x", "dataset"): "a", ("pair", 0): "ei", ("pair", 1, "dataset"): "b"}


@pytest.mark.parametrize("kind", ["method", "problem", "design", "trainer"])
def test_no_default_declares_what_its_schema_hides(kind: str) -> None:
    """A default that the schema does not spell out would be an input that nobody knows of."""
    for name, listing in getattr(catalogue(), kind).items():
        model = option_model(kind, name)  # type: ignore[arg-type]
        with suppress(ValidationError):  # some have options that must be given
            spelt = model.model_validate({}).model_dump(mode="json")
            assert [one.value for one in declared(listing.options, {})] == [
                one.value for one in declared(listing.options, spelt)
            ], name


class Outer(Options):
    inner: Inner
    parts: tuple[Inner, ...] = ()
    model: Annotated[str, Input("models/{}.npz")] | None = None
    weights: Annotated[str, Input("models/{}.pt")] = "standard"
    base: MethodChoice | None = None


GIVEN = {
    "inner": {"dataset": "a"},
    "parts": [{"dataset": "b"}, {"dataset": "c"}],
    "model": "m",
    "base": {"name": "ei", "options": {"x": 1}},
}


def test_what_is_declared_is_found_at_any_depth() -> None:
    found = {one.place: one for one in declared(Outer.model_json_schema(), GIVEN)}
    assert {place: one.path for place, one in found.items() if one.mark == INPUT} == {
        ("inner", "dataset"): "features/a.parquet",
        ("parts", 0, "dataset"): "features/b.parquet",
        ("parts", 1, "dataset"): "features/c.parquet",
        ("model",): "models/m.npz",
        ("weights",): "models/standard.pt",
    }
    assert [(place, one.value) for place, one in found.items() if one.mark == METHOD] == [(("base",), GIVEN["base"])]


def test_what_is_not_given_declares_nothing() -> None:
    found = [one.path for one in declared(Outer.model_json_schema(), {"inner": {"dataset": "a"}})]
    assert found == ["features/a.parquet", "models/standard.pt"]


@pytest.mark.parametrize("place", [("model",), ("inner", "dataset"), ("parts", 1, "dataset"), ("weights",)])
def test_a_place_is_replaced_and_nothing_else(place: tuple[str | int, ...]) -> None:
    changed = replaced(GIVEN, place, "new")
    found = {one.place: one.value for one in declared(Outer.model_json_schema(), changed)}
    before = {one.place: one.value for one in declared(Outer.model_json_schema(), GIVEN)}
    assert found == {**before, place: "new"}
    assert GIVEN["inner"] == {"dataset": "a"}

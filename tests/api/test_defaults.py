"""Options with their defaults filled in."""

from typing import Any, Literal

from pydantic import Field

from plumbline.api.defaults import DEFAULT, fill_in, with_defaults
from plumbline.api.written import Leaf, tree_of, values_of
from plumbline.core.options import Options
from plumbline.registry.references import MethodChoice


class Inner(Options):
    kernel: Literal["rbf", "matern52"] = "rbf"
    ard: bool = True


class Outer(Options):
    dim: int = Field(gt=0, le=9)
    model: Inner = Inner()
    smooth: Inner = Inner(kernel="matern52")
    level: float | Literal["auto"] | None = None
    names: tuple[str, ...] = ()
    members: tuple[MethodChoice, ...] = ()
    count: int = 1


def filled(given: dict[str, Any]) -> Any:
    """Return the values of options that are filled in."""
    tree = tree_of(given, "here")
    assert isinstance(tree, dict)
    return values_of(fill_in(Outer.model_json_schema(), tree))


def test_defaults_are_filled_in_at_any_depth_and_given_values_stay() -> None:
    options = {"dim": 3, "smooth": {"ard": False}, "level": "auto"}
    assert filled(options) == Outer.model_validate(options).model_dump(mode="json")


def test_each_value_says_where_it_comes_from() -> None:
    tree = fill_in(Outer.model_json_schema(), {"dim": Leaf(3, "a.yaml:1"), "smooth": {"ard": Leaf(False, "a.yaml:2")}})
    # As pydantic has it: what is left out of options that are given has the default of their class.
    assert tree["dim"] == Leaf(3, "a.yaml:1")
    assert tree["smooth"] == {"kernel": Leaf("rbf", DEFAULT), "ard": Leaf(False, "a.yaml:2")}


def test_a_method_inside_of_options_has_its_own_options() -> None:
    for base in ("ucb", {"name": "ucb", "options": {"sqrt_beta": 3.0}}):
        given = tree_of({"base": base}, "here")
        assert isinstance(given, dict)
        found = values_of(with_defaults("method", "calibrated", given))
        assert found["base"]["name"] == "ucb"
        assert found["base"]["options"]["model"]["kernel"] == "matern52"
        assert found["base"]["options"]["sqrt_beta"] == (3.0 if isinstance(base, dict) else None)

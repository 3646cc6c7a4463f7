"""Options with their defaults, as the options' own classes have them."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from plumbline.core.options import Options
from plumbline.registry.catalogue import catalogue
from plumbline.registry.default_options import fill_in, with_defaults


class Inner(Options):
    kernel: Literal["rbf", "matern52"] = "rbf"
    share: float | None = 0.5


class Outer(Options):
    dim: int = Field(gt=0)
    model: Inner = Inner()
    smooth: Inner = Inner(kernel="matern52")
    maybe: Inner | None = None
    level: float | Literal["auto"] | None = "auto"
    numbers: dict[str, float] = Field(default_factory=dict)


INNER = st.fixed_dictionaries(
    {}, optional={"kernel": st.sampled_from(["rbf", "matern52"]), "share": st.none() | st.floats(0, 1)}
)


@given(
    st.fixed_dictionaries(
        {"dim": st.integers(1, 9)},
        optional={
            "model": INNER,
            "smooth": INNER,
            "maybe": st.none() | INNER,
            "level": st.none() | st.just("auto") | st.floats(0, 1),
            "numbers": st.dictionaries(st.sampled_from("ab"), st.floats(0, 1)),
        },
    )
)
def test_they_are_those_of_the_class(options: dict[str, Any]) -> None:
    found = fill_in(Outer.model_json_schema(), options)
    assert Outer.model_validate(found) == Outer.model_validate(options)
    assert found | {"numbers": options.get("numbers", {})} == Outer.model_validate(options).model_dump(mode="json")


@pytest.mark.parametrize("name", sorted(catalogue().method))
def test_filling_in_twice_changes_nothing(name: str) -> None:
    once = with_defaults("method", name, {})
    assert with_defaults("method", name, once) == once

"""Options: what is refused, and how it is said."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, Field, PositiveInt, ValidationError, model_validator

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options, distinct, parse


class Inner(Options):
    kernel: Literal["matern52", "rbf"] = "matern52"
    size: PositiveInt = 1


class Outer(Options):
    alpha: float
    inner: Inner = Inner()
    parts: tuple[Inner, ...] = ()

    @model_validator(mode="after")
    def _alpha_is_a_level(self) -> "Outer":
        if self.alpha >= 1:
            raise ValueError("alpha must be less than 1")
        return self


def message(data: object, source: str | Path = "config.yaml") -> str:
    with pytest.raises(PlumblineError) as caught:
        parse(Outer, data, source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_good_data_become_options() -> None:
    options = parse(Outer, {"alpha": 0.1, "inner": {"kernel": "rbf"}, "parts": [{"size": 3}]}, "x")
    assert options.inner.kernel == "rbf"
    assert options.parts[0].size == 3
    assert parse(Outer, {"alpha": 0.1}, "x").inner == Inner()


def test_typo_names_the_nearest_field_and_all_that_are_allowed() -> None:
    assert message({"alhpa": 0.1, "alpha": 0.2}) == (
        "config.yaml: unknown field 'alhpa': did you mean 'alpha'? allowed: alpha, inner, parts"
    )


def test_typo_deep_inside_says_where() -> None:
    assert message({"alpha": 0.1, "parts": [{}, {"kernl": "rbf"}]}) == (
        "config.yaml: parts.1: unknown field 'kernl': did you mean 'kernel'? allowed: kernel, size"
    )


def test_wrong_value_names_field_allowed_values_and_what_it_got() -> None:
    assert message({"alpha": 0.1, "inner": {"kernel": "cubic"}}) == (
        "config.yaml: inner.kernel: Input should be 'matern52' or 'rbf' (got 'cubic')"
    )


def test_missing_field_is_named() -> None:
    assert message({}, Path("a/b.yaml")) == "a/b.yaml: alpha: Field required"


def test_rules_between_fields_are_told_in_their_own_words() -> None:
    assert message({"alpha": 1.5}) == "config.yaml: alpha must be less than 1"


def test_further_problems_are_counted() -> None:
    assert message({"alpha": "x", "inner": {"size": 0, "kernel": "y"}}).endswith("; and 2 more")


@pytest.mark.parametrize("data", [None, 3, "alpha", ["alpha"]])
def test_what_is_no_mapping_is_refused(data: object) -> None:
    assert message(data).startswith("config.yaml: ")


def test_long_or_broken_input_stays_in_one_line() -> None:
    message({"alpha": "first line\nsecond line"})


def test_options_cannot_be_changed() -> None:
    options = Inner()
    with pytest.raises(ValidationError, match="frozen"):
        options.size = 2
    assert hash(options) == hash(Inner())


class Numbers(Options):
    """A number in every place that one can have."""

    whole: int = 0
    real: float = 0.0
    open_end: Annotated[float, Field(allow_inf_nan=True)] = 0.0
    maybe: int | None = None
    several: tuple[float, ...] = ()
    pair: tuple[int, float] = (0, 0.0)
    named: dict[str, float] = Field(default_factory=dict)
    rows: tuple[tuple[float, float], ...] = ()
    either: Literal["all"] | PositiveInt = "all"
    any_of: tuple[bool | int | float | str, ...] = ()
    switch: bool = False
    words: str = ""
    inner: Inner = Inner()
    parts: tuple["Numbers", ...] = ()


PLACES: dict[str, Any] = {
    "whole": lambda value: {"whole": value},
    "real": lambda value: {"real": value},
    "maybe": lambda value: {"maybe": value},
    "several.1": lambda value: {"several": [1, value]},
    "pair.0": lambda value: {"pair": [value, 1]},
    "pair.1": lambda value: {"pair": [1, value]},
    "named.x": lambda value: {"named": {"x": value}},
    "rows.0.1": lambda value: {"rows": [[1, value]]},
    "either": lambda value: {"either": value},
    "inner.size": lambda value: {"inner": {"size": value}},
    "parts.0.parts.0.real": lambda value: {"parts": [{"parts": [{"real": value}]}]},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [True, False, math.nan, math.inf, -math.inf, "nan", "inf", 1e999])
def test_no_number_is_a_truth_value_or_endless(place: str, value: Any) -> None:
    with pytest.raises(PlumblineError) as caught:
        parse(Numbers, PLACES[place](value), "x.yaml")
    text = str(caught.value)
    assert text.startswith(f"x.yaml: {place}")
    assert "\n" not in text
    assert "function" not in text
    if isinstance(value, bool) and place != "either":
        assert text == f"x.yaml: {place}: a number is wanted (got {value})"


def test_what_may_be_a_truth_value_or_endless_still_is() -> None:
    read = parse(Numbers, {"switch": True, "any_of": [True, 1, 1.0, "1"], "open_end": math.inf, "either": 3}, "x")
    assert (read.switch, read.open_end, read.either) == (True, math.inf, 3)
    assert [type(one) for one in read.any_of] == [bool, int, float, str]
    assert parse(Numbers, {"real": 1, "whole": "2", "maybe": None}, "x") == Numbers(real=1.0, whole=2)


def test_no_text_is_a_truth_value() -> None:
    with pytest.raises(PlumblineError, match=r"x: words: Input should be a valid string \(got True\)"):
        parse(Numbers, {"words": True}, "x")


def test_numbers_are_described_as_before() -> None:
    properties = Numbers.model_json_schema()["$defs"]["Numbers"]["properties"]
    assert properties["whole"] == {"default": 0, "title": "Whole", "type": "integer"}
    assert properties["named"]["additionalProperties"] == {"type": "number"}


def test_long_values_are_cut() -> None:
    assert len(message({"alpha": "x" * 10_000})) < 500


class Listed(Options):
    names: Annotated[tuple[str | float, ...], AfterValidator(distinct)] = ()


@given(st.lists(st.sampled_from(["a", "b", "c", 1, 1.0, 2.5, -0.0, 0.0])))
def test_what_is_twice_in_a_list_is_told_with_both_places(names: list[Any]) -> None:
    doubles = [(names.index(name), item) for item, name in enumerate(names) if name in names[:item]]
    if not doubles:
        assert parse(Listed, {"names": names}, "x").names == tuple(names)
        return
    first, second = doubles[0]
    with pytest.raises(PlumblineError, match=f"is there twice, as items {first + 1} and {second + 1} of the list"):
        parse(Listed, {"names": names}, "x")

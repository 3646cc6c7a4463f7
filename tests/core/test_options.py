from pathlib import Path
from typing import Literal

import pytest
from pydantic import PositiveInt, ValidationError, model_validator

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options, parse, read_yaml


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


def test_files_that_are_not_yaml(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no file .*absent.yaml"):
        read_yaml(tmp_path / "absent.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1\nb: 2\n")
    with pytest.raises(PlumblineError, match=r"bad.yaml is not YAML: .*line 2") as caught:
        read_yaml(tmp_path / "bad.yaml")
    assert "\n" not in str(caught.value)

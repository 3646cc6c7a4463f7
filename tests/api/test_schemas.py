"""What is registered, in words."""

from typing import Literal

import pytest
from pydantic import Field

from plumbline.api.schemas import options_of
from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.registry.catalogue import catalogue
from plumbline.registry.references import MethodChoice


class Inner(Options):
    kernel: Literal["rbf", "matern52"] = "rbf"
    ard: bool = True


class Outer(Options):
    dim: int = Field(gt=0, le=9)
    model: Inner = Inner()
    level: float | Literal["auto"] | None = None
    names: tuple[str, ...] = ()
    members: tuple[MethodChoice, ...] = ()
    count: int = 1


def test_options_are_told_with_paths_values_and_defaults() -> None:
    found = [tuple(option) for option in options_of(Outer.model_json_schema())]
    assert found == [
        ("dim", "integer (> 0, <= 9)", "(required)"),
        ("model.kernel", "rbf | matern52", "rbf"),
        ("model.ard", "boolean", "true"),
        ("level", "number or auto or null", "null"),
        ("names", "list of string", "[]"),
        ("members", "list of object or string", "[]"),
        ("count", "integer", "1"),
    ]


def test_everything_registered_can_be_told() -> None:
    for kind in ("method", "problem"):
        for name, listing in getattr(catalogue(), kind).items():
            paths = [option.path for option in options_of(listing.options)]
            assert len(set(paths)) == len(paths), name
            assert all(option.values for option in options_of(listing.options)), name


def test_one_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_one("method", "ei")
    text = capsys.readouterr().out
    assert text.startswith("ei  ")
    assert "plumbline.methods.gp.single_outcome" in text
    assert any(line.split()[:2] == ["model.kernel", "matern52"] for line in text.splitlines())
    print_one("method", "random")
    assert "no options" in capsys.readouterr().out


def test_none_of_that_name() -> None:
    with pytest.raises(PlumblineError, match="unknown problem 'brannin': did you mean 'branin'"):
        print_one("problem", "brannin")

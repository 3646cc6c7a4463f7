"""Words of messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.words import counted, names_of


def test_one_thing_is_singular() -> None:
    assert [counted(number, "round") for number in (0, 1, 2, 1000)] == [
        "0 rounds",
        "1 round",
        "2 rounds",
        "1,000 rounds",
    ]


@given(st.lists(st.text("abc-1", min_size=1)))
def test_commas_separate_names(names: list[str]) -> None:
    assert names_of(" , ".join(names), "methods") == names_of(names, "methods") == names


@pytest.mark.parametrize("names", [",", "a,", " ", "a,,b", ["a", ""]])
def test_a_name_that_is_empty(names: str | list[str]) -> None:
    with pytest.raises(PlumblineError, match=r"methods .*: commas separate names"):
        names_of(names, "methods")

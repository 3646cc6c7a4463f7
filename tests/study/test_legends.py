"""How methods look."""

import pytest
from pydantic import ValidationError

from plumbline.study.legends import COLOURS, Legend


@pytest.mark.parametrize("colour", ["", "#0173b2", "#FFF000", *COLOURS])
def test_colours(colour: str) -> None:
    assert Legend(label="EI", colour=colour).colour == colour


@pytest.mark.parametrize("colour", ["bleu", "#fff", "blue ", "0173b2"])
def test_what_is_no_colour(colour: str) -> None:
    with pytest.raises(ValidationError, match="colour"):
        Legend(label="EI", colour=colour)

"""Verdicts and outcomes: one list of names, each with its meaning and its looks."""

from plumbline.study.legends import COLOURS
from plumbline.study.verdicts import (
    LOOKS,
    MEANINGS,
    OUTCOME_MEANINGS,
    OUTCOMES,
    UNDECIDABLE,
    VERDICTS,
    brief,
    slug,
    unbroken,
    with_shape,
)


def test_every_name_has_a_meaning_of_its_own() -> None:
    assert tuple(MEANINGS) == VERDICTS
    assert tuple(OUTCOME_MEANINGS) == OUTCOMES
    assert len(set(MEANINGS.values())) == len(VERDICTS)
    assert set(UNDECIDABLE) < set(VERDICTS)


def test_every_name_has_a_look_and_no_two_of_a_kind_share_a_shape() -> None:
    assert tuple(LOOKS) == (*VERDICTS, *OUTCOMES)
    for names in (VERDICTS, OUTCOMES):
        assert len({LOOKS[name].shape for name in names}) == len(names)


def test_shape_and_colour_go_together() -> None:
    colours: dict[str, set[str]] = {}
    for look in LOOKS.values():
        colours.setdefault(look.shape, set()).add(look.colour)
    assert all(len(found) == 1 for found in colours.values())
    assert {look.colour for look in LOOKS.values()} <= {"", *COLOURS}


def test_words() -> None:
    assert with_shape("not reproduced") == "■ not reproduced"
    assert with_shape("no verdict") == "no verdict"


def test_shape_and_word_stay_on_one_line() -> None:
    assert unbroken("not reproduced") == "■\u00a0not reproduced"
    assert unbroken("no verdict") == "no verdict"
    assert brief("inconclusive at this scale") == "inconclusive"
    assert brief("partly") == "partly"
    assert slug("not reproduced") == "not-reproduced"

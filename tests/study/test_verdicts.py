"""Verdicts and outcomes: one list of names, each with its meaning."""

from plumbline.study.verdicts import MEANINGS, OUTCOME_MEANINGS, OUTCOMES, UNDECIDABLE, VERDICTS


def test_every_name_has_a_meaning_of_its_own() -> None:
    assert tuple(MEANINGS) == VERDICTS
    assert tuple(OUTCOME_MEANINGS) == OUTCOMES
    assert len(set(MEANINGS.values())) == len(VERDICTS)
    assert set(UNDECIDABLE) < set(VERDICTS)

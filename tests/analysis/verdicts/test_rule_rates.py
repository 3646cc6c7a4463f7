"""The rule on claims whose truth is known: what it should accept, it accepts, and what it should reject, it rejects.

`verdict_rates.py` has the simulation, docs/results/verdict-rule.md the tables of many more studies.
"""

from pathlib import Path

import pytest
from verdict_rates import (
    REGRETS,
    REPETITIONS,
    likeness,
    printed_estimates,
    table_of_telescopes,
    telescopes,
    verdicts,
)

PAGE = (Path(__file__).parents[3] / "docs/results/verdict-rule.md").read_text(encoding="utf-8")

STUDIES = 40
CHANCE = 0.125
"""Of an event of probability .025, more than this share of forty studies has a probability of .0003."""

SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize("regrets", [one if i == 0 else pytest.param(one, marks=SLOW) for i, one in enumerate(REGRETS)])
def test_the_published_size_is_accepted_where_it_is_true(regrets: str) -> None:
    found = verdicts(REGRETS[regrets], [0.5], 50, STUDIES)
    assert found["smaller than published"] <= CHANCE * STUDIES
    assert found["not reproduced"] == found["too small to matter"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("regrets", "least"), [("normal regrets", 0.9), pytest.param("lognormal regrets", 0.5, marks=SLOW)]
)
def test_it_is_rejected_where_there_is_no_effect(regrets: str, least: float) -> None:
    found = verdicts(REGRETS[regrets], [1.0], 50, STUDIES)
    assert found["smaller than published"] >= least * STUDIES
    assert found["reproduced"] <= CHANCE * STUDIES


@SLOW
def test_five_parts_with_the_published_size_are_seldom_called_smaller() -> None:
    found = verdicts(REGRETS["normal regrets"], [0.5] * 5, 25, STUDIES)
    assert found["smaller than published"] <= CHANCE * STUDIES


@SLOW
def test_an_honest_paper_of_few_seeds_may_be_called_so() -> None:
    """Its number has an error of its own, and what stands out is too great: the rule is about the number alone."""
    prints, smaller = printed_estimates(REGRETS["normal regrets"], 0.75, 7, 50, STUDIES, selective=True)
    assert 0.4 <= prints <= 0.95
    assert 0.3 <= smaller <= 0.9


def test_telescopes_would_reject_claims_that_are_true() -> None:
    """Of half a deviation: few seeds look as claimed, many see it, and the telescope excludes it all the same."""
    ahead, seen, excluded = telescopes(0.5, 5, 50, 400)
    assert ahead >= 0.8
    assert seen >= 0.85
    assert excluded >= 0.6
    assert telescopes(0.89, 5, 50, 400)[2] <= 0.06


@SLOW
def test_methods_that_find_as_little_as_random_search_are_not_called_alike() -> None:
    assert likeness(1.0, 1.0, 50, 30)["holds"] == 0
    assert likeness(1.0, 2.0, 50, 30)["holds"] >= 15


def test_the_page_has_the_tables() -> None:
    """That of telescopes, which takes no time, is what the code gives, and each other one is there with its rows."""
    assert table_of_telescopes(REPETITIONS[table_of_telescopes]) in PAGE
    for population in REGRETS:
        assert PAGE.count(f"| {population} | 50 | 1 |") == 2
    for head in ("of five parts | reproduced", "the paper prints | papers", "random search | holds"):
        assert PAGE.count(head) == 1, head

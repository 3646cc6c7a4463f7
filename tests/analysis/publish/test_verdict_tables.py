"""Verdicts in words and in tables."""

from pathlib import Path

import made_evidence as made
import pandas as pd
import pytest

from plumbline.analysis.publish.reference_verdicts import read_doubts
from plumbline.analysis.publish.verdict_tables import (
    ANY_DATA,
    doubt_table,
    effect,
    verdict_summary,
    verdict_table,
    words_table,
)
from plumbline.analysis.verdicts.verdict import COLUMNS


def test_verdicts_as_markdown() -> None:
    studies = list(made.planned("K2", "K10", "K1").studies.values())
    part = made.PART
    rows = [part | {"outcome": "open", "verdict": "partly"}]
    rows += [
        part | {"claim": "K10", "outcome": outcome, "verdict": "partly", "seeds": seeds}
        for outcome, seeds in (("holds", 20), ("fails", 50), ("fails", 10))
    ]
    rows += [part | {"role": "secondary", "outcome": "holds", "verdict": "partly", "seeds": 2}]
    doubts = pd.DataFrame({"claims": ["C3 K10"], "doubt": ["D."], "repair": ["R."]})
    assert verdict_table(studies, pd.DataFrame(rows), doubts).splitlines()[2:] == [
        "| K1 | S. | **◐ partly** | final regret | -1.23 (-2 to 0.05), supports if below 0 | 20 (5) | E |",
        "| K2 | S. | not judged |  |  | – (5) | E |",
        "| K10 | S. | **◐ partly**, in doubt | final regret | "
        "1 holds, 2 fail of 3 parts, with estimates from -1.23 to -1.23, supports if below 0 | 10 to 50 (5) | E |",
    ]
    listed = made.plan({}, {"A1": {"source": "p. 1", "statement": "T."}}).studies.values()
    none = pd.DataFrame(columns=COLUMNS)
    assert verdict_table(listed, none, doubts).splitlines()[2:] == ["| A1 | T. | not run |  |  | – (–) | – |"]


def test_verdicts_in_words_as_markdown() -> None:
    words = {"holds": "It is **so** on a | b.", "rest": "Two fail."}
    study = made.planned("K2", "K10", "K1", in_words=words).studies["made-up"]
    claims = study.claims | {"K2": study.claims["K2"].model_copy(update={"in_words": None})}
    beyond = made.planned("K3", beyond={"verdict": "does not apply", "because": "It is of another machine."})
    claims |= beyond.studies["made-up"].claims
    rows = [
        made.PART | {"claim": name, "outcome": outcome}
        for name in ("K2", "K3", "K10")
        for outcome in ("holds", "fails", "fails")
    ]
    rows += [made.PART | {"claim": "K2", "role": "secondary", "outcome": "open"}]
    doubts = pd.DataFrame({"claims": ["C3 K10"], "doubt": ["D."], "repair": ["R."]})
    table = words_table([study.model_copy(update={"claims": claims})], pd.DataFrame(rows), doubts)
    assert table.splitlines() == [
        "| claim | verdict | parts | what holds | what does not hold, or is open |",
        "|---|---|---|---|---|",
        "| K1 | not judged |  |  |  |",
        "| K2 | ◐\u00a0partly | 1 holds, 2 fail |  |  |",
        "| K3 | ◐\u00a0partly | 1 holds, 2 fail |  | It is of another machine. |",
        "| K10 | ◐\u00a0partly, in doubt | 1 holds, 2 fail | It is **so** on a \\| b. | Two fail. |",
    ]


@pytest.mark.parametrize("parts", [1, 2])
def test_what_was_not_run_is_said(parts: int) -> None:
    found = pd.DataFrame([made.PART | {"outcome": "open", "missing": "F G"}] * parts)
    assert effect(found).endswith("; F, G not run")


def test_an_estimate_in_words() -> None:
    table = pd.DataFrame([made.PART | {"low": float("-inf"), "high": float("inf"), "outcome": "open"}])
    assert effect(table) == "-1.23 (no interval)"
    assert effect(table.assign(low=-2.0)) == "-1.23 (above -2)"
    point = table.assign(low=table["ours"] - 1e-9, high=table["ours"] + 1e-9)
    assert effect(point) == "-1.23"
    several = pd.concat([table, table.assign(test="another", ours=7.0), table.assign(outcome="fails")])
    assert effect(several) == "final regret: 1 fails, 1 open; another: 1 open (7 (no interval))"


def test_an_estimate_comes_with_what_supports_the_claim() -> None:
    one = pd.DataFrame([made.PART | {"outcome": "open"}])
    assert effect(one, supported=True) == "-1.23 (-2 to 0.05), supports if below 0"
    assert effect(pd.concat([one, one]), supported=True).endswith("estimates from -1.23 to -1.23, supports if below 0")
    beside = pd.concat([one, one.assign(test="another", above=0.8, below=1.25)])
    assert [part.partition(", ")[2] for part in effect(beside, supported=True).split("; ")] == [
        "supports if below 0",
        "supports if within 0.8 to 1.25",
    ]


def test_where_no_data_could_decide_words_stand_for_the_estimate() -> None:
    part = made.PART | {"outcome": "holds", "verdict": "cannot fail"}
    assert effect(pd.DataFrame([part])) == effect(pd.DataFrame([part, part])) == ANY_DATA
    ceiling = made.PART | {"outcome": "cannot show", "because": "all are perfect", "ours": 0.0, "low": 0.0, "high": 0.0}
    assert effect(pd.DataFrame([ceiling])) == "all are perfect"
    short = ceiling | {"because": "it fails, but after 1 of 9 rounds", "low": -1.0}
    assert effect(pd.DataFrame([short])) == "0 (-1 to 0)"


def test_published_sizes_that_are_excluded_are_named_once() -> None:
    rows = [made.PART | {"outcome": "open", "published": "half (p. 3)", "size_p": p} for p in (0.001, 0.02, 0.03)]
    assert effect(pd.DataFrame(rows)).endswith("; excluded: half (p. 3)")
    assert "excluded" not in effect(pd.DataFrame(rows[2:]))


@pytest.mark.parametrize("parts", [1, 2])
def test_a_verdict_on_other_data_says_so(parts: int) -> None:
    """In the report, in the table and in the summary: what they say of an estimate is the same."""
    label = "online-lda-rebuilt (stands in for online-lda)"
    found = pd.DataFrame([made.PART | {"outcome": "open", "data": label}] * parts)
    assert effect(found).endswith(f"; on {label}")
    assert "; on " not in effect(found.assign(data="online-lda"))


def test_a_summary_counts_the_verdicts_of_each_study() -> None:
    stated = {"source": "p. 1", "statement": "S.", "seeds": 5}
    one = made.plan({}, {"C1": stated, "C10": stated, "C3": stated}).studies["made-up"]
    other = made.plan({}, {"A2": stated}).studies["made-up"].model_copy(update={"study": "another"})
    found = [("C1", "partly"), ("C1", "partly"), ("C10", "reproduced"), ("A2", "partly")]
    assert verdict_summary([one, other], pd.DataFrame(found, columns=["claim", "verdict"])).splitlines() == [
        "| verdict | made-up | another | **all** |",
        "|---|--:|--:|--:|",
        "| ◆\u00a0reproduced | 1 | – | 1 |",
        "| ◐\u00a0partly | 1 | 1 | 2 |",
        "| not run or judged | 1 | – | 1 |",
        "| claims | 3 | 1 | 4 |",
    ]


def test_doubts_lie_beside_the_claims(tmp_path: Path) -> None:
    assert doubt_table(read_doubts(tmp_path / "claims.csv")).count("\n") == 1
    pd.DataFrame({"claims": ["C1 C2"], "doubt": ["D."], "repair": ["R."]}).to_csv(tmp_path / "doubts.csv", index=False)
    doubts = read_doubts(tmp_path / "claims.csv")
    assert doubt_table(doubts).splitlines()[2:] == ["| C1, C2 | D. | R. |"]

"""What was tested, as columns and in words."""

from pathlib import Path
from typing import Any

import made_evidence as made
import pandas as pd
import pytest
from made_runs import claim_test

from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.verdicts.criterion import CRITERION, criterion, describe
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core.places import REFERENCE
from plumbline.store.reference_files import CLAIMS

SHARE: dict[str, Any] = {
    "statistic": "share-above",
    "options": {"level": 1.0},
    "threshold": 0.5,
    "direction": "greater",
}
ALIKE: dict[str, Any] = {
    "of": "mean",
    "location": "median",
    "direction": "within",
    "range": (-1, 1),
    "also": ("valley",),
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (SHARE, "share-above of final regret, calibrated - plain on bowl, level 1.0: greater than 0.5"),
        (ALIKE, "median difference of mean regret, calibrated - plain on bowl, valley: within -1 and 1"),
        ({"baseline": None}, "difference of final regret, calibrated on bowl: less than 0"),
        ({"baseline_task": "pit"}, "difference of final regret, calibrated - plain (of pit) on bowl: less than 0"),
        (
            {"after": 0.5},
            "difference of final regret, calibrated, after 0.5 of its rounds - plain on bowl: less than 0",
        ),
    ],
)
def test_a_test_has_the_same_words_by_its_columns_in_a_file(changes: dict[str, Any], words: str, folder: Path) -> None:
    row = criterion(claim_test(**changes))
    assert list(row) == CRITERION
    assert describe(row) == words
    pd.DataFrame([dict.fromkeys(COLUMNS) | made.PART | {"outcome": "open"} | row]).to_csv(folder / CLAIMS, index=False)
    (read,) = read_claims(folder / CLAIMS).to_dict("records")
    assert describe(read) == words


def test_no_two_tests_of_a_claim_on_file_have_the_same_words(root: Path) -> None:
    table = read_claims(root / REFERENCE / CLAIMS)
    words = [describe(row) for row in table.to_dict("records")]
    assert not table.assign(words=words).duplicated(["claim", "role", "words"]).any()

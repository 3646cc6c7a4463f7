"""The table of seeds: the paper's, ours, and those that decide."""

import made_evidence as made
import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.publish.seeds_table import NONE, needed, seeds_table, telescope

ROW = {
    "claim": "K1",
    "role": "primary",
    "above": np.nan,
    "below": 0.0,
    "effect": -0.3,
    "seeds": 50,
    "needed": 40.0,
    "pattern": 0.853,
    "chance": 0.5,
    "verdict": "partly",
}


def rows(*changes: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame([ROW | one for one in changes])


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ([40.0], "40"),
        ([40.0, np.nan, 1353.0], "40 to 1,353"),
        ([40.0, np.inf], "40 to many"),
        ([np.nan, np.nan], NONE),
    ],
)
def test_seeds_are_those_of_the_parts_that_have_any(seeds: list[float], words: str) -> None:
    assert needed(rows(*({"needed": one} for one in seeds))) == words


def test_a_telescope_looks_at_the_claimed_side() -> None:
    """-.3 deviations are small for a claim of less, -3 are not; on the other side all are."""
    small, large = {"effect": -0.3}, {"effect": -3.0}
    other = {"effect": -3.0, "above": 0.0, "below": np.nan}
    assert telescope(rows(small, large), 5) == "excluded in 1 of 2 parts"
    assert telescope(rows(other), 5) == "excluded in 1 of 1 parts"


@pytest.mark.parametrize(
    ("change", "paper"),
    [({}, 0), ({}, 1), ({}, 50), ({"effect": np.nan}, 5), ({"above": 0.8, "below": 1.25}, 5)],
)
def test_without_few_seeds_or_an_effect_there_is_none(change: dict[str, object], paper: int) -> None:
    assert telescope(rows(change), paper) == NONE


def test_a_row_a_claim_that_is_judged() -> None:
    stated = {"source": "p. 1", "statement": "S.", "seeds": 5}
    study = made.plan({}, {"K2": stated, "K1": stated}).studies["made-up"]
    claims = rows({}, {"seeds": 10, "needed": 99.0}, {"role": "secondary", "seeds": 2})
    assert seeds_table([study], claims).splitlines()[2:] == [
        "| K1 | partly | 5 | 10 to 50 | 40 to 99 | 85% | 50% | excluded in 1 of 2 parts |"
    ]

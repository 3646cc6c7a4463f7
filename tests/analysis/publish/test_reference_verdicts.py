"""Tables of claims and doubts that are read, and what is refused."""

from pathlib import Path

import pandas as pd
import pytest

from plumbline.analysis.publish.reference_verdicts import read_claims, read_doubts
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core.errors import PlumblineError
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config


def test_a_table_of_claims_is_told_from_other_files(tmp_path: Path) -> None:
    named = {"role": "primary", "outcome": "open", "verdict": "partly"}
    pd.DataFrame([dict.fromkeys(COLUMNS, "x") | named]).to_csv(tmp_path / "claims.csv")
    assert len(read_claims(tmp_path / "claims.csv")) == 1
    pd.DataFrame([dict.fromkeys(COLUMNS, 1.0) | named | {"claim": "K1", "test": "", "sentence": ""}]).to_csv(
        tmp_path / "unnamed.csv"
    )
    unnamed = read_claims(tmp_path / "unnamed.csv")
    assert unnamed[["test", "sentence"]].to_numpy().tolist() == [["", ""]], "no words are words"
    (tmp_path / "README.md").write_text("# Title\n\nOne, two\nthree, four, five\n")
    (tmp_path / "costs.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    for name in ("README.md", "costs.csv", "empty.csv"):
        with pytest.raises(PlumblineError, match=f"{name} is no table of claims") as error:
            read_claims(tmp_path / name)
        assert "\n" not in str(error.value)
    with pytest.raises(PlumblineError, match="no table of claims at"):
        read_claims(tmp_path / "absent.csv")


def test_the_committed_doubts_are_about_claims_that_are_run(root: Path) -> None:
    path = root / "results/reference/claims.csv"
    doubts = read_doubts(path)
    plan = load_plan(read_config(root / "config/config.yaml"), root)
    run = {name for study in plan.studies.values() for name, claim in study.claims.items() if claim.experiments}
    assert {name for names in doubts["claims"] for name in names.split()} <= run
    assert doubts.notna().all(axis=None)
    assert not doubts.map(lambda text: "|" in text).any(axis=None)


@pytest.mark.parametrize(("column", "word"), [("verdict", "reproducd"), ("role", "primry"), ("outcome", "hold")])
def test_a_word_that_there_is_not_is_named(tmp_path: Path, column: str, word: str) -> None:
    row = dict.fromkeys(COLUMNS, "x") | {"role": "primary", "outcome": "open", "verdict": "partly", column: word}
    text = pd.DataFrame([row]).to_csv(index=False)
    (tmp_path / "claims.csv").write_text(text.replace("\n", "\n\n\n", 1))
    with pytest.raises(PlumblineError, match=rf"claims\.csv, line 4: unknown {column} '{word}': did you mean"):
        read_claims(tmp_path / "claims.csv")


@pytest.mark.parametrize(
    "text", ["", "claims,doubt\nC1,D.\n", "claims,doubt,repair\nC1,D.", "claims,doubt,repair\nC1,D.,\n"]
)
def test_damaged_doubts_are_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "doubts.csv").write_text(text)
    with pytest.raises(PlumblineError, match=r"doubts\.csv") as caught:
        read_doubts(tmp_path / "claims.csv")
    assert "\n" not in str(caught.value)


def test_the_line_of_a_doubt_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "doubts.csv").write_text('claims,doubt,repair\n\nC1,"of two\nlines",R.\nC2,,R.\n')
    with pytest.raises(PlumblineError, match=r"doubts\.csv, line 5: there is no doubt"):
        read_doubts(tmp_path / "claims.csv")

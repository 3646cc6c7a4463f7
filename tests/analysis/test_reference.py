"""Results that are kept: merged by their keys, with one provenance."""

from pathlib import Path

import pandas as pd

from plumbline.analysis.reference import combined_provenance, merge, verdict_table


def test_merging_replaces_rows_of_the_same_keys_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    merge(path, pd.DataFrame({"problem": ["b", "a"], "method": ["x", "x"], "value": [2.0, 1.0]}), ["problem", "method"])
    merge(path, pd.DataFrame({"problem": ["a"], "method": ["x"], "value": [7.0]}), ["problem", "method"])
    assert pd.read_csv(path).to_numpy().tolist() == [["a", "x", 7.0], ["b", "x", 2.0]]


def test_merging_nothing_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    merge(path, pd.DataFrame({"claim": ["K1"], "low": [0.0]}), ["claim"])
    before = path.read_bytes()
    merge(path, pd.DataFrame({"claim": [], "low": []}), ["claim"])
    assert path.read_bytes() == before


def test_provenance_lists_each_value_once() -> None:
    facts = [
        {"commit": "a", "dirty": False, "spec": {}, "wall_seconds": 1800.0},
        {"commit": "b", "dirty": False, "spec": {}, "wall_seconds": 1800.0},
    ]
    assert combined_provenance(facts) == {"commit": ["a", "b"], "dirty": [False], "trials": 2, "wall_hours": 1.0}


def test_verdicts_as_markdown() -> None:
    row = {
        "claim": "K1",
        "statement": "S.",
        "experiment": "E",
        "preset": "paper",
        "seeds": 5,
        "budget": "8 evaluations",
    }
    claims = pd.DataFrame([row | {"outcome": outcome, "verdict": "partly"} for outcome in ("holds", "open")])
    assert verdict_table(claims).splitlines()[2:] == [
        "| K1 | S. | E | paper: 5 seeds, 8 evaluations | **partly** (1 of 2 tests hold) |"
    ]

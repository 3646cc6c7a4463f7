"""What every illustration must do; a new one is checked without being named here."""

from functools import cache
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
import torch

from plumbline.core.options import Options, parse
from plumbline.core.seeding import generator
from plumbline.illustrations import branin_surfaces
from plumbline.illustrations.base import COLUMNS, illustrations, interval_rows, rows
from plumbline.illustrations.illustrate import illustrate
from plumbline.methods.conformal.search import LangevinOptions
from plumbline.registry.registry import Entry

KINDS = list(illustrations.entries())
CHEAP: dict[str, dict[str, Any]] = {
    "acquisitions-on-a-line": {
        "points": 21,
        "search": {"restarts": 1, "raw_samples": 8, "maxiter": 5},
        "methods": ["ei", "kg", "ts", "mes", "jes"],
        "draws": 5,
    },
    "approximation-fits": {
        "datasets": 2,
        "points": 21,
        "method": {"inducing": 4, "training": {"epochs": 3}},
    },
    "branin-surfaces": {
        "points": 12,
        "search": {"restarts": 1, "raw_samples": 8, "maxiter": 5},
        "posterior": {"candidates": 16},
    },
    "well-specified-bands": {
        "steps": [1, 2],
        "points": 21,
        "method": {"alpha": 0.2, "search": {"steps": 6, "burn_in": 2}, "posterior": {"candidates": 16}},
    },
}
"""Options of the illustrations that take seconds."""

FIXED = {"improvement-map", "radio-layout"}
"""Illustrations of something that is the same for all seeds."""


def build(kind: str, seed: int = 0, **changes: Any) -> pd.DataFrame:
    entry = illustrations[kind]
    options = parse(entry.options, CHEAP.get(kind, {}) | changes, "test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branin_surfaces, "CHAINS", LangevinOptions(steps=6, burn_in=2))
        return entry.build(options, generator("test", seed, "problem"))


@cache
def usual(kind: str) -> pd.DataFrame:
    return build(kind)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_it_returns_rows_of_the_agreed_columns(self, kind: str) -> None:
        frame = usual(kind)
        assert list(frame.columns) == list(COLUMNS)
        assert len(frame)
        assert frame[["panel", "series"]].notna().all(axis=None)
        assert set(frame.dtypes[list(COLUMNS[2:])]) == {np.dtype("float64")}
        assert np.isfinite(frame[["x", "x2", "value"]].to_numpy()[frame[["x", "x2", "value"]].notna()]).all()
        intervals = frame.dropna(subset=["low", "high"])
        assert (intervals["low"] <= intervals["high"]).all()

    def test_the_same_seed_gives_the_same_table_whatever_the_global_stream_is(self, kind: str) -> None:
        torch.manual_seed(3)
        again = build(kind)
        pd.testing.assert_frame_equal(usual(kind), again)

    def test_another_seed_gives_another_table(self, kind: str) -> None:
        assert usual(kind).equals(build(kind, seed=1)) == (kind in FIXED)


def test_rows_take_numbers_sequences_and_tensors() -> None:
    frame = rows("a", "b", x=torch.tensor([1.0, 2.0]), value=[3, 4], low=5)
    assert frame["x"].tolist() == [1.0, 2.0]
    assert frame["value"].tolist() == [3.0, 4.0]
    assert frame["low"].tolist() == [5.0, 5.0]
    assert frame["x2"].isna().all()


def test_a_set_has_a_row_an_interval_and_an_empty_one_has_none() -> None:
    inf = float("inf")
    frame = interval_rows("a", "set", [0.0, 0.5, 1.0], [[(-inf, inf)], [], [(0.0, 1.0), (2.0, 3.0)]])
    assert frame[["x", "low", "high"]].to_numpy().tolist() == [[0.0, -inf, inf], [1.0, 0.0, 1.0], [1.0, 2.0, 3.0]]


def test_draws_from_the_global_stream_are_repeated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """BoTorch's searches draw from it."""
    entry = Entry("chance", "", lambda options, generator: rows("a", "b", x=torch.rand(3)), Options, __name__)
    monkeypatch.setitem(illustrations._entries, "chance", entry)
    drawn = {"kind": "chance"}
    resolved = made.plan({"E": {"title": "Chance", "illustration": drawn, "figure": drawn, "quick": {}}}).resolve("E")
    pd.testing.assert_frame_equal(illustrate(resolved), illustrate(resolved))

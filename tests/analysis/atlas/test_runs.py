"""Runs of an edition, beside its rounds."""

from pathlib import Path

import pytest
from made_atlas import METHODS, ROUNDS, made_edition

from plumbline.analysis.atlas.edition import read_rounds
from plumbline.analysis.atlas.runs import experiment_of, index, runs, track_of
from plumbline.analysis.evidence.runs import COLUMNS
from plumbline.core.errors import PlumblineError


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_edition(tmp_path_factory.mktemp("atlas"), 2, 3)


def test_the_index_has_the_cells_with_trials(edition: Path) -> None:
    found = index(edition)
    assert set(found["experiment"]) == {"ATLAS-made"}
    assert track_of(experiment_of("made")) == "made"
    assert set(found["method"]) == set(METHODS), "and not the one whose cells are empty"
    assert len(found) == 2 * len(METHODS)


def test_a_row_a_trial(edition: Path) -> None:
    found = runs(edition, "ATLAS-made")
    assert list(found) == COLUMNS
    assert set(found["metric"]) == {"regret"}
    assert len(found) == 2 * len(METHODS) * 3
    assert set(found["rounds"]) == set(found["of"]) == {ROUNDS}, "the initial design is no round"
    assert set(found["evaluations"]) == {ROUNDS + 4}
    rounds = read_rounds(edition, ["task-1"]).query("method == @METHODS[0] and seed == 2")
    regret = (rounds["optimum"] - rounds["best"]).tolist()
    row = found.query("task == 'task-1' and method == @METHODS[0] and seed == 2").iloc[0]
    assert row["last"] == regret[-1]
    assert row["mean"] == pytest.approx(sum(regret[1:]) / ROUNDS)
    assert row["median"] == pytest.approx(sorted(regret[1:])[ROUNDS // 2] / 2 + sorted(regret[1:])[ROUNDS // 2 - 1] / 2)


def test_coverage_is_the_share_of_queries_so_far_without_the_initial_design(edition: Path) -> None:
    found = runs(edition, "ATLAS-made", "query_coverage").set_index(["task", "method", "seed"])
    rounds = read_rounds(edition, ["task-0"]).query("method == @METHODS[1] and seed == 1 and round > 0")
    shares = rounds["covered_50"].cumsum() / rounds["round"]
    row = found.loc["task-0", METHODS[1], 1]
    assert (row["last"], row["mean"]) == pytest.approx((shares.iloc[-1], shares.mean()))
    assert 0.3 < found["last"].mean() < 0.5, "50% sets, too narrow under three of four methods"


def test_a_metric_without_values_is_not_known(edition: Path) -> None:
    assert set(runs(edition, "ATLAS-made", "best_f")["metric"]) == {"best_f"}
    for name in ("nll", "incumbent_f", "hypervolume"):
        with pytest.raises(PlumblineError, match=f"unknown metric of ATLAS-made '{name}'"):
            runs(edition, "ATLAS-made", name)

"""Tables of runs: what is kept of trials, and how it is asked for."""

from pathlib import Path

import made_evidence as made
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.runs import COLUMNS, Runs, runs_of
from plumbline.core.errors import PlumblineError
from plumbline.store.records import write_frame

ASKED = [("bowl", "plain", "regret"), ("valley", "calibrated", "nll")]


def test_a_row_a_trial_and_metric(found: Evidence) -> None:
    table = runs_of(found, [*ASKED, ASKED[0]])
    assert table.columns.tolist() == COLUMNS
    assert table[["task", "method", "metric", "seed"]].to_numpy().tolist() == [
        [*asked, seed] for asked in ASKED for seed in range(made.SEEDS)
    ]
    assert set(table["rounds"]) == set(table["of"]) == {made.ROUNDS}
    assert set(table["evaluations"]) == {made.INITIAL + made.ROUNDS}


def test_the_last_value_is_that_of_the_records(found: Evidence) -> None:
    """Twice the regret that falls as `falling`: the best is the last."""
    table = Runs(runs_of(found, ASKED))(*ASKED[0])
    last = made.INITIAL + made.ROUNDS - 1
    assert table["last"].tolist() == pytest.approx([2 * made.falling(seed, last) for seed in range(made.SEEDS)])


def test_batches_are_rounds(folder: Path) -> None:
    evidence = made.read(folder, made.trial(q=3, rounds=4))
    (row,) = runs_of(evidence, ASKED[:1]).to_dict("records")
    assert (row["rounds"], row["of"], row["evaluations"]) == (4, 4, made.INITIAL + 12)


def test_a_run_without_a_value_keeps_its_row(folder: Path) -> None:
    evidence = made.read(folder, made.trial(seed=0), made.trial(seed=1, model=False))
    table = Runs(runs_of(evidence, [("bowl", "plain", "nll")]))("bowl", "plain", "nll")
    assert table["last"].isna().tolist() == [False, True]
    assert table["rounds"].tolist() == [made.ROUNDS, 0]


def test_written_and_read_they_are_the_same(found: Evidence, folder: Path) -> None:
    table = runs_of(found, ASKED)
    write_frame(folder / "runs.parquet", table)
    again = pd.read_parquet(folder / "runs.parquet")
    assert_frame_equal(again, table, check_dtype=False, check_categorical=False)
    assert Runs(again).trials == Runs(table).trials == {(task, method) for task, method, _ in ASKED}


def test_of_nothing_there_is_an_empty_table(found: Evidence) -> None:
    assert runs_of(found, []).columns.tolist() == COLUMNS
    assert Runs(runs_of(found, [])).trials == set()


def test_what_is_not_there_is_one_line(found: Evidence) -> None:
    with pytest.raises(PlumblineError, match="no trials of 'other' on 'bowl'"):
        runs_of(found, [("bowl", "other", "regret")])
    runs = Runs(runs_of(found, ASKED))
    with pytest.raises(PlumblineError, match="no nll of 'plain' on 'bowl' among the runs, but of: valley x calibrated"):
        runs("bowl", "plain", "nll")
    with pytest.raises(PlumblineError, match=r"but of: none; if they were kept before .* keep them again"):
        runs("bowl", "plain", "crps")

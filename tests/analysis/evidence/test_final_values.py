"""Where runs end, by hand."""

from pathlib import Path

import made_evidence as made
import numpy as np
import pandas as pd

from plumbline.analysis.evidence.final_values import (
    final_values,
    final_values_of,
    summary_columns,
    with_words_for_one_seed,
)

TABLE = pd.DataFrame([[1.0, np.nan, 3.0], [4.0, 5.0, 9.0]], index=[7, 8], columns=[0, 1, 2])


def test_a_running_metric_ends_at_its_last_value_and_one_of_single_queries_at_its_mean() -> None:
    np.testing.assert_array_equal(final_values_of(TABLE, "regret"), [3.0, 9.0])
    np.testing.assert_array_equal(final_values_of(TABLE, "set_width"), [3.0, 7.0])  # of the queries, not of the design
    assert final_values_of(TABLE.iloc[:0], "regret").shape == (0,)


def test_ends_are_by_seed(folder: Path) -> None:
    trials = [made.trial(seed=seed, regret=lambda s, _: float(s)) for seed in (5, 2)]
    found = final_values(made.read(folder, *trials), "bowl", "plain", "regret")
    assert sorted(found.index) == [2, 5]
    assert found[5] / found[2] == 2.5


def test_one_seed_has_no_standard_error() -> None:
    alone = summary_columns(np.array([2.0, np.nan]), "regret")
    assert (alone["regret"], alone["regret seeds"]) == (2.0, 1)
    assert np.isnan(alone["regret ±"])
    assert summary_columns(np.array([2.0, 4.0]), "regret")["regret ±"] == 1.0


def test_tables_say_where_there_is_one_seed() -> None:
    table = pd.DataFrame(
        {
            "seeds": [1, 5, 5],
            "regret": [2.0, 3.0, 4.0],
            "regret ±": [0.0, 0.5, 0.0],
            "regret published ±": 0.2,
            "nll": 1.0,
            "nll ±": [np.nan, np.nan, 0.1],
            "nll seeds": [1, 1, 5],
        }
    )
    shown = with_words_for_one_seed(table)
    assert shown["regret ±"].tolist() == ["one seed", 0.5, 0.0]
    assert shown["nll ±"].tolist() == ["one seed", "one seed", 0.1]
    assert shown["regret published ±"].tolist() == [0.2] * 3
    pd.testing.assert_frame_equal(with_words_for_one_seed(table.iloc[[2]]), table.iloc[[2]])

"""What runs come to, by hand."""

import numpy as np
import pandas as pd
import pytest

from plumbline.metrics.summaries import SUMMARIES, summarise


def rows(values: list[list[float | None]], rounds: int = 3, initial: int = 2) -> pd.DataFrame:
    """Return rows of trials, a list of a query's NLL and round each seed."""
    return pd.DataFrame(
        [
            {
                "seed": seed,
                "iteration": max(0, number - initial + 1),
                "evaluation": number,
                "nll": np.nan if value is None else value,
                "round_seconds": number,
            }
            for seed, of in enumerate(values)
            for number, value in enumerate(of)
        ]
    )


def test_by_hand() -> None:
    found = summarise(rows([[None, None, 1.0, 2.0, 6.0], [None, None, 0.0, 0.0, 3.0]]), "nll")
    assert found.columns.tolist() == [*SUMMARIES, "rounds"]
    assert found.index.tolist() == [0, 1]
    assert found["last"].tolist() == [6.0, 3.0]
    assert found["mean"].tolist() == [3.0, 1.0]
    assert found["median"].tolist() == [2.0, 0.0]
    assert found["rounds"].tolist() == [3, 3]


def test_rounds_without_a_value_are_left_out() -> None:
    found = summarise(rows([[None, None, 1.0, None, 6.0], [None, None, 0.0, 1.0, None]]), "nll")
    assert found["mean"].tolist() == [3.5, 0.5]
    assert found["rounds"].tolist() == [2, 2]
    assert found["last"].iloc[0] == 6.0
    assert np.isnan(found["last"].iloc[1]), "its last round has none, though another's has"


def test_the_initial_design_is_no_round() -> None:
    found = summarise(rows([[100.0, 100.0, 1.0, 3.0]]), "nll")
    assert found["mean"].tolist() == [2.0]
    assert found["rounds"].tolist() == [2]


def test_without_rounds_there_is_a_last_value_alone() -> None:
    found = summarise(rows([[1.0, 3.0]]), "nll")
    assert found["last"].tolist() == [2.0], "of a query's metric, the mean of the design"
    assert found[["mean", "median"]].isna().all(axis=None)


def test_of_a_metric_that_no_run_has_nothing_is_left() -> None:
    found = summarise(rows([[None] * 4, [None] * 4]), "nll")
    assert found.index.tolist() == [0, 1]
    assert found[list(SUMMARIES)].isna().all(axis=None)
    assert found["rounds"].tolist() == [0, 0]


@pytest.mark.parametrize("metric", ["nll", "round_seconds"])
def test_seeds_are_summarised_apart(metric: str) -> None:
    of = [[None, None, 1.0, 2.0], [None, None, 5.0, 7.0], [None, None, 3.0, 0.0]]
    whole = summarise(rows(of), metric)
    for seed in range(3):
        alone = rows(of)[lambda table, seed=seed: table["seed"] == seed]
        assert summarise(alone, metric).loc[seed].tolist() == whole.loc[seed].tolist()

"""Scores: normalised regrets, and calibration errors."""

import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.atlas.rounds import COLUMNS
from plumbline.analysis.atlas.scores import trials, with_regret


def rounds(best: dict[tuple[str, str], list[float]], covered: float = 1.0) -> pd.DataFrame:
    """Return rounds of one seed, the first of each list being the initial design."""
    frames = [
        pd.DataFrame({"task": task, "method": method, "seed": 0, "round": range(len(values)), "best": values})
        for (task, method), values in best.items()
    ]
    frame = pd.concat(frames, ignore_index=True).reindex(columns=["task", "method", *COLUMNS])
    frame["optimum"] = frame["task"].map({"known": 10.0})
    frame.loc[frame["round"] > 0, ["covered_50", "covered_80", "covered_95"]] = covered
    return frame.astype({"task": "category", "method": "category"})


def test_normalised_regret() -> None:
    found = with_regret(
        rounds({("known", "a"): [2.0, 6.0, 10.0], ("unknown", "a"): [0.0, 0.0, 1.0], ("unknown", "b"): [0.0, 4.0, 4.0]})
    )
    assert found["regret"].tolist() == [8.0, 4.0, 0.0, 4.0, 4.0, 3.0, 4.0, 0.0, 0.0]
    scores = trials(found).set_index(["task", "method"])
    assert scores["score"].to_dict() == {("known", "a"): 0.25, ("unknown", "a"): 0.875, ("unknown", "b"): 0.0}
    assert scores["final"].to_dict() == {("known", "a"): 0.0, ("unknown", "a"): 0.75, ("unknown", "b"): 0.0}


def test_regrets_of_the_best_observation_and_of_the_recommended_point() -> None:
    """In units of the initial design's best noise-free value, as the score is; known after the last round alone."""
    made = rounds({("known", "a"): [2.0, 6.0, 6.0]}).assign(
        incumbent=[0.0, 4.0, 4.0], recommended=[np.nan, np.nan, 8.0]
    )
    (found,) = trials(with_regret(made)).to_dict("records")
    assert (found["final"], found["observed"], found["recommended"]) == (0.5, 0.75, 0.25)


def test_no_normalised_regret_is_above_one() -> None:
    """Noise can put forward a point that is far worse than the best of the initial design."""
    made = rounds({("known", "a"): [9.0, 9.5]}).assign(incumbent=[9.0, -50.0], recommended=[np.nan, 3.0])
    found = trials(with_regret(made)).iloc[0]
    assert (found["final"], found["observed"], found["recommended"]) == (0.5, 1.0, 1.0)


def test_seeds_have_optima_of_their_own() -> None:
    """Functions and pools that are drawn anew for a seed."""
    both = [rounds({("known", "a"): values}).assign(seed=seed) for seed, values in enumerate([[2.0, 10.0], [2.0, 3.0]])]
    both[1]["optimum"] = 4.0
    found = trials(with_regret(pd.concat(both, ignore_index=True)))
    assert found["score"].tolist() == [0.0, 0.5]


def test_a_seed_whose_initial_design_has_the_optimum_has_no_score() -> None:
    found = trials(with_regret(rounds({("known", "a"): [10.0, 10.0]})))
    assert found["score"].isna().all()


def test_a_value_beyond_the_optimum_is_the_optimum() -> None:
    """Optima are rounded; no regret is negative."""
    found = with_regret(rounds({("known", "a"): [2.0, 10.0 + 1e-9]}))
    assert found["regret"].min() == 0.0


@pytest.mark.parametrize(("covered", "error"), [(1.0, (0.5 + 0.2 + 0.05) / 3), (0.0, (0.5 + 0.8 + 0.95) / 3)])
def test_calibration_error(covered: float, error: float) -> None:
    found = trials(with_regret(rounds({("known", "a"): [2.0, 3.0, 4.0]}, covered)))
    assert found["calibration_error"].tolist() == [pytest.approx(error)]
    assert found["first_half"].tolist() == [pytest.approx(error)]


def test_without_forecasts_there_is_no_calibration_error() -> None:
    found = trials(with_regret(rounds({("known", "a"): [2.0, 3.0]}, np.nan)))
    assert found[["calibration_error", "first_half", "nll"]].isna().all(axis=None)

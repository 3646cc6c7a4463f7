"""Methods of the atlas beside each other."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.atlas.ranks import at_cost, beaten, profiles, standings


def scores(values: dict[tuple[str, str], list[float]]) -> pd.DataFrame:
    rows = [
        {"task": task, "method": method, "seed": seed, "score": score}
        for (task, method), some in values.items()
        for seed, score in enumerate(some)
    ]
    return pd.DataFrame(rows)


def rounds(regrets: list[float], seconds: float, method: str = "a", task: str = "t", seed: int = 0) -> pd.DataFrame:
    """Return a trial whose rounds take the method some seconds."""
    frame = pd.DataFrame({"round": range(len(regrets)), "normalised_regret": regrets})
    frame["fit_seconds"] = np.where(frame["round"] > 0, 0.75 * seconds, np.nan)
    frame["acquire_seconds"] = np.where(frame["round"] > 0, 0.25 * seconds, np.nan)
    return frame.assign(task=task, method=method, seed=seed)


def test_beaten_is_the_share_of_the_others_that_are_worse() -> None:
    found = beaten(scores({("t", "a"): [0.1, 0.3], ("t", "b"): [0.2], ("t", "c"): [0.9], ("t", "d"): [np.nan]}))
    assert found.set_index("method")["beaten"].to_dict() == pytest.approx({"a": 0.75, "b": 0.75, "c": 0.0})


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8))
def test_ties_share_what_is_between_them(values: list[int]) -> None:
    found = beaten(scores({("t", str(i)): [float(value)] for i, value in enumerate(values)}))
    others = [[other for k, other in enumerate(values) if k != i] for i in range(len(values))]
    wanted = [
        np.mean([(1.0 if o > v else 0.5 if o == v else 0.0) for o in some])
        for v, some in zip(values, others, strict=True)
    ]
    assert found["beaten"].tolist() == pytest.approx(wanted)
    assert found["beaten"].mean() == pytest.approx(0.5)


def test_standings_by_track() -> None:
    both = {("t", "a"): [0.1], ("t", "b"): [0.2], ("u", "a"): [0.5], ("u", "b"): [0.1], ("v", "a"): [0.3]}
    found = standings(scores(both), {"all": ["t", "u", "v"], "first": ["t"], "alone": ["v"]})
    assert found.loc[found["track"] == "first", "method"].tolist() == ["a", "b"]
    assert found.loc[found["track"] == "all", ["tasks", "beaten"]].to_numpy().tolist() == [[2, 0.5], [2, 0.5]]
    assert not (found["track"] == "alone").any(), "a method that is alone on a task beats nobody"
    assert found.loc[found["track"] == "all", ["low", "high"]].to_numpy().tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert found.loc[found["track"] == "first", ["low", "high"]].isna().all(axis=None)


@pytest.mark.parametrize(("cost", "left"), [(0.1, 1.0), (1.0, 0.7), (2.0, 0.6), (9.0, 0.5), (1e6, 0.5)])
def test_a_slow_method_has_fewer_evaluations_in_the_same_time(cost: float, left: float) -> None:
    """Four rounds of one second each: in the time of four evaluations alone."""
    found = at_cost(rounds([1.0, 0.8, 0.7, 0.6, 0.5], seconds=1.0), cost)
    assert found["score"].tolist() == [left]


def test_a_method_without_seconds_has_all_evaluations() -> None:
    trial = rounds([1.0, 0.8, 0.3], seconds=0.0).assign(fit_seconds=np.nan, acquire_seconds=np.nan)
    assert at_cost(trial, 1.0)["score"].tolist() == [0.3]


def test_profiles_count_each_task_once() -> None:
    trials = [
        rounds([1.0, 0.3, end], 0.0, task=task, seed=seed)
        for task, seed, end in (("t", 0, 0.05), ("t", 1, 0.3), ("u", 0, 0.0))
    ]
    tasks = pd.DataFrame({"task": ["t", "u", "v"], "track": ["one", "two", "two"], "measure": ["value", "value", None]})
    found = profiles(pd.concat(trials, ignore_index=True), tasks).set_index(["profile", "track", "at"])
    ends, solved = found.loc["performance"], found.loc["data"]
    assert ends.loc[("all", 0.1), ["tasks", "share"]].tolist() == [2, (0.5 + 1.0) / 2]
    assert ends.loc[("all", 0.01), ["share", "low", "high"]].tolist() == [0.5, 0.0, 1.0]
    assert ends.loc[("one", 0.1), "share"] == 0.5
    assert ends.loc["one", ["low", "high"]].isna().all(axis=None), "one task has no interval"
    of_all = solved.loc["all", "share"]
    assert of_all[0.95] == 0.0
    assert of_all[1.0] == pytest.approx(0.75)
    assert of_all.is_monotonic_increasing

"""The runs of a store, of any metric and at any share of the rounds."""

from pathlib import Path

import pytest

import plumbline as pb
from plumbline.analysis.evidence.stored import Stored, runs_of_store, stored_trials
from plumbline.core.errors import PlumblineError

ROUNDS, SEEDS = 4, 2


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Stored]:
    store: Path = tmp_path_factory.mktemp("store")
    places = {"store": store, "data": store / "data"}
    pb.run(method_class="random", problem="branin", seeds=range(SEEDS), rounds=ROUNDS, **places)
    return stored_trials(store, ["random"], "branin")["random"]


@pytest.mark.parametrize("rounds", range(1, ROUNDS + 1))
def test_a_metric_may_be_read_early(trials: list[Stored], rounds: int) -> None:
    name = f"regret@{rounds / ROUNDS:g}"
    early, whole = runs_of_store(trials, name), runs_of_store(trials, "regret")
    assert set(early["metric"]) == {name}
    assert early["rounds"].tolist() == [rounds] * SEEDS
    assert (early["last"] >= whole["last"]).all()
    assert rounds < ROUNDS or early["last"].tolist() == whole["last"].tolist()


@pytest.mark.parametrize("name", ["regret@x", "regret@", "regret@0", "regert@0.5", "regert"])
def test_what_is_no_metric_is_one_line(trials: list[Stored], name: str) -> None:
    for some in (trials, []):
        with pytest.raises(PlumblineError, match=r"metric 're(gret@|gert)") as caught:
            runs_of_store(some, name)
        assert "\n" not in str(caught.value)

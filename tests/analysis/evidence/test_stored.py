"""The runs of a store, of any metric and at any share of the rounds."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import plumbline as pb
from plumbline.analysis.evidence.stored import Stored, refuse_other_code, runs_of_store, stored_trials
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


def test_equal_options_that_are_spelt_differently_are_alike(tmp_path: Path) -> None:
    places = {"store": tmp_path, "data": tmp_path / "data"}
    pb.run(method_class="random", problem="branin", seeds=[0], rounds=1, **places)
    spelt = {"noise_std": 0.0}
    pb.run(method_class="random", problem="branin", problem_options=spelt, seeds=[1], rounds=1, **places)
    pb.run(method_class="sobol", problem="branin", problem_options=spelt, seeds=[0], rounds=1, **places)
    found = stored_trials(tmp_path, ["random", "sobol"], "branin")
    assert {method: len(trials) for method, trials in found.items()} == {"random": 2, "sobol": 1}


WALK = """
class Walk:
    def __init__(self, bounds): self.low, self.high = bounds
    def tell(self, x, y): pass
    def ask(self): return self.low + (self.high - self.low) * {share}
"""


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Writes a module of one's own, and loads it anew."""
    monkeypatch.syspath_prepend(tmp_path / "code")
    (tmp_path / "code").mkdir()

    def write(name: str, text: str) -> None:
        (tmp_path / "code" / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)

    return write


def test_seeds_of_an_earlier_version_of_ones_code_are_left_out(
    tmp_path: Path, edited: Callable[[str, str], None]
) -> None:
    store = tmp_path / "store"
    asked = {"method_class": "ask-tell", "options": {"optimiser": "stored_walk:Walk"}, "problem": "branin"}
    edited("stored_walk", WALK.format(share=0.1))
    pb.run(**asked, seeds=4, rounds=1, store=store, data=tmp_path)
    edited("stored_walk", WALK.format(share=0.9))
    pb.run(**asked, seeds=[0, 1], rounds=1, store=store, data=tmp_path)
    with pytest.warns(UserWarning, match="Walk on branin: 2 seeds of an earlier version of your code left out"):
        (trials,) = stored_trials(store, ["Walk"], "branin").values()
    assert sorted(one.spec.seed for one in trials) == [0, 1]
    assert len({tuple(one.own_code.items()) for one in trials}) == 1


def test_methods_on_different_versions_of_a_problem_are_not_compared(trials: list[Stored]) -> None:
    class Ran(Stored):
        own_code = {"mine": "0" * 16}  # noqa: RUF012

    class RanAgain(Stored):
        own_code = {"mine": "1" * 16}  # noqa: RUF012

    first, again = (kind(trials[0].folder, trials[0].spec) for kind in (Ran, RanAgain))
    refuse_other_code({"a": [first], "b": [first], "c": []}, "branin")
    with pytest.raises(PlumblineError, match="'a' and 'b' ran with different versions of module 'mine'"):
        refuse_other_code({"a": [first], "b": [again]}, "branin")

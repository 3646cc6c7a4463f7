"""Initial designs that took long: evaluated under one method, begun with under all."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import torch
from handy import Make, bytes_of, each, interrupted, rows_of

from plumbline.store.folder import TrialFolder
from plumbline.store.keys import design_key
from plumbline.store.records import SECONDS
from plumbline.store.spec import TrialSpec
from plumbline.trials import design_cache, run_trial, trial
from plumbline.trials.design_cache import DesignCache
from plumbline.trials.log import Step

NOISY = {"name": "branin", "options": {"noise_std": 2.0}}


@pytest.fixture
def all_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design_cache, "LONG", 0.0)


def kept_in(store: Path) -> list[Path]:
    return sorted((store / "designs").glob("*"))


def seconds_of(folder: TrialFolder) -> dict[str, Any]:
    row = parquet.read_table(folder.timings_path).to_pylist()[0]
    return {name: row[name] for name in SECONDS}


@pytest.mark.usefixtures("all_are_long")
def test_a_design_is_evaluated_under_one_method(
    cheap_spec: Make, toy_problem: Callable[..., Any], tmp_path: Path
) -> None:
    toy = toy_problem(0.0, after=1_000)
    first = run_trial(cheap_spec("toy", "random", size=4, rounds=3), tmp_path, tmp_path)
    assert toy.count == 7
    second = run_trial(cheap_spec("toy", "sobol", size=4, rounds=3), tmp_path, tmp_path)
    assert toy.count == 10, "the rounds alone"
    assert len(kept_in(tmp_path)) == 1
    assert [row["x"] for row in rows_of(first)][:4] == [row["x"] for row in rows_of(second)][:4]
    assert seconds_of(second) == seconds_of(first), "what it takes, not what is saved"


@pytest.mark.usefixtures("all_are_long")
@pytest.mark.parametrize("method", ["random", "ei"])
def test_nothing_but_time_comes_of_it(cheap_spec: Make, tmp_path: Path, method: str) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    run_trial(cheap_spec(NOISY, "sobol"), here, tmp_path)
    spec = cheap_spec(NOISY, method)
    assert bytes_of(run_trial(spec, here, tmp_path)) == bytes_of(run_trial(spec, elsewhere, tmp_path))


@pytest.mark.usefixtures("all_are_long")
def test_batches_are_kept_apart(cheap_spec: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A trial that was killed between two batches goes on with the second."""
    monkeypatch.setattr(trial, "AT_ONCE", 3)
    spec = cheap_spec(NOISY, size=7)
    whole = bytes_of(run_trial(spec, tmp_path / "whole", tmp_path))
    numbers = {int(path.stem.split("-")[1]) for path in kept_in(tmp_path / "whole")}
    assert numbers == {0, 3, 6}
    with interrupted(0, "after the save", KeyboardInterrupt()) as raised, suppress(KeyboardInterrupt):
        run_trial(spec, tmp_path, tmp_path, ration=each)
    assert raised
    assert [path.stem.split("-")[1] for path in kept_in(tmp_path)] == ["0"]
    assert bytes_of(run_trial(spec, tmp_path, tmp_path)) == whole


def test_short_ones_are_not_kept(cheap_spec: Make, tmp_path: Path) -> None:
    run_trial(cheap_spec(), tmp_path, tmp_path)
    assert kept_in(tmp_path) == []
    step = Step(0, torch.rand(2, 3), torch.rand(2, 1), torch.rand(2, 1), seconds={"evaluate": 0.9})
    kept = DesignCache(tmp_path)
    kept.keep("short", 0, step, 0.99)
    assert kept.find("short", 0) is None
    kept.keep("long", 0, step, 1.0)
    found, seconds = kept.find("long", 0) or (None, None)
    assert seconds == 1.0
    assert found is not None
    assert dict(found.seconds) == {"evaluate": 0.9}
    for name in ("X", "Y", "F"):
        assert torch.equal(getattr(found, name), getattr(step, name))
    assert kept.find("long", 2) is None


@pytest.mark.usefixtures("all_are_long")
@pytest.mark.parametrize("content", [b"", b"half of a fi"])
def test_one_that_cannot_be_read_is_evaluated_again(cheap_spec: Make, tmp_path: Path, content: bytes) -> None:
    spec = cheap_spec(NOISY)
    whole = bytes_of(run_trial(spec, tmp_path / "whole", tmp_path))
    (path,) = kept_in(tmp_path / "whole")
    broken = tmp_path / "designs" / path.name
    broken.parent.mkdir()
    broken.write_bytes(content)
    with pytest.warns(UserWarning, match=f"{path.name} cannot be read .*: its points are evaluated again"):
        assert bytes_of(run_trial(spec, tmp_path, tmp_path)) == whole
    assert broken.read_bytes() != content, "and kept whole"


@pytest.mark.usefixtures("all_are_long")
def test_a_design_that_fails_is_not_kept(cheap_spec: Make, toy_problem: Callable[..., Any], tmp_path: Path) -> None:
    toy_problem(ZeroDivisionError("the oracle is broken"), after=2)
    assert run_trial(cheap_spec("toy", "random"), tmp_path, tmp_path).failed
    assert kept_in(tmp_path) == []


def test_what_a_design_is_named_by(cheap_spec: Make, tmp_path: Path) -> None:
    def key(*args: Any, **options: Any) -> str:
        return design_key(cheap_spec(*args, **options), tmp_path)

    def other_budget(spec: TrialSpec) -> TrialSpec:
        initial = spec.budget.initial.model_copy(update={"design": "sobol"})
        return spec.model_copy(update={"budget": spec.budget.model_copy(update={"initial": initial})})

    plain = key("branin", "random")
    for same in (
        key("branin", "ei"),
        key("branin", "random", rounds=9, q=2),
        key("branin", "random", label="mine", task="here", holdout=5),
    ):
        assert same == plain
    others = (key(NOISY), key(seed=1), key(size=5), key("hartmann-6"), design_key(other_budget(cheap_spec()), tmp_path))
    assert len({plain, *others}) == 6

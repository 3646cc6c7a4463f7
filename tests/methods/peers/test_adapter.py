"""What all peers do alike: absent libraries, refused tasks, failures, and resumed trials."""

import logging
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from handy import Make, bytes_of, each, interrupted
from peers_cases import CASES, hill, installed, on_a_hill, peers, skip_if_absent
from situations import BOX, ask, box

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.core.outcomes import Outcome
from plumbline.methods.base import Domain, build_method, methods
from plumbline.methods.peers.adapter import Optimiser, OptimiserMethod, quiet
from plumbline.registry.catalogue import catalogue
from plumbline.spaces.blocks import Blocks
from plumbline.spaces.stepped import Stepped
from plumbline.store.keys import code_outside, design_key, trial_key
from plumbline.trials import run_trial

NOWHERE = Path("/nowhere")
NAN = math.nan
LABELS = ["-".join([name, *map(str, options.values())]) for name, options in CASES]


class Counting(Optimiser):
    """An optimiser that writes down what it hears, and counts its rounds in its memory."""

    def __init__(self, seed: int) -> None:
        self.seed, self.heard, self.rounds = seed, [], 0  # type: ignore[var-annotated]

    def tell(self, x, y):  # type: ignore[no-untyped-def]
        self.heard.append((x.tolist(), y))

    def ask(self, q: int):  # type: ignore[no-untyped-def]
        logging.getLogger("a library").warning("a report")
        random.random()
        np.random.rand()  # noqa: NPY002 - as libraries do
        torch.rand(1)
        self.rounds += 1
        return np.full((q, 2), 1e9)

    def memory(self) -> dict[str, Any]:
        return {"rounds": self.rounds}

    def remember(self, memory: dict[str, Any]) -> None:
        self.rounds = memory.get("rounds", 0)


class Counted(OptimiserMethod):
    def optimiser(self, seed: int, q: int) -> Optimiser:
        self.last = Counting(seed)
        return self.last


def counted() -> Counted:
    return Counted(box().domain, Options())


def test_the_optimiser_hears_the_whole_history_in_its_order() -> None:
    place, method = box(4), counted()
    Y = place.history.Y.clone()
    Y[1] = NAN
    ask(method, History(place.history.X, Y, 4), 1)
    assert [x for x, _ in method.last.heard] == place.history.X.tolist()
    np.testing.assert_array_equal([y for _, y in method.last.heard], Y[:, 0].numpy())


def test_a_point_outside_by_rounding_is_put_on_the_box() -> None:
    assert ask(counted(), box().history, 2).X.tolist() == BOX[1].repeat(2, 1).tolist()


def test_stepped_inputs_stay_on_their_steps() -> None:
    space = Stepped(BOX, torch.tensor([5.0, 0.0], dtype=torch.float64))
    method = build_method("botorch-loop", {"num_restarts": 2, "raw_samples": 16}, Domain(space))
    X = ask(method, on_a_hill(8), 1).X
    assert X[0, 0] in torch.arange(-5.0, 11.0, 5.0)
    assert X[0, 1] != X[0, 1].round()


def test_its_seed_is_that_of_the_generator() -> None:
    method = counted()
    seeds = []
    for seed in (1, 1, 2):
        ask(method, box().history, 1, seed)
        seeds.append(method.last.seed)
    assert seeds[0] == seeds[1] != seeds[2]


def test_its_memory_is_the_state() -> None:
    method, resumed = counted(), counted()
    for _ in range(2):
        ask(method, box().history, 1)
    assert method.state_dict() == {"rounds": 2}
    resumed.load_state_dict(method.state_dict())
    ask(resumed, box().history, 1)
    assert resumed.state_dict() == {"rounds": 3}


def test_libraries_report_to_nobody_and_loggers_are_put_back(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.root.manager.disable
    ask(counted(), box().history, 1)
    assert not caplog.records
    with pytest.raises(ZeroDivisionError), quiet():
        raise ZeroDivisionError
    assert logging.root.manager.disable == before


@pytest.mark.parametrize("name", peers())
def test_an_absent_library_is_named_in_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = methods[name].build.libraries[0]  # type: ignore[attr-defined]
    monkeypatch.setattr("plumbline.core.libraries.installed_version", lambda one: None if one == library else "1")
    with pytest.raises(PlumblineError) as caught:
        build_method(name, {}, box().domain)
    remedy = 'pip install "plumbline[peers]"'
    assert str(caught.value) == f"method {name!r}: the package {library} is not installed: {remedy}"


@pytest.mark.slow
def test_an_absent_library_is_the_error_of_its_trial(
    cheap_spec: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("plumbline.core.libraries.installed_version", lambda one: None)
    folder = run_trial(cheap_spec(method="skopt", options={}), tmp_path, tmp_path)
    assert folder.failed
    assert "method 'skopt': the package scikit-optimize is not installed" in folder.reason()


@pytest.mark.parametrize("name", peers())
def test_another_version_of_a_library_is_another_trial_on_the_same_design(
    name: str, cheap_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = cheap_spec(method=name, options={})
    keys, designs = set(), set()
    for version in ("1.0", "2.0", None):
        monkeypatch.setattr("plumbline.store.keys.installed_version", lambda one, version=version: version)
        keys.add(trial_key(spec, NOWHERE))
        designs.add(design_key(spec, NOWHERE))
    assert (len(keys), len(designs)) == (3, 1)


def test_versions_of_libraries_count_in_no_other_trial(cheap_spec: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    before = trial_key(cheap_spec(method="ei"), NOWHERE)
    monkeypatch.setattr("plumbline.store.keys.installed_version", lambda one: "0")
    assert trial_key(cheap_spec(method="ei"), NOWHERE) == before


@pytest.mark.parametrize("name", peers())
def test_versions_are_in_the_provenance_and_names_in_the_catalogue(name: str, cheap_spec: Make) -> None:
    libraries = methods[name].build.libraries  # type: ignore[attr-defined]
    assert catalogue().find("method", name).libraries == libraries
    skip_if_absent(name)
    from importlib.metadata import version

    imported = code_outside(cheap_spec(method=name, options={}))["imported"].values()
    assert name == "botorch-loop" or version(libraries[0]) in imported


@pytest.mark.parametrize("name", peers())
def test_blocks_and_other_outcomes_are_refused_in_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.core.libraries.installed_version", lambda one: "1")
    blocks = Blocks(BOX, ((0,), (1,)), BOX[0])
    with pytest.raises(PlumblineError, match=f"^method {name!r} searches a box; .* change in blocks: use .*'logei'$"):
        build_method(name, {}, Domain(blocks))
    several = (Outcome("yield", reference=0.0), Outcome("purity", reference=0.0))
    with pytest.raises(PlumblineError, match=f"^method {name!r} is for one objective; .* use .*ehvi") as caught:
        build_method(name, {}, Domain(box().domain.space, several))
    assert "\n" not in str(caught.value)


def test_an_error_advises_no_method_that_is_absent_or_cannot_search_the_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.core.libraries.installed_version", lambda one: None if one == "optuna" else "1")
    with pytest.raises(PlumblineError, match="use ") as caught:
        build_method("ehvi", {}, box().domain)
    advised = str(caught.value).partition("use ")[2].split(", ")
    assert "cma-es" in advised
    assert "optuna" not in advised


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES, ids=LABELS)
def test_proposals_are_better_than_most_of_the_data(name: str, options: dict[str, Any]) -> None:
    """Values are maximised, in the units of the box."""
    method, history = installed(name, options, box()), on_a_hill(initial=5)
    values = [hill(ask(method, history, 1, seed).X).item() for seed in range(5)]
    assert np.median(values) > history.Y.median().item()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES, ids=LABELS)
def test_failed_evaluations_are_no_values(name: str, options: dict[str, Any]) -> None:
    method, whole = installed(name, options, box()), on_a_hill(15, initial=5)
    failed = torch.zeros(15, dtype=torch.bool)
    failed[[2, 8]] = True
    history = History(whole.X, whole.Y.masked_fill(failed.unsqueeze(-1), NAN), 5)
    X = ask(method, history, 2).X
    assert torch.isfinite(X).all()
    assert X.shape == (2, 2)


@pytest.mark.parametrize(("name", "options"), CASES, ids=LABELS)
def test_without_any_value_proposals_are_random(name: str, options: dict[str, Any]) -> None:
    method, history = installed(name, options, box()), on_a_hill(4)
    X = ask(method, History(history.X, torch.full_like(history.Y, NAN), 4), 3).X
    assert len(X.unique(dim=0)) == 3
    assert ((BOX[0] <= X) & (BOX[1] >= X)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES, ids=LABELS)
def test_a_resumed_trial_ends_with_the_same_bytes(
    name: str, options: dict[str, Any], cheap_spec: Make, tmp_path: Path
) -> None:
    skip_if_absent(name)
    spec = cheap_spec(method=name, options=options, rounds=3, size=10)
    expected = run_trial(spec, tmp_path / "whole", tmp_path)
    assert not expected.failed, expected.reason()
    root = tmp_path / "stopped"
    for iteration, point in (1, "after the save"), (2, "before the answer"):
        with interrupted(iteration, point, KeyboardInterrupt()) as raised, pytest.raises(KeyboardInterrupt):
            run_trial(spec, root, tmp_path, ration=each)
        assert raised
    assert bytes_of(run_trial(spec, root, tmp_path, ration=each)) == bytes_of(expected)

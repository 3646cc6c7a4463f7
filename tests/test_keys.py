"""Names of trials."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline import keys
from plumbline.errors import PlumblineError
from plumbline.keys import code_digest, features_path, trial_key
from plumbline.specs import TrialSpec

Make = Callable[..., TrialSpec]
NOWHERE = Path("/nowhere")
TABLE = {"name": "molecules", "options": {"dataset": "generated-molecules", "target": "qed", "pool": 20}}


def test_a_key_is_sixteen_hex_digits(cheap_spec: Make) -> None:
    assert re.fullmatch("[0-9a-f]{16}", trial_key(cheap_spec(), NOWHERE))


def test_labels_do_not_count(cheap_spec: Make) -> None:
    named = cheap_spec("ackley-2", "ei", label="mine", task="hole")
    assert trial_key(named, NOWHERE) == trial_key(cheap_spec("ackley-2", "ei"), NOWHERE)
    spelt_out = cheap_spec({"name": "ackley", "options": {"dim": 2}}, "ei")
    assert trial_key(spelt_out, NOWHERE) == trial_key(cheap_spec("ackley-2", "ei"), NOWHERE)


changes = st.fixed_dictionaries(
    {},
    optional={
        "problem": st.sampled_from(["branin", "ackley-2", "ackley-3"]),
        "options": st.sampled_from([{}, {"jitter": 0.1}, {"jitter": 0.2}]),
        "seed": st.integers(0, 3),
        "rounds": st.integers(0, 3),
        "size": st.integers(1, 3),
        "q": st.integers(1, 2),
        "alphas": st.sampled_from([(0.1,), (0.2,), ("1/sqrt(n)",)]),
        "holdout": st.integers(0, 2),
    },
)


@given(changes, changes)
def test_keys_differ_where_specs_do(cheap_spec: Make, one: dict[str, Any], two: dict[str, Any]) -> None:
    first, second = cheap_spec(method="sobol", **one), cheap_spec(method="sobol", **two)
    assert (trial_key(first, NOWHERE) == trial_key(second, NOWHERE)) == (first == second)


def test_code_counts(cheap_spec: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    before = trial_key(cheap_spec(), NOWHERE)
    monkeypatch.setattr(keys, "source_digest", lambda *modules: "edited")
    assert trial_key(cheap_spec(), NOWHERE) != before


def test_the_code_is_that_of_method_problem_and_loop(cheap_spec: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(keys, "source_digest", lambda *modules: seen.append(modules) or "x")
    code_digest(cheap_spec("branin", "ei"))
    assert seen == [("plumbline.methods.gp", "plumbline.problems.synthetic", "plumbline.trials.trial")]


def test_unknown_names(cheap_spec: Make) -> None:
    with pytest.raises(PlumblineError, match="unknown method 'rndom'"):
        trial_key(cheap_spec(method="rndom", options={}), NOWHERE)


def test_features_count(cheap_spec: Make, molecules: Path, tmp_path: Path) -> None:
    spec = cheap_spec(TABLE)
    missing = trial_key(spec, tmp_path)
    path = features_path(tmp_path, "generated-molecules")
    assert path == tmp_path / "features" / "generated-molecules.parquet"
    path.parent.mkdir()
    shutil.copy(features_path(molecules, "generated-molecules"), path)
    there = trial_key(spec, tmp_path)
    assert there != missing
    assert there == trial_key(spec, molecules), "what they hold counts, not where they are"
    os.utime(path, ns=(1, 1))
    assert trial_key(spec, tmp_path) == there, "nor when they were written"
    path.write_bytes(path.read_bytes() + b" ")
    assert trial_key(spec, tmp_path) not in (there, missing)
    assert trial_key(cheap_spec(), tmp_path) == trial_key(cheap_spec(), NOWHERE), "others do not read them"

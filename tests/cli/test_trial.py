"""`plumbline trial`: what it prints, and that every mistake is one line."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import check_one_line
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.main import get_command

from plumbline.cli.app import app
from plumbline.cli.trial import settings_of
from plumbline.core.errors import PlumblineError
from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]
TRIAL = ("trial", "--problem", "branin", "--class", "random", "--rounds", "1")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--class", "randm"), ["unknown method 'randm': did you mean 'random'"]),
        (("--problem", "brannin"), ["unknown problem 'brannin': did you mean 'branin'?"]),
        (("--problem", "ackley"), ["trial: problem 'ackley': dim: Field required: write `ackley-2`, say"]),
        (
            ("--problem", "molecules"),
            ["problem 'molecules': dataset: Field required", "`plumbline classes problem molecules`"],
        ),
        (("--problem", "ackley-0"), ["problem 'ackley': dim: Input should be greater than 0 (got 0)"]),
        (("--class", "ei", "-p", "jiter=1"), ["method 'ei': unknown field 'jiter': did you mean 'jitter'?"]),
        (("--class", "ei", "-p", "model.kernel=rfb"), ["method 'ei': model.kernel: Input should be", "(got 'rfb')"]),
        (("-P", "noise=1"), ["problem 'branin': unknown field 'noise': did you mean 'noise_std'?"]),
        (("-P", "noise_std=-1"), ["problem 'branin': noise_std: Input should be greater than or equal to 0"]),
        (("--option", "jitter"), ["option 'jitter': write it as name=value"]),
        (("--seed", "-1"), ["'--seed': Input should be greater than or equal to 0 (got -1)"]),
        (("--seed", str(2**31)), ["'--seed': Input should be less than or equal to 2147483647 (got 2147483648)"]),
        (("--rounds", "-1"), ["'--rounds': Input should be greater than or equal to 0 (got -1)"]),
        (("--rounds", "100001"), ["'--rounds': Input should be less than or equal to 100000 (got 100001)"]),
        (("--q", "0"), ["'--q': ", "(got 0)"]),
        (("--rounds", "a b"), ["'--rounds': Input should be a valid integer", "(got 'a b')"]),
        (
            ("--problem", "rosenbrock-1"),
            ["problem 'rosenbrock': dim: Input should be greater than or equal to 2 (got 1)"],
        ),
        (("--initial", "0"), ["'--initial': ", "(got 0)"]),
        (("--design", "lhs"), ["trial: design: "]),
    ],
)
def test_mistakes_of_a_trial(arguments: tuple[str, ...], parts: list[str], run: Run) -> None:
    check_one_line(run(*TRIAL, *arguments), *parts)


def rounds_of(output: str) -> list[str]:
    """Return the first cells of the rows of a table of evaluations."""
    head, *lines = output.splitlines()
    assert head.split()[:2] == ["round", "x"]
    return [line.split()[0] for line in lines if not line.startswith("records: ")]


def test_options_are_nested_yaml() -> None:
    pairs = ["model.kernel=rbf", "model.ard=false", "alpha=0.1", "x=[1, 2]", "y=a=b"]
    nested = {"model": {"kernel": "rbf", "ard": False}, "alpha": 0.1, "x": [1, 2], "y": "a=b"}
    assert settings_of(pairs) == nested
    assert settings_of(None) == {}


def test_a_trial_prints_its_rounds(run: Run, tmp_path: Path) -> None:
    code, output, _ = run(*TRIAL, "--rounds", "3", "--initial", "2", "-P", "noise_std=0.1")
    assert code == 0
    assert "best y" in output
    assert rounds_of(output) == list("00123")
    (path,) = (tmp_path / "results/store").glob("*/records.parquet")
    assert f"records: {path.relative_to(tmp_path)}" in output


def test_a_long_trial_prints_its_ends(run: Run) -> None:
    code, output, _ = run(*TRIAL, "--rounds", "30", "--initial", "100")
    assert code == 0
    assert rounds_of(output) == ["0"] * 20 + ["..."] + [str(i) for i in range(11, 31)]
    assert "90 more" in output


@pytest.mark.slow
def test_a_trial_of_two_outcomes_prints_both(run: Run) -> None:
    code, output, _ = run("trial", "--problem", "branin-currin", "--class", "random", "--rounds", "1")
    assert code == 0
    assert "y1" in output
    assert "y2" in output
    assert "regret" not in output


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        (["=1"], "option '=1': write it as name=value"),
        (["a..b=1"], "option 'a..b=1': write it as name=value"),
        ([".a=1"], "write it as name=value"),
        (["a=1", "a=2"], "option 'a=2': 'a' has a value already"),
        (["a.b=1", "a=2"], "option 'a=2': 'a' has a value already"),
        (["a=1", "a.b=2"], "option 'a.b=2': 'a' has a value of its own already"),
        (["a=["], "option 'a=[' is not YAML: "),
        (["a={b: 1, b: 2}"], "'b' is there twice"),
        (["a=2001-99-99"], "'2001-99-99' is read as a date: put it in quotes if it is text"),
        (["a=2001-01-01"], "'2001-01-01' is read as a date: put it in quotes if it is text"),
        (["a=!!set {b}"], "is read as a set: put it in quotes if it is text"),
        (["a=!!binary aGk="], "is read as bytes: put it in quotes if it is text"),
        (["a=!!python/object:os.system"], "could not determine a constructor"),
        (["a=" + "[" * 10_000], "option "),
    ],
)
def test_options_that_are_none(pairs: list[str], reason: str) -> None:
    with pytest.raises(PlumblineError) as error:
        settings_of(pairs)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


WORDS = st.text("ab 0,:=#-|>{}[]'\"\\.é–", max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([0.5, -1.25, 1e3]) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xyz"), JSON, min_size=1), min_size=1))
def test_options_are_what_is_said(options: dict[str, dict[str, Any]]) -> None:
    pairs = [
        f"{outer}.{inner}={json.dumps(value)}" for outer, inside in options.items() for inner, value in inside.items()
    ]
    assert settings_of(pairs) == options


def test_a_device_that_is_not_there(run: Run) -> None:
    check_one_line(run(*TRIAL, "--device", "abacus"), "unknown device 'abacus': auto, cpu or cuda")


def test_a_failed_trial_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbline.methods.baselines import RandomSearch

    monkeypatch.setattr(RandomSearch, "ask", lambda *arguments: 1 / 0)
    result = run(*TRIAL)
    check_one_line(
        (result[0], result[1], result[2].splitlines()[-1] + "\n"), "ZeroDivisionError", "(see results/store/"
    )
    assert result[2].count("error.json") == result[2].count("ZeroDivisionError") == 1
    code, output, _ = run("failures")
    assert code == 0
    assert "branin random seed 0: ZeroDivisionError" in output
    assert output.count("error.json") == 1
    code, output, _ = run("failures", "--forget")
    assert output.splitlines()[-1] == "1 failure forgotten; the trials run again when they are asked for"
    assert "no trial has failed" in run("failures")[1]


@pytest.mark.slow
def test_the_remedy_names_the_store_that_the_trial_is_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbline.methods.baselines import RandomSearch

    with monkeypatch.context() as failing:
        failing.setattr(RandomSearch, "ask", lambda *arguments: 1 / 0)
        errors = [run(*TRIAL, "--store", store)[2] for store in ("my runs", "./results/store")]
    assert "`plumbline failures --store 'my runs' --forget` clears it" in errors[0]
    assert "`plumbline failures --forget` clears it" in errors[1]
    assert "1 failure forgotten" in run("failures", "--store", "my runs", "--forget")[1]
    assert run(*TRIAL, "--store", "my runs")[0] == 0


def test_bounds_of_options_are_those_of_a_spec() -> None:
    """They are written twice: importing the models would make `plumbline --help` slow."""
    from plumbline.registry.references import InitialDesign
    from plumbline.store.spec import Budget

    fields = {
        "rounds": Budget.model_fields["rounds"],
        "q": Budget.model_fields["q"],
        "initial": InitialDesign.model_fields["size"],
        "seed": TrialSpec.model_fields["seed"],
    }
    options = {one.name: one for one in get_command(app).commands["trial"].params}  # type: ignore[attr-defined]
    for name, field in fields.items():
        bounds = {type(one).__name__: next(iter(vars_of(one))) for one in field.metadata}
        assert (options[name].min, options[name].max) == (bounds["Ge"], bounds["Le"]), name


def vars_of(bound: Any) -> list[Any]:
    """Return the value of a bound of a field."""
    return [getattr(bound, name) for name in ("ge", "le") if hasattr(bound, name)]


def test_a_trial_that_failed_at_once_prints_no_table(run: Run) -> None:
    _, output, errors = run("trial", "--problem", "branin-currin", "--class", "ei")
    assert "round" not in output
    assert "is for one objective; this problem has several objectives: use cehvi" in errors.splitlines()[-1]


def test_what_a_round_has_not_is_a_dash(run: Run) -> None:
    code, output, _ = run("trial", "--problem", "branin", "--class", "random", "--rounds", "1")
    assert code == 0
    assert "nan" not in output
    assert "–" in output


def test_a_full_disk_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    import torch

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "checkpoint.pt")

    monkeypatch.setattr(torch, "save", full)
    code, _, errors = run(*TRIAL)
    check_one_line((code, "", errors.splitlines()[-1] + "\n"), "disk full (checkpoint.pt): free some space")


def test_an_entry_of_the_configuration(run: Run) -> None:
    """`ei` is the method of the study's figures, with its options, not the registered class of that name."""
    assert run("trial", "--method", "random", "--task", "ackley-2", "--rounds", "1")[0] == 0
    code, output, _ = run("trial", "--method", "random", "--task", "ackley-2", "--rounds", "1", "--csv")
    assert code == 0
    frame = pd.read_csv(StringIO(output))
    assert frame["task"].tolist() == ["ackley-2"] * 6
    assert frame["iteration"].tolist() == [0] * 5 + [1]
    assert {"x1", "x2", "y", "best_y", "regret", "seconds"} <= set(frame)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--method", "logei", "--task", "ackley-2"), "'logei' is a registered class, no entry"),
        (("--class", "ei-ml", "--problem", "branin"), "'ei-ml' is an entry of config/methods"),
        (("--method", "ei"), "give either a task (an entry of config/tasks) or a problem"),
        (("--task", "ackley-2"), "give either a method (an entry of config/methods) or a class"),
        (("--method", "logeii", "--task", "ackley-2"), "are known: `plumbline methods` lists them"),
    ],
)
def test_names_of_the_other_kind(arguments: tuple[str, ...], part: str, run: Run) -> None:
    result = run("trial", *arguments)
    check_one_line(result, part)
    assert len(result[2]) < 220, "no list of hundreds of names"


def test_constrained_evaluations_are_readable_at_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, output, _ = run("trial", "--problem", "constrained-gramacy", "--class", "random", "--rounds", "1")
    assert code == 0
    assert "violation" in output
    lines = output.splitlines()[:-1]  # the last is a path
    assert max(map(len, lines)) <= 80
    assert "…" not in output


STUCK = """
import time


class Stuck:
    def tell(self, x, y):
        pass

    def ask(self):
        time.sleep(60)
"""


@pytest.mark.slow
def test_a_call_that_takes_too_long_fails_the_trial(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stuck_trial.py").write_text(STUCK)
    monkeypatch.syspath_prepend(tmp_path)
    trial = ("trial", "--problem", "branin", "--class", "ask-tell", "-p", "optimiser=stuck_trial:Stuck")
    code, output, errors = run(*trial, "--timeout", "0.5")
    assert code == 2
    assert "TimeoutError: no answer within 0.5 s" in errors.replace("\n", " ")
    assert f"{tmp_path / 'stuck_trial.py'}, line 10" in errors.replace("\n", " ")
    assert "records: " in output
    for seconds, limit in (("0.4", "0.5"), ("0.6", "0.6")):  # a shorter limit changes nothing, a longer one is tried
        _, _, errors = run(*trial, "--timeout", seconds)
        assert f"TimeoutError: no answer within {limit} s" in errors.replace("\n", " ")

"""Commands about results."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from command_line import METHODS, STUDY, check_one_line

from plumbline.methods.baselines import RandomSearch
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.trials import run_trial

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


def test_plan(run: Run, tiny: Path) -> None:
    code, output, _ = run("plan")
    assert code == 0
    assert output.splitlines()[0] == "preset quick, generated data"
    (line,) = (line for line in output.splitlines() if "TINY-T1" in line)
    # Nothing like it was ever measured here.
    assert re.split("  +", line) == ["TINY-T1", "A table", "2", "0", "0.0 min", "0.0 min", "2"]
    assert "TINY-F2" not in output
    code, output, _ = run("plan", "--chunks")
    chunks = [Chunk.model_validate_json(line) for line in output.splitlines()]
    assert [chunk.seeds for chunk in chunks] == [(0, 1), (0,)]
    config = json.dumps({"studies": ["tiny"], "chunk": 1})
    assert len(run("plan", "--chunks", "--config", config)[1].splitlines()) == 3


def test_the_plan_says_which_of_the_trials_that_are_done_failed(
    run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: RandomSearch, *arguments: object) -> None:
        raise ValueError("no luck")

    assert "failed" not in run("plan")[1]
    monkeypatch.setattr(RandomSearch, "ask", fail)
    for chunk in map(Chunk.model_validate_json, run("plan", "--chunks")[1].splitlines()):
        for spec in chunk.specs():
            run_trial(spec, tiny / "results/store", tiny / "data")
    output = run("plan")[1]
    header, *lines = (re.split("  +", line) for line in output.splitlines()[1:])
    (row,) = (dict(zip(header, line, strict=True)) for line in lines if line[0] == "TINY-T1")
    assert (row["trials"], row["done"], row["failed"]) == ("2", "2", "2")
    assert "`plumbline failures --forget` lets them run again" in output


def test_the_plan_counts_what_its_own_results_have(
    run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """Wherever in the workspace it is asked for, and whatever the folder of results is called."""
    (tiny / "sub").mkdir()

    def done(*arguments: str) -> list[str]:
        code, output, errors = run("plan", *arguments)
        assert code == 0, errors
        return re.split("  +", next(line for line in output.splitlines() if "TINY-T1" in line))[2:4]

    for number, chunk in enumerate(map(Chunk.model_validate_json, run("plan", "--chunks")[1].splitlines())):
        for spec in chunk.specs():
            run_trial(spec, tiny / ("results" if number else "my runs") / "store", tiny / "data")
    assert done() == ["2", "0"]
    assert done("--config", 'config/config.yaml,{"results": "my runs"}') == ["2", "2"]
    monkeypatch.chdir(tiny / "sub")
    assert done("--config", '../config/config.yaml,{"results": "my runs/"}') == ["2", "2"]
    assert done("--config", "../config/config.yaml", "--store", "../my runs/store") == ["2", "2"]


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ("absent.yaml", ["no file absent.yaml"]),
        ('{"studies": ["tiny"], "preset": "quik"}', ["--config: preset: Input should be 'quick', 'desk' or 'paper'"]),
        ('{"studies": ["tny"]}', ["unknown study 'tny': did you mean 'tiny'?"]),
        ('{"studies": ["tiny"], "chunks": 1}', ["--config: unknown field 'chunks': did you mean 'chunk'?"]),
        ('{"studies": ["tiny"], "experiments": ["TINY-F3"]}', ["unknown experiment 'TINY-F3': did you mean 'TINY-F"]),
    ],
)
def test_mistakes_in_the_config(config: str, parts: list[str], run: Run, tiny: Path) -> None:
    check_one_line(run("plan", "--config", config), *parts)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (
            "title: A table",
            "titel: A table",
            ["tiny.yaml: experiments.TINY-T1: unknown field 'titel': did you mean 'title'?"],
        ),
        ("methods: [dice]", "methods: [dise]", ["tiny.yaml: TINY-T1: unknown method 'dise': did you mean 'dice'?"]),
        ("seeds: 2", "seeds: 0", ["tiny.yaml: experiments.TINY-T1.seeds: "]),
        (
            "{points: 41}",
            "{point: 41}",
            ["tiny.yaml: TINY-I1: illustration 'conformal-density': unknown field 'point'"],
        ),
        ("conformal-density, options", "densities, options", ["unknown illustration 'densities'"]),
        (
            "illustration: {kind: conformal-density, options: {points: 41}}",
            "caption: None.",
            ["tiny.yaml: TINY-I1: a figure needs a `grid` of trials or an `illustration`"],
        ),
        ("title: A table", "title: [A table", ["tiny.yaml is not YAML: ", "line"]),
    ],
)
def test_typos_in_a_study(old: str, new: str, parts: list[str], run: Run, tiny: Path) -> None:
    (tiny / "config/studies/tiny.yaml").write_text(STUDY.replace(old, new))
    check_one_line(run("plan"), *parts)


def test_a_typo_in_a_method(run: Run, tiny: Path) -> None:
    (tiny / "config/methods/tiny.yaml").write_text(METHODS.replace("{name: random,", "{name: random, options: {a: 1},"))
    check_one_line(run("plan"), "config/methods/tiny.yaml: dice: method 'random': unknown field 'a'")


def test_a_pipe_gets_whole_titles(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = " ".join(["One"] * 100)
    (tiny / "config/studies/tiny.yaml").write_text(STUDY.replace("title: A table", f"title: {long}"))
    assert long not in run("plan")[1]
    monkeypatch.delenv("COLUMNS")
    assert long in run("plan")[1]


def test_verdicts_of_a_file_are_those_that_it_has(run: Run, tiny: Path, root: Path) -> None:
    """Also of studies that the configuration leaves out; of a claim that two studies have, it is the chosen one's."""
    rows = pd.read_csv(root / "results/reference/claims.csv", keep_default_na=False)
    first = rows[rows["role"] == "primary"].iloc[:1]
    pd.concat([first.assign(claim=name) for name in ("K1", "M1", "GONE")]).to_csv(tiny / "mine.csv", index=False)
    own = STUDY.replace("tiny", "mine").replace("TINY", "MINE").replace("Dice win", "Mine wins")
    (tiny / "config/studies/mine.yaml").write_text(own)
    (tiny / "config/studies/more.yaml").write_text(
        own.replace("mine", "more").replace("MINE", "MORE").replace("  K1:", "  M1:").replace("Mine wins", "More wins")
    )
    for arguments in (), ("--csv",), ("--markdown",):
        with pytest.warns(UserWarning, match="mine.csv: no study has GONE"):
            code, output, _ = run("verdicts", "mine.csv", *arguments)
        assert code == 0
        assert ("Dice win" in output, "More wins" in output, "Mine wins" in output) == (True, True, False)
        assert "not judged" not in output
    with pytest.warns(UserWarning, match="GONE"):
        summary = pd.read_csv(StringIO(run("verdicts", "mine.csv", "--show", "summary", "--csv")[1]))
    assert summary.set_index("verdict").loc["claims"].to_dict() == {"tiny": 1, "more": 1, "all": 2}
    (tiny / "config/studies/broken.yaml").write_text("study: [")
    check_one_line(run("verdicts", "mine.csv"), "broken.yaml is not YAML")
    first.assign(claim="K1").to_csv(tiny / "mine.csv", index=False)
    assert "Dice win" in run("verdicts", "mine.csv")[1], "what is wrong in another study hinders nobody"


def test_a_claim_of_any_study_is_called_one(run: Run, tiny: Path) -> None:
    (tiny / "config/config.yaml").write_text("preset: quick\nstudies: [other]\n")
    check_one_line(run("verdicts", "k1"), "K1 is a claim: `plumbline show claim K1` shows it")


@pytest.mark.slow
def test_verdicts(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    code, output, _ = run("verdicts", "--csv")
    assert code == 0
    frame = pd.read_csv(StringIO(output), keep_default_na=False).set_index("claim")
    assert frame.loc["C1", "verdict"] == "reproduced"
    assert run("verdicts", "--markdown")[1].startswith("| claim | statement | verdict |")
    shown = run("verdicts")[1]
    assert shown.splitlines()[1].startswith("A1 ")
    assert re.search(r"\d experiments? not\s", shown)
    assert "neither holds nor fails" in shown
    for name in ("A1", "a1"):
        check_one_line(run("verdicts", name), "A1 is a claim: `plumbline show claim A1` shows it")
    check_one_line(run("verdicts", "A0"), "no table of claims at A0")
    assert run("verdicts", "--show", "doubts", "--csv")[1].startswith("claims,doubt")
    counts = pd.read_csv(StringIO(run("verdicts", "--show", "summary", "--csv")[1]), index_col="verdict")
    assert counts.loc["claims", "all"] == len(frame) == counts.drop(index="claims", columns="all").to_numpy().sum()
    for show in ("table", "summary", "doubts"):
        assert max(map(len, run("verdicts", "--show", show)[1].splitlines())) <= 200
        assert run("verdicts", "--show", show, "--markdown")[1].startswith("| ")
    check_one_line(run("verdicts", "--show", "grid"), "'--show': 'grid' is not one of")


@pytest.mark.slow
def test_a_warning_is_one_line(tiny: Path, one_core: dict[str, str]) -> None:
    (tiny / "results/store/0123456789abcdef").mkdir(parents=True)
    (tiny / "results/store/0123456789abcdef/provenance.json").write_text("{")
    command = [sys.executable, "-m", "plumbline", "plan"]
    done = subprocess.run(command, cwd=tiny, env=one_core, capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert line.startswith("plumbline: warning: results/store/0123456789abcdef/provenance.json is damaged")
    assert line.endswith("its time is left out")

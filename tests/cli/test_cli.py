"""The command line: what it prints, and that every mistake is one line."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as compute
import pytest

from plumbline.cli.main import main
from plumbline.cli.trial import settings_of
from plumbline.registry.catalogue import catalogue
from plumbline.store import records
from plumbline.store.provenance import METADATA_KEY
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.trials import run_trial

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]
TRIAL = ("trial", "--problem", "branin", "--method", "random", "--rounds", "1")
METHODS = """
dice: {name: random, legend: dice}
bound: {name: ucb, options: {search: {restarts: 1, raw_samples: 8, maxiter: 5}}}
"""
TASKS = """
branin: {problem: branin, initial: {design: uniform, size: 3}, rounds: 2}
forrester: {problem: forrester, initial: {design: uniform, size: 3}, rounds: 1}
"""
STUDY = """
study: tiny
title: A tiny study
citation: Nobody.
experiments:
  TINY-T1:
    title: A table
    grid: [{tasks: [branin], methods: [dice]}]
    seeds: 2
    table: {kind: final-values, options: {metrics: [regret]}}
    quick: {}
  TINY-F1:
    title: A figure
    grid: [{tasks: [forrester], methods: [bound]}]
    diagnostics: {snapshots: {rounds: [1], points: 9}}
    figure: {kind: model-steps, options: {task: forrester, methods: [bound]}}
    quick: {}
  TINY-F2:
    title: Not in the quick preset
    grid: [{tasks: [forrester], methods: [bound]}]
    figure: {kind: model-steps, options: {task: forrester, methods: [bound]}}
  TINY-I1:
    title: An illustration
    illustration: {kind: conformal-density, options: {points: 41}}
    figure: {kind: conformal-density}
    quick: {}
claims:
  K1:
    source: nowhere
    statement: Dice win.
    experiments: [TINY-T1]
    primary:
      statistic: share-above
      metric: regret
      task: branin
      method: dice
      direction: greater
      options: {level: 1.0}
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Return what runs a command in an empty folder, in this process: exit code, output, errors."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["plumbline", *map(str, arguments)])
        code: Any = 0
        capsys.readouterr()
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return int(code or 0), captured.out, captured.err

    return call


@pytest.fixture
def tiny(root: Path, tmp_path: Path) -> Path:
    """A working directory with a study of its own."""
    (tmp_path / "config/studies").mkdir(parents=True)
    shutil.copy(root / "config/datasets.yaml", tmp_path / "config/datasets.yaml")
    (tmp_path / "config/methods.yaml").write_text(METHODS)
    (tmp_path / "config/tasks.yaml").write_text(TASKS)
    (tmp_path / "config/studies/tiny.yaml").write_text(STUDY)
    (tmp_path / "config/config.yaml").write_text("preset: quick\nstudies: [tiny]\n")
    return tmp_path


def check_one_line(result: tuple[int, str, str], *parts: str) -> None:
    code, _, errors = result
    assert code == 2
    assert errors.startswith("plumbline: error: ")
    assert errors.count("\n") == 1
    assert "Traceback" not in errors
    for part in parts:
        assert part in errors


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--method", "randm"), ["unknown method 'randm': did you mean 'random'? allowed: "]),
        (("--problem", "brannin"), ["unknown problem 'brannin': did you mean 'branin'?"]),
        (("--problem", "ackley"), ["trial: problem 'ackley': dim: Field required: write `ackley-2`, say"]),
        (
            ("--problem", "molecules"),
            ["problem 'molecules': dataset: Field required", "`plumbline problems molecules`"],
        ),
        (("--problem", "ackley-0"), ["problem 'ackley': dim: Input should be greater than 0 (got 0)"]),
        (("--method", "ei", "-p", "jiter=1"), ["method 'ei': unknown field 'jiter': did you mean 'jitter'?"]),
        (("--method", "ei", "-p", "model.kernel=rfb"), ["method 'ei': model.kernel: Input should be", "(got 'rfb')"]),
        (("-P", "noise=1"), ["problem 'branin': unknown field 'noise': did you mean 'noise_std'?"]),
        (("-P", "noise_std=-1"), ["problem 'branin': noise_std: Input should be greater than or equal to 0"]),
        (("--option", "jitter"), ["option 'jitter': write it as name=value"]),
        (("--seed", "-1"), ["trial: seed: Input should be greater than or equal to 0 (got -1)"]),
        (("--seed", str(2**31)), ["trial: seed: Input should be less than or equal to 2147483647"]),
        (("--rounds", "-1"), ["trial: budget.rounds: Input should be greater than or equal to 0 (got -1)"]),
        (("--rounds", "100001"), ["trial: budget.rounds: Input should be less than or equal to 100000"]),
        (("--q", "0"), ["trial: budget.q: "]),
        (
            ("--problem", "rosenbrock-1"),
            ["problem 'rosenbrock': dim: Input should be greater than or equal to 2 (got 1)"],
        ),
        (("--initial", "0"), ["trial: budget.initial.size: "]),
        (("--design", "lhs"), ["trial: budget.initial.design: "]),
    ],
)
def test_mistakes_of_a_trial(arguments: tuple[str, ...], parts: list[str], run: Run) -> None:
    check_one_line(run(*TRIAL, *arguments), *parts)


def test_options_are_nested_yaml() -> None:
    pairs = ["model.kernel=rbf", "model.ard=false", "alpha=0.1", "x=[1, 2]", "y=a=b"]
    nested = {"model": {"kernel": "rbf", "ard": False}, "alpha": 0.1, "x": [1, 2], "y": "a=b"}
    assert settings_of(pairs) == nested
    assert settings_of(None) == {}


def test_a_trial_prints_its_rounds(run: Run, tmp_path: Path) -> None:
    code, output, _ = run(*TRIAL, "--rounds", "3", "--initial", "2", "-P", "noise_std=0.1")
    assert code == 0
    assert "best y" in output
    assert [line.strip("│ ").split()[0] for line in output.splitlines() if line.startswith("│")] == list("00123")
    (path,) = (tmp_path / "results/store").glob("*/records.parquet")
    assert f"records: {path.relative_to(tmp_path)}" in output


def test_a_long_trial_prints_its_ends(run: Run) -> None:
    code, output, _ = run(*TRIAL, "--rounds", "30", "--initial", "100")
    assert code == 0
    lines = [line.strip("│ ").split()[0] for line in output.splitlines() if line.startswith("│")]
    assert lines == ["0"] * 20 + ["..."] + [str(i) for i in range(11, 31)]
    assert "90 more" in output


def test_a_trial_of_two_outcomes_prints_both(run: Run) -> None:
    code, output, _ = run("trial", "--problem", "branin-currin", "--method", "random", "--rounds", "1")
    assert code == 0
    assert "y 1" in output
    assert "y 2" in output
    assert "regret" not in output


def test_a_device_that_is_not_there(run: Run) -> None:
    check_one_line(run(*TRIAL, "--device", "abacus"), "unknown device 'abacus': auto, cpu or cuda")


def test_a_failed_trial_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbline.methods.baselines import RandomSearch

    monkeypatch.setattr(RandomSearch, "ask", lambda *arguments: 1 / 0)
    result = run(*TRIAL)
    check_one_line(
        (result[0], result[1], result[2].splitlines()[-1] + "\n"), "ZeroDivisionError", "(see results/store/"
    )
    code, output, _ = run("failures")
    assert code == 0
    assert "branin random seed 0: ZeroDivisionError" in output
    code, output, _ = run("failures", "--forget")
    assert "1 failures forgotten, 0 jobs to run again" in output
    assert "no trial has failed" in run("failures")[1]


@pytest.mark.parametrize(("command", "kind"), [("methods", "method"), ("problems", "problem")])
def test_listings(command: str, kind: str, run: Run) -> None:
    code, output, _ = run(command)
    assert code == 0
    listings = getattr(catalogue(), kind)
    assert {line.split()[0] for line in output.splitlines()} == set(listings)
    for listing in listings.values():
        assert listing.summary in output


@pytest.mark.parametrize(("command", "name", "option"), [("methods", "ei", "jitter"), ("problems", "radio", "n_ch")])
def test_one_with_its_options(command: str, name: str, option: str, run: Run) -> None:
    code, output, _ = run(command, name)
    assert code == 0
    assert output.startswith(f"{name}  ")
    assert any(line.startswith(f"{option} ") for line in output.splitlines())
    check_one_line(run(command, f"{name}x"), f"unknown {command.removesuffix('s')} '{name}x': did you mean '{name}'?")


def test_a_problem_goes_by_what_one_would_type(run: Run) -> None:
    assert run("problems", "ackley-2") == run("problems", "ackley")


def test_a_trial_that_failed_at_once_prints_no_table(run: Run) -> None:
    _, output, errors = run("trial", "--problem", "branin-currin", "--method", "ei")
    assert "round" not in output
    assert "is for one objective; this problem has several objectives: use cehvi" in errors.splitlines()[-1]


def test_what_a_round_has_not_is_a_dash(run: Run) -> None:
    code, output, _ = run("trial", "--problem", "branin", "--method", "random", "--rounds", "1")
    assert code == 0
    assert "nan" not in output
    assert "–" in output


def test_the_version(run: Run) -> None:
    code, output, errors = run("--version")
    assert (code, errors) == (0, "")
    assert output.startswith("plumbline ")


def test_no_command_is_a_question_and_no_mistake(run: Run) -> None:
    code, output, errors = run()
    assert (code, errors) == (0, "")
    assert "Usage" in output
    assert "snakemake" not in output
    check_one_line(run("mehtods"), "No such command 'mehtods'")


def test_plan(run: Run, tiny: Path) -> None:
    code, output, _ = run("plan")
    assert code == 0
    assert "TINY-T1" in output
    assert "TINY-F2" not in output
    code, output, _ = run("plan", "--chunks")
    chunks = [Chunk.model_validate_json(line) for line in output.splitlines()]
    assert [chunk.seeds for chunk in chunks] == [(0, 1), (0,)]
    config = json.dumps({"studies": ["tiny"], "chunk": 1})
    assert len(run("plan", "--chunks", "--config", config)[1].splitlines()) == 3


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
    (tiny / "config/methods.yaml").write_text(METHODS.replace("{name: random,", "{name: random, options: {a: 1},"))
    check_one_line(run("plan"), "config/methods.yaml: dice: method 'random': unknown field 'a'")


def test_commands_without_their_files(run: Run, tiny: Path) -> None:
    none = ("--records", "none.parquet", "--snapshots", "none.parquet")
    (tiny / "results/quick").mkdir(parents=True)
    check_one_line(run("figure", "TINY-F1", *none, "-o", "x.svg"), "no records at none.parquet: run the trials first")
    check_one_line(run("table", "TINY-T1", "--records", "none.parquet", "-o", "x.csv"), "no records at none.parquet")
    check_one_line(run("claims", "results/quick", "-o", "x.csv"), "no records at results/quick/records/TINY-T1.parquet")
    outputs = ("-o", "x.parquet", "--snapshots", "y.parquet")
    check_one_line(run("collect", "TINY-T1", *outputs), "no records at results/trials/branin/dice/")
    check_one_line(run("report", "results/quick", "-o", "x.html"), "no table of claims at results/quick/claims.csv")
    check_one_line(run("fetch", "zinc250", "--catalogue", "config/datasets.yaml"), "unknown dataset 'zinc250'")
    assert not list(tiny.glob("x.*"))


def test_what_is_asked_of_nothing_is_no_success(run: Run, tiny: Path) -> None:
    """Neither a traceback nor a quiet success where nothing was done."""
    (tiny / "README.md").write_text("# Title\n\nOne, two\nthree, four, five\n")
    (tiny / "results/quick").mkdir(parents=True)
    outputs = ("-o", "x.parquet", "--snapshots", "x.s.parquet")
    for arguments, part in (
        (("verdicts", "README.md"), "README.md is no table of claims"),
        (("verdicts", "none.csv"), "no table of claims at none.csv"),
        (("figure", "TINY-I1", "-o", "x.foo"), "unknown format of x.foo 'foo': allowed: "),
        (("figure", "TINY-F1", "-o", "x.svg"), "TINY-F1 rests on trials: give its collected records (--records)"),
        (("table", "TINY-T1", "-o", "x.csv"), "TINY-T1 rests on trials: give its collected records (--records)"),
        (("claims", "-o", "x.csv", "README.md"), "no folder of results at README.md"),
        (("claims", "-o", "x.csv", "nope"), "no folder of results at nope"),
        (("report", "-o", "x.html", "nope"), "no folder of results at nope"),
        (("reference", "TINY-T1", "--folder", "nope"), "no folder of results at nope"),
        (("reference", "TINY-T1"), "say whose results to keep: --folder results/<preset>"),
        (("compare", "TINY-T1", "dice", "dice"), "no runs of TINY-T1: run it, and name its results: --folder results/"),
        (("compare", "TINY-T9", "dice", "dice"), "unknown experiment 'TINY-T9': did you mean 'TINY-T1'"),
        (("compare", "TINY-T1", "dice", "dice", "--folder", "nope"), "no folder of results at nope"),
        (
            ("compare", "TINY-T1", "dice", "dice", "--folder", "results/quick"),
            "no records at results/quick/records/TINY-T1",
        ),
        (("failures", "--store", "nope"), "no folder of trials at nope"),
        (("track", "--artifacts", "nope"), "no folder of results at nope"),
        (
            ("track", "--artifacts", "results/quick"),
            "no records of any of the 2 jobs in results/trials: run the trials",
        ),
        (("collect", "TINY-I1", *outputs), "TINY-I1 has no trials in preset 'quick'"),
        (("illustrate", "TINY-T1", "-o", "x.parquet"), "TINY-T1 has no illustration"),
    ):
        check_one_line(run(*arguments), part)
    assert not list(tiny.glob("x.*"))
    assert not (tiny / "results/mlflow.db").exists()


@pytest.fixture
def collected(run: Run, tiny: Path) -> Path:
    """The records of the tiny study, one file an experiment, and its illustration."""
    from plumbline.study.plan import load_plan
    from plumbline.study.settings import read_config

    plan = load_plan(read_config(tiny / "config/config.yaml"), tiny)
    for name in ("TINY-T1", "TINY-F1"):
        (chunk,) = plan.resolve(name).chunks
        tables = [run_trial(spec, tiny / "results/store", tiny / "data").table(spec) for spec in chunk.specs()]
        records.write_table(chunk.path(tiny / "results/trials"), records.concatenate(tables))
    assert run("illustrate", "TINY-I1", "-o", "i/TINY-I1.parquet")[0] == 0
    return tiny


COLLECT = (
    "collect",
    "TINY-F1",
    "-o",
    "results/quick/records/TINY-F1.parquet",
    "--snapshots",
    "s/TINY-F1.parquet",
)
SHOWN = ("--records", "results/quick/records/TINY-F1.parquet", "--snapshots", "s/TINY-F1.parquet")


def test_what_an_experiment_does_not_have(run: Run, collected: Path) -> None:
    assert run(*COLLECT)[0] == 0
    check_one_line(run("figure", "TINY-F2", *SHOWN, "-o", "x.svg"), "TINY-F2 is not part of preset 'quick'")
    check_one_line(run("figure", "TINY-T1", *SHOWN, "-o", "x.svg"), "TINY-T1 has no figure")
    check_one_line(run("table", "TINY-F1", "-o", "x.csv"), "TINY-F1 has no table")
    check_one_line(run("figure", "TINY-F9", *SHOWN, "-o", "x.svg"), "unknown experiment 'TINY-F9': did you mean")


def test_an_illustration_is_computed_and_drawn(run: Run, tiny: Path) -> None:
    path, svg = tiny / "i/TINY-I1.parquet", tiny / "f/TINY-I1.svg"
    assert run("illustrate", "TINY-I1", "-o", path)[0] == 0
    first = path.read_bytes()
    about = json.loads(records.read_table(path).schema.metadata[METADATA_KEY.encode()])
    assert {"commit", "packages", "host"} <= about.keys()
    assert run("illustrate", "TINY-I1", "-o", path)[0] == 0
    assert path.read_bytes() == first, "the same table whenever it is asked for"
    assert run("figure", "TINY-I1", "--illustration", path, "-o", svg)[0] == 0
    assert "illustration" in svg.read_text(encoding="utf-8")


def test_illustrations_that_are_not_there(run: Run, tiny: Path) -> None:
    check_one_line(run("illustrate", "TINY-F1", "-o", "i.parquet"), "TINY-F1 has no illustration")
    check_one_line(run("illustrate", "TINY-F2", "-o", "i.parquet"), "TINY-F2 is not part of preset 'quick'")
    check_one_line(run("figure", "TINY-I1", "-o", "x.svg"), "TINY-I1 has no trial that ended well")


def test_a_grid_with_holes_is_refused(run: Run, collected: Path) -> None:
    (path,) = (collected / "results/trials/branin/dice").iterdir()
    table = records.read_table(path)
    records.write_table(path, table.filter(compute.equal(table["seed"], 1)))
    outputs = ("-o", "r.parquet", "--snapshots", "s.parquet")
    check_one_line(run("collect", "TINY-T1", *outputs), "1 of 2 trials are missing, the first: branin dice seed 0")
    assert not (collected / "r.parquet").exists()


def test_aggregation_does_not_import_torch(collected: Path, one_core: dict[str, str]) -> None:
    figure = "results/quick/figures/TINY-F1"
    commands = [
        [
            "collect",
            "TINY-T1",
            "-o",
            "results/quick/records/TINY-T1.parquet",
            "--snapshots",
            "s/TINY-T1.parquet",
        ],
        list(COLLECT),
        ["figure", "TINY-F1", *SHOWN, "-o", f"{figure}.svg", "-o", f"{figure}.png"],
        ["figure", "TINY-I1", "--illustration", "i/TINY-I1.parquet", "-o", "results/quick/figures/TINY-I1.png"],
        [
            "table",
            "TINY-T1",
            "--records",
            "results/quick/records/TINY-T1.parquet",
            "-o",
            "results/quick/tables/TINY-T1.csv",
        ],
        ["claims", "results/quick", "-o", "results/quick/claims.csv"],
        ["report", "results/quick", "-o", "results/quick/report.html"],
        ["verdicts", "results/quick/claims.csv"],
        ["compare", "TINY-T1", "dice", "dice", "--folder", "results/quick"],
    ]
    code = f"""
import sys
from plumbline.cli.main import main
for command in {commands!r}:
    sys.argv = ["plumbline", *command]
    main()
    assert "torch" not in sys.modules, command[0]
"""
    # The first run may have to build the catalogue, which imports torch; the second must not.
    subprocess.run(
        [sys.executable, "-c", "from plumbline.registry.catalogue import catalogue; catalogue()"],
        env=one_core,
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=one_core, cwd=collected, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("figures/TINY-F1.svg", "tables/TINY-T1.csv", "claims.csv", "report.html"):
        assert (collected / "results/quick" / name).stat().st_size > 0


def test_help_is_quick(one_core: dict[str, str]) -> None:
    code = """
import sys
sys.argv = ["plumbline", "--help"]
from plumbline.cli.main import main
try:
    main()
except SystemExit:
    pass
assert not {"torch", "pandas", "mlflow", "botorch", "rdkit", "sklearn", "pyarrow"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], env=one_core, capture_output=True, text=True, check=True)
    for command in (
        "fetch",
        "features",
        "trials",
        "trial",
        "collect",
        "illustrate",
        "figure",
        "table",
        "claims",
        "report",
        "failures",
    ):
        assert command in done.stdout


def test_trials_gather_the_seeds_of_a_chunk(run: Run, cheap_spec: Make, tmp_path: Path) -> None:
    chunk = Chunk(spec=cheap_spec("branin", "random", rounds=1, label="dice"), seeds=(3, 4))
    code, _, _ = run("trials", "--chunk", chunk.model_dump_json(), "-o", "out.parquet")
    assert code == 0
    frame = records.read_table(tmp_path / "out.parquet").to_pandas(maps_as_pydicts="strict")
    assert frame["seed"].unique().tolist() == [3, 4]
    assert frame["method"].unique().tolist() == ["dice"]
    assert "x" not in frame


def test_a_full_disk_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    import torch

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "checkpoint.pt")

    monkeypatch.setattr(torch, "save", full)
    code, _, errors = run(*TRIAL)
    check_one_line((code, "", errors.splitlines()[-1] + "\n"), "disk full (checkpoint.pt): free some space")


def test_the_schemas_are_written(run: Run, root: Path) -> None:
    code, output, _ = run("schema", "-o", "schemas")
    assert code == 0
    assert "schemas/methods.schema.json" in output.splitlines()
    written = {path.name for path in Path("schemas").iterdir()}
    assert written == {path.name for path in (root / "config/schemas").iterdir()}

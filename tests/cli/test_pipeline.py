"""What the commands that the workflow calls have in common."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import STUDY, check_one_line

from plumbline.registry.catalogue import catalogue
from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


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


@pytest.mark.slow
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
        (("reference", "TINY-T1"), "name the results to add: --folder results/<preset>"),
        (
            ("compare", "--methods", "dice,bound", "--experiment", "TINY-T1"),
            "no runs of TINY-T1: run it, and name its results, results/<preset>, by `--folder` (in Python `folder`)",
        ),
        (
            ("compare", "--methods", "dice,bound", "--experiment", "TINY-T9"),
            "unknown experiment 'TINY-T9': did you mean 'TINY-T1'",
        ),
        (
            ("compare", "--methods", "dice,bound", "--experiment", "TINY-T1", "--folder", "nope"),
            "no folder of results at nope",
        ),
        (
            ("compare", "--methods", "dice,bound", "--experiment", "TINY-T1", "--folder", "results/quick"),
            "no records at results/quick/records/TINY-T1",
        ),
        (("failures", "--store", "nope"), "no folder of trials at nope: `snakemake` and `plumbline trial` make one"),
        (("track", "--artifacts", "nope"), "no folder of results at nope"),
        (
            ("track", "--artifacts", "results/quick"),
            "no records of any job in results/trials: run the trials",
        ),
        (("collect", "TINY-I1", *outputs), "TINY-I1 has no trials in preset 'quick'"),
        (("outputs", "TINY-T1", "--folder", "x.results"), "no records at results/trials/branin/dice/"),
        (("outputs", "TINY-I1", "--folder", "x.results"), "no records at x.results/illustrations/TINY-I1.parquet"),
        (("illustrate", "TINY-T1", "-o", "x.parquet"), "TINY-T1 has no illustration"),
    ):
        check_one_line(run(*arguments), part)
    assert not list(tiny.glob("x.*"))
    assert not (tiny / "results/mlflow.db").exists()


COLLECT = (
    "collect",
    "TINY-F1",
    "-o",
    "results/quick/records/TINY-F1.parquet",
    "--snapshots",
    "s/TINY-F1.parquet",
)


SHOWN = ("--records", "results/quick/records/TINY-F1.parquet", "--snapshots", "s/TINY-F1.parquet")


def test_an_experiment_of_a_study_that_is_not_chosen_is_known(run: Run, tiny: Path) -> None:
    """The remedy is taken as it is printed."""
    own = STUDY.replace("tiny", "lab").replace("TINY", "LAB")
    (tiny / "config/studies/lab.yaml").write_text(own)
    (tiny / "config/studies/draft.yaml").write_text("study: [")
    (tiny / "results/quick").mkdir(parents=True)
    for arguments in (
        ("figure", "LAB-F1", "-o", "x.svg"),
        ("table", "LAB-T1", "-o", "x.csv"),
        ("collect", "LAB-T1", "-o", "x.parquet", "--snapshots", "y.parquet"),
        ("illustrate", "LAB-I1", "-o", "x.parquet"),
        ("outputs", "LAB-T1", "--folder", "results/quick"),
        ("reference", "LAB-T1", "--folder", "results/quick"),
    ):
        result = run(*arguments)
        check_one_line(result, "its study lab is not in `studies`: add it there")
        config = shlex.split(re.findall(r"`(--config \S.*?)` \(plumbline\)", result[2])[0])
        assert "is not in `studies`" not in run(*arguments, *config)[2]
    check_one_line(run("illustrate", "LAB-I9", "-o", "x.parquet"), "unknown experiment 'LAB-I9'")


@pytest.mark.slow
def test_what_an_experiment_does_not_have(run: Run, collected: Path) -> None:
    assert run(*COLLECT)[0] == 0
    check_one_line(run("figure", "TINY-F2", *SHOWN, "-o", "x.svg"), "TINY-F2 is not part of preset 'quick'")
    check_one_line(run("figure", "TINY-T1", *SHOWN, "-o", "x.svg"), "TINY-T1 has no figure")
    check_one_line(run("table", "TINY-F1", "-o", "x.csv"), "TINY-F1 has no table")
    check_one_line(run("figure", "TINY-F9", *SHOWN, "-o", "x.svg"), "unknown experiment 'TINY-F9': did you mean")


@pytest.mark.slow
def test_aggregation_does_not_import_torch(collected: Path, one_core: dict[str, str]) -> None:
    figure = "results/quick/figures/TINY-F1"
    commands = [
        ["outputs", "TINY-T1", "--folder", "results/quick"],
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
    ]
    code = f"""
import sys
from plumbline.cli.main import main
for command in {commands!r}:
    sys.argv = ["plumbline", *command]
    main()
    assert "torch" not in sys.modules, command[0]
"""
    assert catalogue().figure, "written down: to build the catalogue takes torch"
    done = subprocess.run(
        [sys.executable, "-c", code], env=one_core, cwd=collected, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("figures/TINY-F1.svg", "tables/TINY-T1.csv", "claims.csv", "report.html"):
        assert (collected / "results/quick" / name).stat().st_size > 0


def snapshot_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_no_command_writes_over_its_input(run: Run, collected: Path) -> None:
    assert run("collect", "TINY-T1", "-o", "T1.parquet", "--snapshots", "T1-s.parquet")[0] == 0
    assert run("collect", "TINY-F1", "-o", "F1.parquet", "--snapshots", "F1-s.parquet")[0] == 0
    (job,) = (collected / "results/trials/branin").rglob("*.parquet")
    (kept,) = sorted((collected / "results/store").glob("*/records.parquet"))[:1]
    (collected / "F1.svg").symlink_to("F1.parquet")
    before = snapshot_of(collected)
    table, figure = ("table", "TINY-T1", "--records", "T1.parquet"), ("figure", "TINY-F1", "--records", "F1.parquet")
    gather, drawn = ("collect", "TINY-T1", "-o"), ("figure", "TINY-I1", "--illustration", "i/TINY-I1.parquet")
    for arguments, words in (
        ((*table, "-o", "T1.parquet"), "is an input of this command too"),
        ((*table, "-o", "./i/../T1.parquet"), "is an input of this command too"),
        ((*table, "-o", "config/config.yaml"), "is an input of this command too"),
        ((*table, "-o", "config/studies/tiny.yaml"), "is an input of this command too"),
        ((*table, "-o", "i"), "is a folder: name a file"),
        ((*table, "-o", "/dev/null"), "is a device or a pipe: name a file"),
        ((*table, "-o", kept), "where no command may write"),
        ((*figure, "-o", "F1.svg"), "is an input of this command too"),
        ((*figure, "-o", "a.svg", "-o", "./a.svg"), "is named twice"),
        ((*drawn, "-o", "a.png", "-o", "a.png"), "is named twice"),
        ((*gather, "x.parquet", "--snapshots", "x.parquet"), "is named twice"),
        ((*gather, job, "--snapshots", "x.parquet"), "is an input of this command too"),
        ((*gather, "x.parquet", "--snapshots", job), "is an input of this command too"),
        (("illustrate", "TINY-I1", "-o", "config/tasks/tiny.yaml"), "is an input of this command too"),
        (("features", "generated-dna", "-o", "config/datasets.yaml"), "is an input of this command too"),
    ):
        check_one_line(run(*arguments), words)
        assert snapshot_of(collected) == before, arguments


@pytest.mark.slow
def test_records_of_another_experiment_are_refused(run: Run, collected: Path) -> None:
    assert run("collect", "TINY-T1", "-o", "T1.parquet", "--snapshots", "T1-s.parquet")[0] == 0
    assert run("collect", "TINY-F1", "-o", "F1.parquet", "--snapshots", "F1-s.parquet")[0] == 0
    words = "holds records of {}, not of {}'s grid"
    check_one_line(
        run("table", "TINY-T1", "--records", "F1.parquet", "-o", "t.csv"),
        words.format("forrester/bound seed 0", "TINY-T1"),
    )
    check_one_line(
        run("table", "TINY-T1", "--records", "T1-s.parquet", "-o", "t.csv"),
        "T1-s.parquet has no column",
    )

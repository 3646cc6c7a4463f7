"""Commands that compare methods, and say how many seeds that takes."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from command_line import check_one_line

import plumbline as pb
from plumbline.analysis.comparisons.compare import comparisons
from plumbline.cli.comparing import print_comparison
from plumbline.store import records

Run = Callable[..., tuple[int, str, str]]

PUBLISHED = ("--task", "levy-20", "--methods", "ucb,cucb,cucb-polished", "--experiment", "CBO-X1")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?")


@pytest.fixture
def ran(run: Run, collected: Path) -> Path:
    """The results of the tiny study, also of a method that is another."""
    outputs = ("-o", "results/quick/records/TINY-T1.parquet", "--snapshots", "s/TINY-T1.parquet")
    assert run("collect", "TINY-T1", *outputs)[0] == 0
    path = collected / "results/quick/records/TINY-T1.parquet"
    table = records.read_table(path)
    other = table.set_column(table.column_names.index("method"), "method", [["loaded-dice"] * len(table)])
    lower = [[value - 1 for value in values] for values in other["f"].to_pylist()]
    other = other.set_column(table.column_names.index("f"), table.schema.field("f"), [lower])
    records.write_table(path, records.concatenate([table, other]))
    return collected


def test_a_study_that_the_configuration_leaves_out_is_compared(
    run: Run, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes a study of their own need not enter it in config/config.yaml."""
    (ran / "config/studies/other.yaml").write_text("study: other\ntitle: Other\ncitation: Nobody.\nexperiments: {}\n")
    (ran / "config/config.yaml").write_text("preset: paper\nstudies: [other]\n")
    (ran / "config/studies/broken.yaml").write_text("experiments: {BROKEN: 1}\n")
    command = ("compare", "--methods", "dice,loaded-dice", "--folder", "results/quick")
    for columns in ("80", "60", None):
        monkeypatch.setenv("COLUMNS", columns) if columns else monkeypatch.delenv("COLUMNS")
        code, output, errors = run(*command, "--task", "branin")
        assert code == 0, errors
        assert output.splitlines()[0] == "regret on branin (lower is better)"
        assert columns is None or max(map(len, output.splitlines())) <= int(columns)
        assert "runs: TINY-T1 in results/quick" in output
    assert run(*command, "--experiment", "TINY-T1", "--csv", "x.csv")[0] == 0
    frame = pd.read_csv("x.csv").set_index("method")
    assert frame.loc["loaded-dice", "difference"] == pytest.approx(1.0)
    assert frame["better"].unique().tolist() == ["lower"]
    check_one_line(run(*command, "--task", "brannin"), "unknown task 'brannin': did you mean 'branin'")
    wrong = ("--experiment", "TINY-T2")
    check_one_line(run(*command, *wrong), "unknown experiment 'TINY-T2': did you mean 'TINY-T1'")


def test_a_value_that_all_seeds_share_has_an_open_interval_with_a_legend(capsys: pytest.CaptureFixture[str]) -> None:
    """The differences have one that is not open: the legend is of the values too."""
    values = {"never": [0.0] * 5, "often": [0.3, 0.4, 0.2, 0.35, 0.3]}
    rows = [("t", name, "failed_searches", seed, one) for name, of in values.items() for seed, one in enumerate(of)]
    runs = pd.DataFrame(rows, columns=["task", "method", "metric", "seed", "last"])
    frame = pd.DataFrame(comparisons(runs.assign(rounds=1, of=1, evaluations=1), list(values)))
    frame.attrs.update(source="nowhere", location="mean")
    print_comparison(frame)
    output = capsys.readouterr().out
    assert output.count("[–]") == 2, "the value's, and the legend's"
    assert "[–]: too few values for an interval, or all values equal" in output


def test_any_metric_can_be_asked_for_of_a_folder(run: Run, ran: Path) -> None:
    command = ("compare", "--methods", "dice,loaded-dice", "--task", "branin", "--folder", "results/quick", "--metric")
    code, output, _ = run(*command, "best_f")
    assert code == 0
    assert output.startswith("best_f on branin (higher is better)")
    check_one_line(run(*command, "regrets"), "unknown metric 'regrets': did you mean 'regret'")


def test_no_number_is_cut_whatever_the_width(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    monkeypatch.delenv("COLUMNS")
    code, piped, _ = run("compare", *PUBLISHED)
    assert code == 0
    assert "Holm: p corrected for the number of comparisons above (6)" in piped
    columns = [re.split("  +", line) for line in piped.splitlines() if line.startswith("cucb-polished ")]
    assert [len(row) for row in columns] == [6, 6, 6]
    assert all(re.fullmatch(r"-?[\d.]+ \[-?[\d.]+, -?[\d.]+\]", cell) for row in columns for cell in row[2:4])
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("compare", *PUBLISHED)[1]
    assert max(map(len, shown.splitlines())) <= 80
    assert sorted(NUMBER.findall(shown)) == sorted(NUMBER.findall(piped))
    assert "cucb-" in {line.split()[0] for line in shown.splitlines() if line.strip()}, "a long name is wrapped"


def test_files(run: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    paths = {kind: tmp_path / f"x.{kind}" for kind in ("csv", "json", "latex")}
    assert run("compare", *PUBLISHED, *(word for kind, path in paths.items() for word in (f"--{kind}", path)))[0] == 0
    table = pd.read_csv(paths["csv"])
    rows = json.loads(paths["json"].read_text())
    assert [row["method"] for row in rows] == table["method"].tolist()
    assert rows[0]["difference"] is None
    text = paths["latex"].read_text()
    assert "\\toprule" in text
    for row in rows:
        name, value = row["method"], f"{row['value']:.4g}"
        bold = f"\n\\textbf{{{name}}} & 25 & $\\mathbf{{{value}}}$ $["
        assert (bold if row["among_best"] else f"\n{name} & 25 & ${value}$ $[") in text
    assert {row["among_best"] for row in rows} >= {True, False}
    assert "do not differ significantly from it" in text
    check_one_line(run("compare", *PUBLISHED, "--csv", tmp_path), "is a folder: name a file")
    check_one_line(run("compare", *PUBLISHED, "--csv", paths["csv"], "--json", paths["csv"]), "is named twice")


def test_files_are_there_when_the_reader_leaves(
    unread: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    planned = ("--task", "levy-20", "--methods", "ucb,cucb", "--experiment", "CBO-X1", "--metric", "best_f")
    for command, *kinds in (("compare", *PUBLISHED), "csv", "json", "latex"), (("seeds", *planned), "csv", "json"):
        paths = {kind: tmp_path / f"{command[0]}.{kind}" for kind in kinds}
        code, _, errors = unread(*command, *(word for kind, path in paths.items() for word in (f"--{kind}", path)))
        assert (code, errors) == (128 + signal.SIGPIPE, "")
        assert all(path.stat().st_size for path in paths.values())


@pytest.mark.slow
def test_seeds(run: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    command = ("seeds", *PUBLISHED[:3], "ucb,cucb", "--metric", "best_f", "--effect", "60%", "--given", "6")
    shown = {}
    for columns in ("80", None):
        monkeypatch.setenv("COLUMNS", columns) if columns else monkeypatch.delenv("COLUMNS")
        code, shown[columns], errors = run(*command, "--csv", tmp_path / "x.csv")
        assert code == 0, errors
    assert max(map(len, shown["80"].splitlines())) <= 80
    assert shown["80"].split() == shown[None].split()
    eighty, ninety = pd.read_csv(tmp_path / "x.csv").to_dict("records")
    needed = f"{eighty['seeds']:.0f} [{eighty['low']:.0f}, {eighty['high']:.0f}]"
    assert needed in shown["80"]
    assert eighty["seeds"] < ninety["seeds"]
    seen = re.search(r"with 6 seeds an effect of ([\d.]+) \(cucb minus ucb\) is seen in (\d+) of 100", shown["80"])
    assert seen is not None
    baseline = pb.compare("ucb, cucb", "levy-20", experiment="CBO-X1", metric="best_f")["value"].iloc[0]
    assert float(seen[1]) == pytest.approx(0.6 * abs(baseline), rel=1e-2)
    assert int(seen[2]) == round(100 * eighty["seen"])
    check_one_line(
        run(*command[:-4], "--effect", "ten"), "effect 'ten': give a percentage of the baseline's mean (10%)"
    )


@pytest.mark.parametrize(
    ("methods", "reason"),
    [("ucb", "methods: name two or more"), ("ucb,", "methods 'ucb,': commas separate names"), ("ucb,ucb", "twice")],
)
@pytest.mark.parametrize("command", ["compare", "seeds"])
def test_methods_that_are_none(
    command: str, methods: str, reason: str, run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    check_one_line(run(command, "--task", "levy-20", "--methods", methods), reason)


@pytest.mark.slow
def test_no_torch_is_loaded(root: Path, one_core: dict[str, str]) -> None:
    code = f"""
import sys
from plumbline.cli.main import main
sys.argv = ["plumbline", "compare", *{PUBLISHED!r}]
main()
assert not {{"torch", "botorch"}} & set(sys.modules)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=one_core, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [",", "random,,ei"])
def test_commas_separate_names(run: Run, wrong: str) -> None:
    """Of methods, of tasks, and of those compared with."""
    for command in (
        ("compare", "--task", "levy-20", "--methods", wrong),
        ("seeds", "--task", "levy-20", "--methods", wrong),
        ("bench", "random", "--tasks", wrong),
        ("bench", "random", "--against", wrong),
    ):
        check_one_line(run(*command), "commas separate names")


def test_a_folder_without_runs(run: Run, tmp_path: Path) -> None:
    check_one_line(run("compare", "--task", "a", "--methods", "b,c", "--folder", tmp_path), "no runs in")

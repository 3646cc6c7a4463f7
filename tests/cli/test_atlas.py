"""The command of the atlas."""

import re
import signal
from collections.abc import Callable
from math import inf
from pathlib import Path

import pandas as pd
import pytest
from command_line import check_one_line
from made_atlas import made_edition

import plumbline as pb
from plumbline.cli.atlas import print_findings

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_edition(tmp_path_factory.mktemp("atlas"))


@pytest.mark.slow
def test_tasks(run: Run, edition: Path) -> None:
    code, out, _ = run("atlas", "--folder", edition)
    assert code == 0
    rows = [line.split() for line in out.splitlines()[2:]]
    assert [row[1] for row in rows] == [f"task-{i}" for i in range(6)]
    methods, empty, trials = map(int, rows[0][-3:])
    assert (empty, trials) == (1, 3 * methods)


def test_scores_of_a_task(run: Run, edition: Path) -> None:
    code, out, _ = run("atlas", "--task", "task-1", "--folder", edition)
    assert code == 0
    names = [line.split()[0] for line in out.splitlines()[2:]]
    assert set(names[:2]) == {"atlas-cei", "atlas-cucb"}, "the best first"
    assert out.splitlines()[-1] == "ax: for other tasks"


@pytest.mark.slow
def test_findings_and_their_figure(run: Run, edition: Path, tmp_path: Path) -> None:
    code, out, _ = run("atlas", "--findings", "--figure", tmp_path, "--folder", edition)
    assert code == 0
    assert (tmp_path / "interventions.png").is_file()
    conformal = next(line for line in out.splitlines() if re.match(r"conformal +score", line))
    mean, low, high, p, corrected = (float(cell.lstrip("<")) for cell in conformal.split()[-5:])
    assert low < mean < high < 0
    assert p < corrected < 0.05
    table = pb.atlas("findings", folder=edition)
    assert table.loc[0, "analysis"] == "recalibrated, models trained on each split"
    assert table["p_corrected"].notna().sum() == 9
    errors = table[table["of"] == "calibration_error"].set_index("analysis")
    assert errors.loc["recalibrated in closed form", "high"] < 0


def test_an_end_that_is_open_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"analysis": "conformal", "where": "all", "of": "score", "tasks": 2, "p": 0.5, "p_corrected": 1.0}
    print_findings(pd.DataFrame([row | {"value": -0.25, "low": -inf, "high": inf}]))
    assert capsys.readouterr().out.splitlines()[-1].split()[-6:] == ["2", "-0.250", "–", "–", ".5", "1"]


@pytest.mark.slow
def test_the_figure_is_there_when_the_reader_leaves(
    unread: Run, edition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plumbline.api.editions.add_to_atlas", lambda *_, **__: 3)
    code, _, errors = unread("atlas", "--add", "results", "--figure", tmp_path, "--folder", edition)
    assert code == 128 + signal.SIGPIPE
    assert errors.startswith("plumbline: wrote ")
    assert (tmp_path / "interventions.png").is_file()


@pytest.mark.parametrize("options", [("--findings", "--task", "task-1"), ("--ranks", "--findings")])
def test_listings_exclude_one_another(run: Run, edition: Path, options: tuple[str, ...]) -> None:
    check_one_line(run("atlas", *options, "--folder", edition), "give one of them")


def test_no_atlas(run: Run, tmp_path: Path) -> None:
    check_one_line(run("atlas", "--folder", tmp_path / "none"), "no atlas at")
    check_one_line(
        run("atlas", "--folder", made_edition(tmp_path / "a", 2, 3), "--task", "task-7"), "unknown task of the atlas"
    )


def test_ranks_of_one_method(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("made_atlas.METHODS", ["atlas-ei"])
    folder = made_edition(tmp_path / "one", 1, 2)
    check_one_line(run("atlas", "--ranks", "--folder", folder), "has no ranks: they take 2 methods")


def test_ranks(run: Run, edition: Path) -> None:
    code, out, _ = run("atlas", "--ranks", "--folder", edition)
    assert code == 0
    assert "1 second" in out
    assert "track" in out

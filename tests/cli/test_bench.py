"""The command that puts a method of one's own into the table of the atlas."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import check_one_line
from made_edition import TASK, small_grid

from plumbline.api import benching
from plumbline.api.editions import AtlasGrid


@pytest.fixture
def bench(run: Any, small_atlas: Path, atlas_grid: AtlasGrid, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what runs the command beside a small edition, in this process."""
    monkeypatch.setattr(benching, "AtlasGrid", lambda _: small_grid(atlas_grid))
    usual = ("--folder", small_atlas, "--cores", 1, "--against", "random,sobol")
    return lambda target, *options: run("bench", target, *usual, *options)


def test_it_prints_each_task_and_the_place_and_writes_files(bench: Callable[..., Any], tmp_path: Path) -> None:
    files = ("--csv", "d.csv", "--latex", "d.tex", "--figure", "d.pdf", "--paragraph", "d.md", "--page", "d.html")
    code, output, errors = bench("ask_tell_cases:Steps", "-p", "arguments.length=0.1", *files)
    assert (code, errors) == (0, "plumbline: wrote d.csv, d.tex, d.pdf, d.html, d.md\n")
    assert re.search(r"(?m)^all tasks +2 tasks ", output)
    assert "too few seeds for an interval" in output
    assert output.startswith("common-branin-0.0: score ")
    assert f"\n{TASK}: score " in output
    assert "of 3 methods that have all tasks (2); 0 is best" in output
    assert "score of Steps minus random's" in output
    assert "score of Steps minus sobol's" in output
    assert (tmp_path / "d.csv").read_text().startswith("against,task,pairs,difference,low,high,p,p_corrected\n")
    assert "score on all tasks (lower is better)" in (tmp_path / "d.tex").read_text()
    assert (tmp_path / "d.pdf").read_bytes().startswith(b"%PDF")
    assert "We ran Steps with 2 seeds on 2 tasks" in (tmp_path / "d.md").read_text()
    assert "<h1>Steps in the atlas 2026.12</h1>" in (tmp_path / "d.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "d.html", "d.md", "d.pdf", "d.tex", "results"]


def test_failed_trials_are_said_and_the_exit_code_is_2(bench: Callable[..., Any]) -> None:
    code, output, errors = bench("ask_tell_cases:Odd", "-p", "arguments.answer=[0.5]")
    assert code == 2
    assert f"{TASK}: score " in output
    assert "common-branin-0.0: 2 of 2 trials failed: " in output
    assert "score of Odd minus random's" in output
    assert errors.startswith("plumbline: error: 2 of 4 trials failed, the first one: common-branin-0.0: ")
    assert errors.count("\n") == 1


def test_a_figure_without_a_format_is_refused_before_anything_runs(bench: Callable[..., Any], tmp_path: Path) -> None:
    check_one_line(bench("random", "--figure", "d.doc"), "its suffix is no format")
    assert not (tmp_path / "results").exists()

"""The command that puts a method of one's own into the table of the atlas."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import check_one_line
from made_edition import TASK, shift_starts, small_grid

from plumbline.api import benching
from plumbline.api.editions import AtlasGrid


@pytest.fixture
def bench(run: Any, small_atlas: Path, atlas_grid: AtlasGrid, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what runs the command beside a small edition, in this process."""
    monkeypatch.setattr(benching, "AtlasGrid", lambda _: small_grid(atlas_grid))
    usual = ("--folder", small_atlas, "--cores", 1, "--against", "random,sobol")
    return lambda target, *options: run("bench", target, *usual, *options)


@pytest.mark.slow
def test_it_prints_each_task_and_the_place_and_writes_files(bench: Callable[..., Any], tmp_path: Path) -> None:
    files = ("--csv", "d.csv", "--latex", "d.tex", "--figure", "d.pdf", "--paragraph", "d.md", "--page", "d.html")
    code, output, errors = bench("ask_tell_cases:Steps", "-p", "arguments.length=0.1", *files)
    assert (code, errors) == (0, "plumbline: wrote d.csv, d.tex, d.pdf, d.html, d.md\n")
    assert re.search(r"(?m)^all tasks +2 tasks ", output)
    assert "[–]: too few values for an interval, or all values equal" in output
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
    assert errors.startswith("plumbline: error: 2 of 4 trials failed, the first one on common-branin-0.0: ")
    assert errors.count("\n") == 1


def test_where_no_task_is_compared_the_reason_is_the_error(
    bench: Callable[..., Any], small_atlas: Path, tmp_path: Path
) -> None:
    shutil.copytree(small_atlas, tmp_path / "edition")
    shift_starts(tmp_path / "edition", TASK)
    result = bench("random", "--tasks", TASK, "--folder", "edition", "--csv", "d.csv")
    check_one_line(result, f"{TASK}: not compared: the best value of seed 0's initial design is")
    assert not Path("d.csv").exists()


def test_a_figure_without_a_format_is_refused_before_anything_runs(bench: Callable[..., Any], tmp_path: Path) -> None:
    check_one_line(bench("random", "--figure", "d.doc"), "its suffix is no format")
    assert not (tmp_path / "results").exists()


SLOW_STEPS = """
import time
from pathlib import Path


class Steps:
    def __init__(self, bounds, seed, started):
        self.bounds, self.started = bounds, Path(started)

    def ask(self):
        self.started.touch()
        time.sleep(0.05)
        return self.bounds[0]

    def tell(self, x, y):
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_of_two_processes_is_one_line(
    number: signal.Signals, one_core: dict[str, str], tmp_path: Path
) -> None:
    """A terminal sends Ctrl-C to all processes of the command; a scheduler asks the first one to end."""
    (tmp_path / "steps.py").write_text(SLOW_STEPS)
    started = tmp_path / "started"
    command = [sys.executable, "-m", "plumbline", "bench", "steps:Steps", "-p", f"arguments.started={started}"]
    process = subprocess.Popen(
        [*command, "--tasks", "common-branin-0.1", "--cores", "2"],
        env={**one_core, "PYTHONPATH": "."},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not started.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, errors = process.communicate(timeout=60)  # until the last process has closed its end
    assert process.returncode == 128 + number
    assert errors == "plumbline: interrupted; the same command goes on\n"

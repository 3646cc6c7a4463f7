"""The command line in this process, in an empty folder or in one with a study of its own."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import METHODS, STUDY, TASKS

from plumbline.cli.main import main
from plumbline.store import records
from plumbline.trials import run_trial

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Return what runs a command in an empty folder, in this process: exit code, output, errors."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # for the traceback of what nobody foresaw
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
def unread(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return what runs a command as `run` does, whose standard output is a pipe that nobody reads any more."""

    def call(*arguments: object) -> tuple[int, str, str]:
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w", buffering=1) as pipe, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", pipe)
            return run(*arguments)

    return call


@pytest.fixture
def tiny(root: Path, tmp_path: Path) -> Path:
    """A working directory with a study of its own."""
    for folder in ("studies", "methods", "tasks"):
        (tmp_path / "config" / folder).mkdir(parents=True)
    shutil.copy(root / "config/datasets.yaml", tmp_path / "config/datasets.yaml")
    (tmp_path / "config/methods/tiny.yaml").write_text(METHODS)
    (tmp_path / "config/tasks/tiny.yaml").write_text(TASKS)
    (tmp_path / "config/studies/tiny.yaml").write_text(STUDY)
    (tmp_path / "config/config.yaml").write_text("preset: quick\nstudies: [tiny]\n")
    return tmp_path


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

"""The command line as a net: whatever goes wrong is one line and an exit code, never a traceback."""

import io
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import check_one_line
from typer.main import get_command

from plumbline.cli.app import app
from plumbline.registry.catalogue import catalogue

Run = Callable[..., tuple[int, str, str]]

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]

ODD = [
    *("", " ", "0", "-1", "1", "2", "99999999999999999999", "-99999999999999999999", "9" * 5000, "1e400", "nan", "1.5"),
    *(
        "None",
        "null",
        "true",
        "[bold]",
        "[/x]",
        "a|b",
        "two\nlines",
        "ü",
        "\udcff",
        "-",
        "--",
        "-x",
        "--seed",
        "x" * 300,
    ),
    *("{", "{}", '{"studies": ["tiny"]}', '{"studies": 1}', '{"studies": ["tiny"], "data": "real"}', "[[[[", "[1]"),
    *("config/config.yaml", "config", "config/config.yaml,", "nowhere/x", "x.csv", "x.parquet", "x.svg", ".", "notes"),
    *("TINY-T1", "TINY-F1", "TINY-I1", "K1", "dice", "bound", "branin", "forrester", "random", "ackley-2", "ackley-0"),
    *("ackley-99999999999999999999", "method", "task", "experiment", "claim", "figure", "uniform", "cpu", "cuda"),
    *(
        "sqlite:///",
        "sqlite://",
        "sqlite:///a?b.db",
        "sqlite:///.",
        "http://[",
        "http://",
        "http://x:y",
        "postgresql://x/y",
    ),
    *("a=b", "=", "a=", "a.b=1", "a..b=1", "noise_std=.nan", "noise_std=0.1", "noise_std=[", "x=2001-99-99"),
    *("x=2001-01-01", "x=!!python/object:os.system", "x={a: 1, a: 2}", f"x={'[' * 5000}"),
]
"""Values of options and arguments: some are right somewhere."""


def odd_command(draw: random.Random) -> list[str]:
    """A real command, or nearly, with some of its options and arguments."""
    name = draw.choice([*COMMANDS, draw.choice(ODD)])
    words = [name]
    for parameter in getattr(COMMANDS.get(name), "params", []):
        if parameter.param_type_name == "argument":
            words += [draw.choice(ODD) for _ in range(draw.choice([0, 1, 1, 1, 2]))]
        elif draw.random() < 0.4 and "--help" not in parameter.opts:
            words.append(draw.choice(parameter.opts))
            if not getattr(parameter, "is_flag", False):
                words.append(draw.choice(ODD))
    if draw.random() < 0.1:
        draw.shuffle(words)
    return words


def check_net(result: tuple[int, str, str], command: list[str]) -> None:
    """Check that a command went well, or ended in one line that says what was wrong."""
    code, output, errors = result
    besides = r"\d\d:\d\d:\d\d |plumbline: wrote "  # a trial's rounds, and files
    told = [line for line in errors.splitlines() if not re.match(besides, line)]
    assert "Traceback" not in output + errors, command
    assert code in (0, 2), (command, errors)
    assert len(told) == (code != 0), (command, errors)
    assert not code or told[0].startswith("plumbline: error: "), (command, errors)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(6))
def test_odd_commands(seed: int, run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUMBLINE_MIRROR", "")
    (tiny / "notes").write_text("a sentence\n")
    draw = random.Random(seed)
    for _ in range(50):
        command = odd_command(draw)
        check_net(run(*command), command)


class OddError(Exception):
    """What nobody foresaw."""


@pytest.fixture
def accident(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Return what makes the command `methods` raise an error."""

    def happen(error: BaseException) -> None:
        def raises() -> None:
            raise error

        monkeypatch.setattr("plumbline.api.listings.listed_methods", raises)

    return happen


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OddError("odd\nthing"), 1, r"error: OddError: odd thing; the traceback is in (\S+)"),
        (OddError("x" * 5000), 1, r"error: OddError: x{290}\.\.\.; the traceback is in (\S+)"),
        (OSError("text"), 1, r"error: OSError: text; the traceback is in (\S+)"),
        (TimeoutError(), 1, r"error: TimeoutError:; the traceback is in (\S+)"),
        (
            ModuleNotFoundError("No module named 'x'"),
            1,
            r"error: ModuleNotFoundError: No module .*traceback is in (\S+)",
        ),
        (RecursionError("too deep"), 1, r"error: RecursionError: too deep; the traceback is in (\S+)"),
        (SystemExit(0), 1, r"error: SystemExit: 0; the traceback is in (\S+)"),
        (
            MemoryError("Unable to allocate 7 TiB"),
            1,
            r"error: not enough memory \(MemoryError: Unable to allocate 7 TiB\)",
        ),
        (OSError(28, "No space left on device", "x"), 2, r"error: disk full \(x\)"),
        (BrokenPipeError(32, "Broken pipe"), 2, r"error: Broken pipe$"),
        (EOFError(), 1, r"error: EOFError:; the traceback is in (\S+)"),
        (KeyboardInterrupt(), 130, r"interrupted; the same command goes on$"),
        (KeyboardInterrupt(signal.SIGTERM), 143, r"interrupted; the same command goes on$"),
    ],
)
def test_accidents(
    error: BaseException,
    code: int,
    line: str,
    accident: Callable[[BaseException], None],
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accident(error)
    found, output, errors = run("methods")
    assert (found, output, errors.count("\n")) == (code, "", 1)
    told = re.match(f"plumbline: {line}", errors)
    assert told, errors
    if told.groups():
        assert "Traceback" in Path(told[1]).read_text()
    else:
        assert not list(tmp_path.glob("plumbline-*"))


def test_a_traceback_on_request(
    accident: Callable[[BaseException], None], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accident(OddError("odd"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert run("methods")[2] == "plumbline: error: OddError: odd; `plumbline --debug` shows the traceback\n"
    monkeypatch.setenv("PLUMBLINE_TRACEBACK", "")
    *lines, last = run("--debug", "methods")[2].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert last == "plumbline: error: OddError: odd; the traceback is above"


def test_debug_shows_where_a_mistake_was_found_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUMBLINE_TRACEBACK", "")
    *lines, last = run("--debug", "show", "method", "no-such-method")[2].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert last.startswith("plumbline: error: unknown method 'no-such-method'")
    monkeypatch.setenv("PLUMBLINE_TRACEBACK", "1")
    (line,) = run("show", "method", "no-such-method")[2].splitlines()
    assert line == last


def test_what_a_command_printed_before_stays(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def half() -> None:
        print("half")
        raise OddError("odd")

    monkeypatch.setattr("plumbline.api.listings.listed_methods", half)
    assert run("methods")[:2] == (1, "half\n")


def test_sigterm_is_as_it_was_afterwards(run: Run) -> None:
    before = signal.getsignal(signal.SIGTERM)
    run("--version")
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("threads", ["", "0", "abc", "-1"])
def test_a_wrong_number_of_threads(threads: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    check_one_line(run("methods"), f"OMP_NUM_THREADS is {threads!r}: give a number of threads from 1 to")


def test_threads_for_each_level(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    counts = []
    monkeypatch.setattr(torch, "set_num_threads", counts.append)
    monkeypatch.setenv("OMP_NUM_THREADS", "4, 2")
    assert run("trial", "--problem", "branin", "--class", "random", "--rounds", "1")[0] == 0
    assert counts[0] == 4


@pytest.mark.parametrize("jobs", ["0", "-3", "99999999999999999999", "two"])
def test_a_wrong_number_of_processes(jobs: str, run: Run, tiny: Path) -> None:
    check_one_line(run("features", "x", "-o", "x.parquet", "--jobs", jobs), "--jobs", "(see --help)")


PATHS = [
    (name, parameter.opts[0])
    for name, command in COMMANDS.items()
    for parameter in command.params
    if parameter.type_descriptor.annotation in (Path, Path | None, list[Path])
]


def test_there_are_options_of_paths() -> None:
    assert {("trial", "--store"), ("figure", "--output"), ("claims", "folder"), ("fetch", "--mirror")} <= {*PATHS}


@pytest.mark.slow
@pytest.mark.parametrize("blank", ["", " "])
def test_an_empty_path_is_not_the_working_directory(blank: str, run: Run, tiny: Path) -> None:
    """A variable of the shell that is not set makes one: `--store "$STORE"`."""
    for command, option in PATHS:
        words = [option, blank] if option.startswith("-") else [blank]
        check_one_line(run(command, *words), "it is empty: name a file or a folder (see --help)")
    assert [path.name for path in tiny.iterdir()] == ["config"]


@pytest.mark.slow
def test_a_working_directory_that_is_gone(one_core: dict[str, str], tmp_path: Path) -> None:
    code, output, errors = shell(
        f"mkdir '{tmp_path}/x'; cd '{tmp_path}/x'; rmdir '{tmp_path}/x'; plumbline plan", one_core
    )
    assert (code, output) == (2, "")
    assert errors == "plumbline: error: the working directory is no longer there: change to one that is\n"


def test_raw_data_of_a_generated_dataset_are_refused(run: Run, tiny: Path) -> None:
    result = run("features", "generated-molecules", "-o", "x.parquet", "--raw", "notes")
    check_one_line(result, "dataset 'generated-molecules' is generated, and not built from notes: leave --raw out")


def test_titles_are_no_markup(run: Run, tiny: Path) -> None:
    path = tiny / "config/studies/tiny.yaml"
    path.write_text(path.read_text().replace("title: A table", "title: '[bold] [/x] | there'"))
    for command in ("plan", "experiments"):
        code, output, errors = run(command)
        assert (code, errors) == (0, "")
        assert "[bold] [/x] | there" in output


def shell(script: str, env: dict[str, str]) -> tuple[int, str, str]:
    """Run a script of bash, in which `plumbline` is this checkout's."""
    prefix = f'plumbline() {{ "{sys.executable}" -m plumbline "$@"; }}; '
    pipes: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "check": False}
    done = subprocess.run(["bash", "-c", prefix + script], env=env, **pipes)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("plumbline --help > /dev/full", 2, "disk full: free some space"),
        ("unset PYTHONUNBUFFERED; plumbline --version > /dev/full", 2, "(standard output)"),
        ("set -o pipefail; plumbline --help | true", 141, ""),
        ("set -o pipefail; unset PYTHONUNBUFFERED; plumbline --version | true", 141, ""),
        ("set -o pipefail; plumbline nothing 2>&1 | true", 2, ""),
        ("plumbline --help >&-", 0, ""),
        ("plumbline nothing 2>&-", 2, ""),
        ("plumbline nothing 2> /dev/full", 2, ""),
        ("plumbline --version <&- >&- 2>&-", 0, ""),
    ],
)
def test_streams_that_take_nothing(script: str, code: int, words: str, one_core: dict[str, str]) -> None:
    found, _, errors = shell(script, one_core)
    assert found == code, errors
    assert words in errors
    assert errors.count("\n") == bool(words), errors


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
def test_letters_that_a_terminal_has_not_are_replaced(encoding: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.api.listings.listed_methods", lambda: print("a – ö \udcff 日本"))
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    run("methods")
    run("nöthing – 日本")
    assert "??" in streams[0].buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    errors = streams[1].buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert [line[:17] for line in errors.splitlines()] == ["plumbline: error:"] * 2


@pytest.mark.slow
def test_interrupted_trials(one_core: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "plumbline", "trial", "--problem", "ackley-3", "--class", "random", "--rounds"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    codes = {signal.SIGINT: 130, signal.SIGTERM: 143}
    running = {
        number: subprocess.Popen([*command, "90000", "--store", f"{number}"], env=one_core, cwd=tmp_path, **pipes)
        for number in codes
    }
    for number, process in running.items():
        assert process.stderr is not None
        for line in process.stderr:
            if " round 5/" in line:
                break
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output) == (codes[number], "")
        told = r"plumbline: ackley-3 random seed 0: interrupted after round \d+; the same command goes on"
        assert re.fullmatch(told, errors.splitlines()[-1])
        assert "Traceback" not in errors


@pytest.mark.slow
def test_no_home_and_no_cache(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    catalogue.cache_clear()
    code, output, errors = run("classes", "design")
    catalogue.cache_clear()
    assert (code, errors) == (0, "")
    assert "uniform" in output
    assert os.listdir(tmp_path) == ["file"]


def test_an_empty_address_counts_as_not_given(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("plumbline.tracking.importing.import_trials", lambda *arguments: asked.append(arguments[4]))
    for command in (("--uri", ""), ()):
        assert run("track", "--artifacts", ".", *command)[0] == 0
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    assert run("track", "--artifacts", ".")[0] == 0
    assert asked == ["sqlite:///results/mlflow.db"] * 3
    assert os.listdir(tiny) == ["config"]

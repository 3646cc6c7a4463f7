"""The application: its help, its version, its errors."""

import contextlib
import errno
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import check_one_line

from plumbline.store.spec import Chunk, TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


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


@pytest.mark.parametrize(
    ("arguments", "file", "remedy"),
    [
        (("diagnose", "f.csv", "--csv", "x.csv"), "x.csv", "name another file"),
        (("diagnose", "f.csv", "--json=x.json"), "x.json", "name another file"),
        (("schema", "-o", "there"), r"there/\S+\.json", "name another folder"),
        (("schema",), r"config/schemas/\S+\.json", "name another folder, with --output"),
        (
            ("trial", "--class", "random", "--problem", "branin"),
            r"results/store/\w+/\S+",
            "name another folder, with --store or --data",
        ),
        (
            ("illustrate", "TINY-I1", "-o", "x.parquet"),
            "x.parquet",
            "name another file, or set `results` in the configuration",
        ),
    ],
)
def test_a_file_that_cannot_be_written_is_named_with_a_way_out_that_there_is(
    arguments: tuple[str, ...], file: str, remedy: str, run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny / "f.csv").write_text("y,mean,sd\n" + "".join(f"{i % 7},{i % 5},1\n" for i in range(40)))
    (tiny / "there").mkdir()
    touch = Path.touch

    def refuse(path: Path, *more: Any, **options: Any) -> None:
        if path.name.startswith("."):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        touch(path, *more, **options)

    monkeypatch.setattr(Path, "touch", refuse)
    code, _, errors = run(*arguments)
    assert code == 2
    found = re.search(r"error: no permission to write \((.*)\): check its owner, or (.*)\n", errors)
    assert found, errors
    assert re.fullmatch(file, found[1]), found[1]
    assert found[2] == remedy


def test_help_is_quick(one_core: dict[str, str]) -> None:
    code = """
import sys
sys.argv = ["plumbline", "--help"]
from plumbline.cli.main import main
try:
    main()
except SystemExit:
    pass
slow = {"torch", "pandas", "rich", "pydantic", "yaml", "mlflow", "botorch", "rdkit", "sklearn", "pyarrow"}
assert not slow & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], env=one_core, capture_output=True, text=True, check=True)
    use, workflow = done.stdout.split("Workflow")
    assert "Use:" in use
    assert all(
        f"\n  {command} " in use for command in ("trial", "methods", "classes", "show", "compare", "seeds", "verdicts")
    )
    assert all(f"\n  {command} " in workflow for command in ("trials", "collect", "claims", "reference"))
    for command in (
        "fetch",
        "features",
        "trials",
        "trial",
        "collect",
        "illustrate",
        "figure",
        "table",
        "outputs",
        "claims",
        "report",
        "failures",
    ):
        assert command in done.stdout


def modules_after(command: list[str], env: dict[str, str], folder: Path) -> set[str]:
    """Return the names of the packages that a command has imported by its end."""
    code = f"""
import atexit, sys
atexit.register(lambda: print(*{{name.partition(".")[0] for name in sys.modules}}, file=sys.stderr))
sys.argv = {["plumbline", *command]!r}
from plumbline.cli.main import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.slow
def test_a_trial_imports_nothing_that_it_does_not_use(
    one_core: dict[str, str], cheap_spec: Make, tmp_path: Path
) -> None:
    """PyArrow imports pandas at its first array, unless it is kept from it."""
    words = []
    for name, label in (("random", "dice"), ("ei", "bound"), ("calibrated", "base")):
        chunk = Chunk(spec=cheap_spec("branin", name, rounds=1, label=label), seeds=(0,))
        words += ["--chunk", chunk.model_dump_json(), "-o", f"{label}.parquet"]
    found = modules_after(["trials", *words], one_core, tmp_path)
    assert {"torch", "pyarrow"} <= found
    assert not {"pandas", "matplotlib", "seaborn", "mlflow", "moocore", "rich", "sklearn"} & found
    assert len(list(tmp_path.glob("*.parquet"))) == 3


@pytest.mark.slow
@pytest.mark.parametrize("command", ["methods", "tasks", "experiments"])
def test_listings_need_no_tables(command: str, one_core: dict[str, str], root: Path, run: Run) -> None:
    # Where there is no catalogue yet, the first to want it imports torch: this process.
    with contextlib.chdir(root):
        assert run(command)[0] == 0
    assert not {"pandas", "numpy", "torch", "pyarrow", "rich"} & modules_after([command], one_core, root)


def test_the_help_takes_less_than_300_ms(one_core: dict[str, str]) -> None:
    """Of processor time, the least of three: a busy machine is no fault of the command line's."""
    code = """
import sys, time
from plumbline.cli.main import main
sys.argv = ["plumbline", "--help"]
main()
print(time.process_time(), file=sys.stderr)
"""
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, env=one_core, capture_output=True, text=True, check=True) for _ in range(3)]
    assert min(float(run.stderr) for run in runs) < 0.3


def test_shells_complete_commands(one_core: dict[str, str]) -> None:
    words = {"_PLUMBLINE_COMPLETE": "complete_bash", "COMP_WORDS": "plumbline exp", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['plumbline']; from plumbline.cli.main import main; main()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**one_core, **words}, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr, done.returncode) == (["experiments"], "", 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown_and_installed(
    shell: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))  # else that of the tests
    shown = run("--show-completion")
    assert (shown[0], shown[2]) == (0, "")
    assert "_PLUMBLINE_COMPLETE" in shown[1]
    installed = run("--install-completion")
    assert (installed[0], installed[2]) == (0, "")
    assert any("_PLUMBLINE_COMPLETE" in file.read_text() for file in tmp_path.rglob("*plumbline*") if file.is_file())

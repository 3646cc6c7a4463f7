"""The application: its help, its version, its errors."""

import subprocess
import sys
from collections.abc import Callable

from command_line import check_one_line

from plumbline.store.spec import TrialSpec

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

"""Words that a shell gets for the beginning of one."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import plumbline as pb
from plumbline.cli.completing import names_of

Complete = Callable[[str], list[str]]

CODE = "import sys; sys.argv = ['plumbline']; from plumbline.cli.main import main; main()"


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str, str]], root: Path) -> Complete:
    """Return what completes the last word of a line as bash asks for it, in the repository."""

    def call(line: str) -> list[str]:
        monkeypatch.chdir(root)
        monkeypatch.setenv("_PLUMBLINE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        code, output, errors = run()
        assert (code, errors) == (0, "")
        return output.split()

    return call


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("plumbline exp", ["experiments"]),
        ("plumbline show e", ["experiment"]),
        ("plumbline show method cucb-step-0.0", [f"cucb-step-{step}" for step in ("0.001", "0.003", "0.01", "0.03")]),
        ("plumbline show task ackley-20-t", ["ackley-20-timed"]),
        ("plumbline show claim C1", ["C1", "C10", "C11", "C12"]),
        ("plumbline show nonsense c", []),
        ("plumbline show method nothing-begins-so", []),
        ("plumbline bench mine:Mine --tasks mis", ["misspecified"]),
        (
            "plumbline bench mine:Mine --tasks noisy,common-branin",
            [f"noisy,common-branin-{sd}" for sd in ("0.0", "0.1")],
        ),
        ("plumbline compare --methods ei,atlas-hed", ["ei,atlas-hedge"]),
        ("plumbline seeds --metric regr", ["regret"]),
        ("plumbline classes stat", ["statistic"]),
        ("plumbline classes problem bran", ["branin", "branin-currin"]),
        ("plumbline problems bran", ["branin", "branin-currin"]),
        ("plumbline trial --class ran", ["random"]),
        ("plumbline redraw CBO-F13-", ["CBO-F13-held-out"]),
    ],
)
def test_a_word_is_completed(line: str, words: list[str], completed: Complete) -> None:
    assert completed(line) == words


@pytest.mark.slow
def test_names_are_those_of_the_listings() -> None:
    assert names_of("method") == [*pb.methods()["method"]]
    assert names_of("task") == [*pb.tasks()["task"]]
    assert names_of("experiment") == [*pb.experiments()["experiment"]]
    assert sorted(names_of("claim")) == sorted(pb.claims()["claim"])
    tasks = pb.atlas("tasks")
    assert {*names_of("track")} == {*tasks["track"], *tasks["task"]}
    for kind in names_of("kind of class"):
        assert names_of(f"{kind} class") == [*pb.classes(kind)["name"]]


def test_what_cannot_be_read_completes_nothing(
    completed: Complete, tiny: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny / "config/methods/tiny.yaml").write_text("ucb: [")
    monkeypatch.setattr("plumbline.api.listings.find_repository", lambda: tiny)
    assert completed("plumbline show method u") == []


def test_no_table_and_no_tensor_is_loaded(one_core: dict[str, str], root: Path) -> None:
    """Either takes longer than someone waits who types."""
    words = {"_PLUMBLINE_COMPLETE": "complete_bash", "COMP_WORDS": "plumbline show method cu", "COMP_CWORD": "3"}
    code = "import atexit, sys; atexit.register(lambda: print({'pandas', 'torch'} & {*sys.modules}, file=sys.stderr))"
    command = [sys.executable, "-c", f"{code}; {CODE}"]
    done = subprocess.run(command, env={**one_core, **words}, cwd=root, capture_output=True, text=True, check=True)
    assert (done.stderr, "cucb" in done.stdout.split()) == ("set()\n", True)

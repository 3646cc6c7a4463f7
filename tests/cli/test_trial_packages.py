"""Methods and problems of other packages on the command line."""

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from command_line import check_one_line
from own_packages import FILES, METHOD, write_package

Run = Callable[..., tuple[int, str, str]]
TRIAL = ("trial", "--class", "my-middle", "--problem", "my-bowl-2", "--rounds", "1", "--initial", "2")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_they_are_listed_with_their_options(run: Run, own_packages: Path) -> None:
    write_package(own_packages)
    code, output, errors = run("classes", "method")
    assert (code, errors) == (0, "")
    assert output.splitlines()[-1].split(maxsplit=1) == ["my-middle", "A point between the corners."]
    lines = run("classes", "method", "my-middle")[1].splitlines()
    assert lines[1] == "mine.methods (package my-package)"
    assert lines[-1].split()[:2] == ["part", "0.5"]
    assert "my-bowl" in run("classes", "problem")[1]


@pytest.mark.parametrize("command", [(*TRIAL, "--csv"), ("classes", "method", "--csv"), ("methods", "--csv")])
def test_csv_is_csv_whatever_their_code_prints(command: tuple[str, ...], run: Run, own_packages: Path) -> None:
    words = "print('measuring')\n"
    loud = {name: words + text for name, text in FILES.items()}
    loud["mine/helper.py"] = f"def part(x):\n    {words}    return x\n"
    write_package(own_packages, files=loud)
    code, output, errors = run(*command)
    assert code == 0, errors
    assert "measuring" not in output
    assert len(pd.read_csv(StringIO(output))) > 1
    assert ("measuring" in errors) == (command[0] == "trial")


def test_a_broken_one_is_named_and_the_others_are_listed(run: Run, own_packages: Path) -> None:
    write_package(own_packages, files=FILES | {"mine/helper.py": "\n1 / 0\n"})
    with pytest.warns(
        UserWarning, match=r"'my-middle' is not listed: package my-package 0\.1\.0: .*helper\.py, line 2: "
    ):
        code, output, _ = run("classes", "method")
    assert code == 0
    assert "\nei " in output
    check_one_line(run(*TRIAL), "trial: package my-package 0.1.0: mine.methods cannot be imported", "helper.py, line 2")


@pytest.mark.slow
def test_a_trial_runs_again_when_its_package_was_edited(
    run: Run, own_packages: Path, tmp_path: Path, forget_packages: Callable[[], None]
) -> None:
    write_package(own_packages)

    def trial() -> tuple[str, int]:
        forget_packages()
        code, output, errors = run(*TRIAL)
        assert code == 0, errors
        return output, len(list(tmp_path.glob("results/store/*/records.parquet")))

    first, one = trial()
    again, same = trial()
    assert (again, one, same) == (first, 1, 1)
    edit(own_packages / "mine/helper.py", "return x", "return x / 2")
    edited, two = trial()
    assert two == 2
    assert edited != first
    edit(own_packages / "mine/unused.py", "x = 1", "x = 2")
    assert trial() == (edited, 2)


def test_what_it_raises_ends_the_trial_with_its_file_and_line(run: Run, own_packages: Path) -> None:
    write_package(own_packages, files=FILES | {"mine/helper.py": "def part(x):\n    raise RuntimeError('no part')\n"})
    check_one_line(
        run(*TRIAL),
        f"RuntimeError: no part (method 'my-middle', {own_packages}/mine/helper.py, line 2) (see ",
        "--forget",
    )


@pytest.fixture
def planned(run: Run, tiny: Path, own_packages: Path) -> Path:
    """A study whose method and problem are of a package."""
    write_package(own_packages)
    (tiny / "config/methods/mine.yaml").write_text("middle: {name: my-middle, options: {part: 0.25}}\n")
    (tiny / "config/tasks/mine.yaml").write_text(
        "bowl: {problem: my-bowl-2, initial: {design: uniform, size: 2}, rounds: 1}\n"
    )
    edit(tiny / "config/studies/tiny.yaml", "tasks: [branin], methods: [dice]", "tasks: [bowl], methods: [middle]")
    edit(tiny / "config/studies/tiny.yaml", "task: branin", "task: bowl")
    edit(tiny / "config/studies/tiny.yaml", "method: dice", "method: middle")
    return tiny


@pytest.mark.slow
def test_a_study_has_them_and_its_plan_counts_what_was_edited(
    run: Run, planned: Path, own_packages: Path, forget_packages: Callable[[], None]
) -> None:
    from plumbline.store.keys import trial_key
    from plumbline.study.plan import load_plan
    from plumbline.study.settings import read_config
    from plumbline.trials import run_trial

    def done() -> str:
        forget_packages()
        code, output, errors = run("plan")
        assert code == 0, errors
        return re.search(r"^TINY-T1 +A table +2 +(\d+)", output, re.MULTILINE)[1]

    assert "my-middle" in run("methods", "mine")[1]
    assert "my-bowl-2" in run("tasks", "mine")[1]
    assert done() == "0"
    (chunk,) = load_plan(read_config(planned / "config/config.yaml"), planned).resolve("TINY-T1").chunks
    for spec in chunk.specs():
        assert run_trial(spec, planned / "results/store", planned / "data").path.name == trial_key(
            spec, planned / "data"
        )
    assert done() == "2"
    edit(own_packages / "mine/methods.py", "(high - low)", "(high - low) / 1")
    assert done() == "0"
    edit(own_packages / "mine/methods.py", "(high - low) / 1", "(high - low)")
    edit(own_packages / "mine/unused.py", "x = 1", "x = 2")
    assert done() == "2"


def test_a_package_that_is_gone_is_an_unknown_name(
    run: Run, planned: Path, own_packages: Path, forget_packages: Callable[[], None]
) -> None:
    assert run("plan")[0] == 0
    (own_packages / "my_package.dist-info/entry_points.txt").unlink()
    forget_packages()
    check_one_line(run("plan"), "unknown method 'my-middle'")


def test_options_are_checked_by_the_package(run: Run, planned: Path, own_packages: Path) -> None:
    write_package(own_packages, files=FILES | {"mine/methods.py": METHOD.replace("part: float = 0.5", "part: int = 0")})
    check_one_line(run("plan"), "config/methods/mine.yaml", "'my-middle'", "part")

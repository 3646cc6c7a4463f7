"""Skeletons: what is written works, as the commands that are printed say."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import torch
from command_line import check_one_line
from own_packages import write_package
from situations import ask, box

import plumbline as pb
from plumbline.api.sources import ReferenceResults
from plumbline.cli.skeletons import skeleton, words, write_skeleton
from plumbline.core.places import REFERENCE, own_folder, own_or_shipped, shipped, workspace
from plumbline.methods.base import build_method, methods
from plumbline.problems.base import Context, problems
from plumbline.problems.build import build_problem

Run = Callable[..., tuple[int, str, str]]


KINDS = ("method", "problem", "study", "package")


@pytest.fixture
def checkout(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the configuration of the repository, which skeletons take for that of this package."""
    shutil.copytree(root / "config", tmp_path / "config", ignore=shutil.ignore_patterns("schemas"))
    (tmp_path / "src").mkdir()
    (tmp_path / "src/plumbline").symlink_to(root / "src/plumbline")
    return tmp_path


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Callable[[Path], ModuleType]]:
    """What runs a file as a module of a package; what it registers is forgotten after the test."""

    def load(path: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location("own_skeleton", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    for entries in (methods._entries, problems._entries):
        for name in [name for name, one in entries.items() if one.module == "own_skeleton"]:
            del entries[name]


def written(kind: str, name: str, folder: Path) -> dict[Path, str]:
    """Write the files of a skeleton into any folder."""
    texts = {folder / path: text for path, text in skeleton(kind, name)}  # type: ignore[arg-type]
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return texts


def test_a_method(tmp_path: Path, loaded: Callable[[Path], ModuleType]) -> None:
    source, entry = sorted(written("method", "my-bound", tmp_path), reverse=True)
    assert source == tmp_path / "src/plumbline/methods/my_bound.py"
    assert entry == tmp_path / "config/methods/my-bound.yaml"
    assert loaded(source).MyBound.__doc__
    method = build_method("my-bound", {"beta": 1.0, "search": {"restarts": 1, "raw_samples": 8}}, box().domain)
    assert ask(method, box().history, 1).X.shape == (1, 2)


def test_a_problem(tmp_path: Path, loaded: Callable[[Path], ModuleType]) -> None:
    source, task = sorted(written("problem", "my-valley", tmp_path), reverse=True)
    assert (source.name, task.name) == ("my_valley.py", "my-valley.yaml")
    loaded(source)
    problem = build_problem("my-valley", {}, Context(tmp_path, torch.Generator().manual_seed(0)))
    assert problem.optimisers is not None
    assert problem.function(problem.optimisers).item() == problem.optimum == 0.0
    X = torch.rand(1000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 8 - 4
    assert problem.function(X).max() < 0.0


def test_a_study(run: Run, checkout: Path) -> None:
    code, output, errors = run("new", "study", "mine")
    assert (code, errors) == (0, "")
    path, title, plan, snakemake = output.splitlines()
    assert (path, title) == ("config/studies/mine.yaml", "next:")
    assert snakemake.endswith("-- MINE-1")
    code, output, errors = run(*shlex.split(plan)[1:])
    assert code == 0, errors
    assert re.search(r"^MINE-1 .* 10 +0 ", output, re.MULTILINE)


def test_the_example_is_a_skeleton(root: Path) -> None:
    """It is what `plumbline new package plumbline-example` writes."""
    home = root / "examples/plumbline-example"
    texts = dict(skeleton("package", "plumbline-example"))
    for path, text in texts.items():
        assert (home / path).read_text(encoding="utf-8") == text, path
    assert len(texts[Path("README.md")].splitlines()) <= 42


@pytest.mark.slow
def test_a_package(run: Run, own_packages: Path, tmp_path: Path) -> None:
    """As if it were installed."""
    code, output, _ = run("new", "package", "my-search", "--folder", "here")
    assert code == 0
    *_, install, trial = output.splitlines()
    assert install == "  pip install --no-deps --editable here/my-search"
    home = tmp_path / "here/my-search"
    shutil.copytree(home / "src/my_search", own_packages / "my_search")
    points = tomllib.loads((home / "pyproject.toml").read_text())["project"]["entry-points"]
    write_package(own_packages, "my-search", {}, points["plumbline.methods"], points["plumbline.problems"])
    code, output, errors = run(*shlex.split(trial)[1:])
    assert code == 0, errors
    for method, options in {
        "botorch-acquisition": {
            "acquisition": "my_search.acquisition:MarginEI",
            "search": {"restarts": 1, "raw_samples": 8, "maxiter": 5},
        },
        "ask-tell": {"optimiser": "my_search.optimisers:DifferentialEvolution"},
    }.items():
        runs = pb.run(method_class=method, options=options, problem="my-search-himmelblau", rounds=2, store=tmp_path)
        assert runs["regret"].iloc[-1] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("claim", "mine"), "unknown kind of skeleton 'claim': allowed: method, package, problem, study"),
        (("study", "My study"), "name 'My study': write lower-case letters and digits, with hyphens between words"),
        (("package", "class"), "name 'class': "),
        (("study", "conformal"), "config/studies/conformal.yaml is there already: choose another name, or delete it"),
        (("method", "ei"), "there is a method 'ei' already: choose another name"),
        (("method", "ucb-ml"), "config has an entry 'ucb-ml' already: choose another name"),
        (("problem", "levy-20"), "config has an entry 'levy-20' already: choose another name"),
        *(
            ((kind, word), f"name {word!r}: YAML reads it as")
            for kind in KINDS
            for word in ("no", "on", "null", "true")
        ),
        (("package", "json"), "there is a module 'json' already: choose another name"),
        *(
            (("study", rule), f"a rule of the workflow has the name {rule!r} already: choose another name")
            for rule in ("all", "claims", "track", "trials", "trials-mine")
        ),
        (("study", "mine", "--folder", "nowhere"), "nowhere has no config/studies: name a workspace with --folder"),
    ],
)
def test_what_cannot_be_written_is_one_line(arguments: tuple[str, ...], message: str, run: Run, checkout: Path) -> None:
    check_one_line(run("new", *arguments), message)


def test_another_checkout_is_refused(run: Run, checkout: Path) -> None:
    (checkout / "src/plumbline").unlink()
    check_one_line(run("new", "problem", "mine"), "has no source of this plumbline: name ", "new package mine")
    assert not (checkout / "config/tasks/mine.yaml").exists()


def test_nothing_is_overwritten(checkout: Path) -> None:
    (checkout / "config/tasks/mine.yaml").write_text("# ours\n")
    with pytest.raises(pb.PlumblineError, match=r"tasks/mine\.yaml is there already"):
        write_skeleton("problem", "mine", checkout)
    assert (checkout / "config/tasks/mine.yaml").read_text() == "# ours\n"
    assert not (checkout / "src/plumbline/problems/mine.py").exists()


def test_a_workspace_is_a_study_of_its_own(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, output, errors = run("init", "my study")
    assert (code, errors) == (0, "")
    home = tmp_path / "my study"
    files = [path for path in home.rglob("*") if path.is_file()]
    assert f"{len(files)} files" in output
    assert output.splitlines()[-1] == "  cd 'my study' && snakemake --cores 2"
    assert {path.name for path in home.iterdir()} == {
        "Snakefile",
        "README.md",
        ".gitignore",
        "config",
        "profiles",
        "slurm",
    }
    assert home.name in (home / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(home)
    assert workspace() == own_folder() == home
    assert own_or_shipped(REFERENCE) == shipped() / REFERENCE, "until there are results of its own"
    write_skeleton("study", "mine", home)
    assert "MINE-1" in set(pb.experiments()["experiment"])


@pytest.mark.slow
def test_results_of_a_workspace_hide_none_of_the_package(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", "mine")
    monkeypatch.chdir(tmp_path / "mine")
    before, runs, index = pb.claims(), pb.runs("CBO-X1"), ReferenceResults().index
    shutil.copytree(shipped() / REFERENCE / "BOWH-6-kernels", REFERENCE / "BOWH-6-kernels")
    code, _, errors = run("reference")
    assert code == 0, errors
    pd.testing.assert_frame_equal(pb.claims(), before)
    pd.testing.assert_frame_equal(pb.runs("CBO-X1"), runs)
    pd.testing.assert_frame_equal(ReferenceResults().index, index)


def test_a_workspace_overwrites_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("# ours\n")
    check_one_line(run("init", "."), "config.yaml is there already: choose another name, or delete it")
    assert not (tmp_path / "Snakefile").exists()
    assert (tmp_path / "config/config.yaml").read_text() == "# ours\n"
    (tmp_path / "config/studies").mkdir()
    check_one_line(run("init", "."), ". is a workspace already: `plumbline new study` adds to it")


def test_words() -> None:
    assert words("plumbline-my-ei") == {
        "name": "plumbline-my-ei",
        "module": "plumbline_my_ei",
        "title": "PlumblineMyEi",
        "short": "my-ei",
    }


@pytest.mark.slow
def test_a_method_and_a_problem_run_in_a_checkout(root: Path, tmp_path: Path, one_core: dict[str, str]) -> None:
    for part in ("src", "config"):
        shutil.copytree(root / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    environment = {**one_core, "PYTHONPATH": str(tmp_path / "src"), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def plumbline(*arguments: str) -> str:
        command = [sys.executable, "-m", "plumbline", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for kind, name in {"method": "my-bound", "problem": "my-valley"}.items():
        *_, command = plumbline("new", kind, name).splitlines()
        assert "records: " in plumbline(*shlex.split(command)[1:])


@pytest.mark.slow
def test_the_example_is_installed_and_runs_as_its_readme_says(
    root: Path, tmp_path: Path, one_core: dict[str, str]
) -> None:
    home, target = tmp_path / "example", tmp_path / "site-packages"
    shutil.copytree(root / "examples/plumbline-example", home)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, str(home)], check=True, capture_output=True)
    environment = {**one_core, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(target)])}
    (block, _) = re.findall(r"```sh\n(.*?)```", (home / "README.md").read_text(), re.DOTALL)
    install, *commands = block.splitlines()
    assert install == "pip install --no-deps --editable ."
    assert [command.split()[0] for command in commands] == ["plumbline", "plumbline", "pytest"]
    for command in commands:
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_study_of_the_example_is_a_plan(root: Path, own_packages: Path, tmp_path: Path, run: Run) -> None:
    example = root / "examples/plumbline-example"
    shutil.copytree(example / "src/plumbline_example", own_packages / "plumbline_example")
    points = tomllib.loads((example / "pyproject.toml").read_text())["project"]["entry-points"]
    write_package(own_packages, "plumbline-example", {}, points["plumbline.methods"], points["plumbline.problems"])
    for folder in (root / "config", example / "experiments"):
        shutil.copytree(folder, tmp_path / "config", dirs_exist_ok=True)
    code, output, errors = run("plan", "--config", 'config/config.yaml,{"studies": ["example"]}')
    assert code == 0, errors
    assert re.search(r"^EXAMPLE-1 .* 20 +0 ", output, re.MULTILINE)

"""The workflow, run for real on a study so small that its jobs take seconds."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml
from command_line import TASKS
from own_packages import write_package

from plumbline.cli.skeletons import write_skeleton
from plumbline.study.plan import load_plan
from plumbline.study.settings import Config

PARTS = ("workflow", "config", "src", "envs", "profiles", "slurm")
METHODS = """
dice: {name: random}
flaky: {name: flaky}
bound: {name: ucb, options: {search: {restarts: 1, raw_samples: 8, maxiter: 5}}}
"""
STUDY = """
study: tiny
title: A tiny study of {EI,KG}
citation: Nobody.
experiments:
  TINY-T1:
    title: A table
    grid: [{tasks: [branin], methods: [dice, flaky]}]
    seeds: 2
    table: {kind: final-values, options: {metrics: [regret]}}
    quick: {}
  TINY-F1:
    title: A figure of x_{t}
    grid: [{tasks: [forrester], methods: [bound]}]
    diagnostics: {snapshots: {rounds: [1], points: 9}}
    figure: {kind: model-steps, options: {task: forrester, methods: [bound]}}
    quick: {}
  TINY-F2:
    title: A figure without trials
    illustration: {kind: conformal-bands, options: {n: 9}}
    figure: {kind: conformal-bands}
    quick: {}
  TINY-D1:
    title: Not in the quick preset
    grid: [{tasks: [branin], methods: [dice]}]
    table: {kind: final-values, options: {metrics: [regret]}}
claims:
  K1:
    source: nowhere
    statement: Dice win.
    experiments: [TINY-T1]
    primary: {statistic: difference, metric: regret, task: branin, method: dice, baseline: flaky, direction: less}
"""
FLAKY = '''"""A method that fails, or dawdles, where a file says so."""

import time
import zipfile
from pathlib import Path

import torch

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.methods.base import Method, Proposal, methods


@methods.register("flaky", Options)
class Flaky(Method):
    """The middle of the box."""

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        """Return the middle."""
        if Path("BROKEN").exists():
            raise RuntimeError("broken on purpose")
        if Path("SLOW").exists():
            time.sleep(120 if len(history) > 3 else 5)  # five seconds are worth a checkpoint
        return Proposal(self.domain.bounds.mean(dim=0, keepdim=True).expand(q, -1) * 1.0)
'''


class Checkout:
    """A copy of the repository in a folder of its own."""

    def __init__(self, path: Path, env: dict[str, str]) -> None:
        self.path = path
        self.env = {**env, "PYTHONPATH": str(path / "src"), "XDG_CACHE_HOME": str(path.parent / "cache")}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", *arguments]

    def snakemake(self, *arguments: str, cores: int = 2) -> "subprocess.CompletedProcess[str]":
        command = self.command("snakemake", "--cores", str(cores), *arguments)
        return subprocess.run(
            command,
            cwd=self.path,
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )

    def plumbline(self, *arguments: str) -> str:
        done = subprocess.run(
            self.command("plumbline", *arguments),
            cwd=self.path,
            env=self.env,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def build(self) -> str:
        """Run all of it."""
        done = self.snakemake()
        assert done.returncode == 0, done.stdout
        return done.stdout

    def todo(self, *arguments: str) -> dict[str, int]:
        """Return the number of jobs of each rule that a run would start."""
        done = self.snakemake("--dry-run", *arguments)
        assert done.returncode == 0, done.stdout
        return jobs(done.stdout)

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.path / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def results(self) -> dict[str, bytes]:
        """Return the records of each finished trial."""
        store = self.path / "results/store"
        return {path.parent.name: path.read_bytes() for path in store.glob("*/records.parquet")}


FORKS = """
import json, os, runpy, sys
import smart_open, snakemake.cli, snakemake.report.html_reporter, snakemake.storage  # once for all runs
import plumbline.store.keys, plumbline.study.plan

for line in sys.stdin:
    arguments, output = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1), os.dup2(file, 2)
    sys.argv = ["snakemake", *arguments]
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
    sys.exit()
"""
"""Runs Snakemake with each line of arguments, in a fork, and answers with its exit code."""


class DryCheckout(Checkout):
    """One in which nothing but dry runs happen: they fork off a process that has imported Snakemake, most of a run."""

    def __init__(self, path: Path, env: dict[str, str]) -> None:
        super().__init__(path, env)
        del self.env["XDG_CACHE_HOME"]  # this source has its catalogue already
        self.output = path.parent / "output"
        self.server: subprocess.Popen[str] | None = None

    def snakemake(self, *arguments: str, cores: int = 2) -> "subprocess.CompletedProcess[str]":
        assert {"--dry-run", "--lint"} & {*arguments}
        words = ["--cores", str(cores), *arguments]
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, "-c", FORKS],
                cwd=self.path,
                env=self.env,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        print(json.dumps([words, str(self.output)]), file=self.server.stdin, flush=True)
        code = int(self.server.stdout.readline())
        return subprocess.CompletedProcess(words, code, self.output.read_text())

    def close(self) -> None:
        if self.server is not None:
            self.server.communicate()


def jobs(output: str) -> dict[str, int]:
    """The number of jobs of each rule, as Snakemake prints it."""
    table = output.partition("Job stats:")[2].partition("\n\n")[0]
    counts: Counter[str] = Counter()
    # A job of several chunks or illustrations has a rule of its own, and an experiment has one of its name.
    for name, count in re.findall(r"^(\S+)\s+(\d+)\s*$", table, re.MULTILINE):
        counts["experiment" if re.match(r"[A-Z]+-", name) else name.partition("-")[0]] += int(count)
    counts.pop("total", None)
    return dict(counts)


@pytest.fixture(scope="session")
def layout(root: Path, tmp_path_factory: pytest.TempPathFactory, one_core: dict[str, str]) -> Iterator[DryCheckout]:
    """The repository as it is, without results."""
    path = tmp_path_factory.mktemp("layout") / "repository"
    path.mkdir()
    shutil.copy2(root / "Snakefile", path)
    for part in PARTS:
        shutil.copytree(root / part, path / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    checkout = DryCheckout(path, one_core)
    yield checkout
    checkout.close()


@pytest.mark.slow
def test_lint(layout: DryCheckout) -> None:
    done = layout.snakemake("--lint")
    assert done.returncode == 0, done.stdout
    assert "Congratulations, your workflow is in a good condition!" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["quick", "desk", "paper"])
def test_every_preset_is_a_graph_of_short_commands(layout: DryCheckout, preset: str) -> None:
    """Linux takes 128 kB in one argument, which 50,000 names of files are not."""
    config = [] if preset == "quick" else ["--configfile", f"config/{preset}.yaml"]
    done = layout.snakemake("--dry-run", "--printshellcmds", *config)
    assert done.returncode == 0, done.stdout
    todo = jobs(done.stdout)
    assert todo["all"] == todo["claims"] == todo["report_page"] == todo["track"] == 1
    assert todo["trials"] > 1
    assert todo["experiment"] > 1
    # ZINC, its docking subset, OAS, DNA, GuacaMol's sample, newsgroups, CIFAR-10, both parts of SVHN, and GuacaMol's
    # training set for the paper's model; the quick preset generates stand-ins.
    assert todo.get("fetch", 0) == {"quick": 0, "desk": 9, "paper": 10}[preset]
    commands = [line for line in done.stdout.splitlines() if "plumbline " in line and " --config " in line]
    assert {line.split("plumbline ")[1].split()[0] for line in commands} >= {"outputs", "claims", "report", "track"}
    assert max(map(len, commands)) < 2_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("experiments=[CAL-F9]", "unknown experiment 'CAL-F9': did you mean 'CAL-F"),
        ("preset=quik", "config: preset: Input should be 'quick', 'desk' or 'paper' (got 'quik')"),
    ],
)
def test_a_typo_in_the_config_is_one_line(layout: DryCheckout, setting: str, part: str) -> None:
    done = layout.snakemake("--dry-run", "--config", setting)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert "WorkflowError" in done.stdout
    assert [part in line for line in done.stdout.splitlines()].count(True) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "part"),
    [
        ("CAL-F33", "unknown target 'CAL-F33': did you mean 'CAL-F3'?"),
        ("claim", "unknown target 'claim': did you mean 'claims'?"),
        ("results/quick/figures/CAL-F33.svg", "did you mean 'results/quick/figures/CAL-F3.svg'?"),
    ],
)
def test_a_target_that_there_is_not_is_one_line(layout: DryCheckout, target: str, part: str) -> None:
    done = layout.snakemake("--dry-run", target)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert "MissingRule" not in done.stdout
    assert [part in line for line in done.stdout.splitlines()].count(True) == 1


@pytest.mark.slow
def test_files_that_rules_make_are_targets(layout: DryCheckout) -> None:
    files = ("figures/CAL-F3.png", "records/CAL-F3.parquet", "../quick/tables/CAL-F3.csv")
    todo = layout.todo(*(f"results/quick/{file}" for file in files))
    assert todo["experiment"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("field", ["results", "datasets"])
def test_braces_in_a_path_are_refused(layout: DryCheckout, field: str) -> None:
    done = layout.snakemake("--dry-run", "--config", f"{field}='my {{folder}}'", "--", "CAL-F3")
    assert done.returncode == 1
    assert f"config: {field}: braces and line ends may not be in a path of the workflow" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "jobs"),
    [
        ("CAL-T1", {"experiment": 1}),
        ("CBO-F5", {"experiment": 1, "trials": 2}),
        ("calibrated", {"calibrated": 1, "experiment": 7, "trials": 7, "features": 1, "model": 2}),
    ],
)
def test_experiments_and_studies_are_targets(layout: DryCheckout, target: str, jobs: dict[str, int]) -> None:
    """And need no job of another experiment."""
    assert layout.todo(target) == jobs


@pytest.mark.slow
def test_a_study_that_is_new_is_a_target(layout: DryCheckout) -> None:
    paths, (_, command) = write_skeleton("study", "mine", layout.path)
    try:
        done = layout.snakemake("--dry-run", *shlex.split(command)[3:])
    finally:
        for path in paths:
            path.unlink()
    assert command.startswith("snakemake --cores all ")
    assert jobs(done.stdout) == {"trials": 1, "experiment": 1}, done.stdout


@pytest.mark.slow
def test_an_experiment_needs_neither_figure_nor_table(layout: DryCheckout) -> None:
    """Its records are what the report shows of it."""
    (path,), _ = write_skeleton("study", "mine", layout.path)
    try:
        study = yaml.safe_load(path.read_text(encoding="utf-8"))
        for one in study["experiments"].values():
            one.pop("figure", None)
            one.pop("table", None)
        path.write_text(yaml.safe_dump(study), encoding="utf-8")
        done = [layout.snakemake("--dry-run", "--config", "studies=[mine]", *target) for target in ((), ("--", "mine"))]
    finally:
        path.unlink()
    whole, alone = (jobs(one.stdout) for one in done)
    assert whole["experiment"] == alone["experiment"] == 1, done[0].stdout + done[1].stdout


@pytest.mark.slow
def test_a_run_of_one_study_leaves_the_whole_page_alone(layout: DryCheckout) -> None:
    done = layout.snakemake("--dry-run", "--config", "studies=[calibrated]")
    assert "results/quick/only-calibrated/report.html" in done.stdout
    assert "results/quick/only-calibrated/claims.csv" in done.stdout
    assert not re.search(r"results/quick/(report\.html|claims\.csv|tracked\.txt)", done.stdout)


@pytest.mark.slow
def test_jobs_have_the_plan_of_the_workflow(layout: DryCheckout) -> None:
    """With other data in the place of some, too: else a job would look for trials that nobody ran."""
    experiment = "CAL-F4-lda"
    chosen = Config(
        studies=("calibrated",), experiments=(experiment,), instead={"online-lda": "online-lda-rebuilt"}, chunk=1
    )
    expected = load_plan(chosen, layout.path)
    assert expected.resolve(experiment).inputs == ["online-lda-rebuilt"]
    settings = [
        "experiments=[CAL-F4-lda]",
        "studies=[calibrated]",
        "instead={online-lda: online-lda-rebuilt}",
        "chunk=1",
        "without=[CAL-F4-svhn]",
    ]
    done = layout.snakemake("--dry-run", "--printshellcmds", "--config", *settings)
    commands = [line for line in done.stdout.splitlines() if "plumbline " in line and " --config " in line]
    configs = {}
    for words in map(shlex.split, commands):
        job = words[words.index("plumbline") + 1]
        configs[job] = json.loads(words[words.index("--config") + 1])
    assert configs.keys() == {"outputs", "claims", "report", "track"}, done.stdout
    for job, config in configs.items():
        plan = load_plan(config, layout.path)
        assert plan.resolve(experiment).trials == expected.resolve(experiment).trials, job
        if job in ("claims", "report"):
            assert plan.config.without == ("CAL-F4-svhn",), "what is not run is not waited for"
        if job in ("outputs", "track"):  # the others read records that are together already
            assert plan.resolve(experiment).chunks == expected.resolve(experiment).chunks, job


@pytest.fixture(scope="session")
def source(layout: DryCheckout, tmp_path_factory: pytest.TempPathFactory, one_core: dict[str, str]) -> Checkout:
    """The repository with the tiny study alone, before anything has run."""
    checkout = Checkout(tmp_path_factory.mktemp("source") / "repository", one_core)
    shutil.copytree(layout.path, checkout.path, ignore=shutil.ignore_patterns(".snakemake"))
    for folder, entries in {"methods": METHODS, "tasks": TASKS}.items():
        shutil.rmtree(checkout.path / "config" / folder)
        (checkout.path / "config" / folder).mkdir()
        (checkout.path / "config" / folder / "tiny.yaml").write_text(entries)
    (checkout.path / "config/studies/tiny.yaml").write_text(STUDY)
    checkout.edit("config/config.yaml", "studies: [", "studies: [tiny] # [")
    (checkout.path / "src/plumbline/methods/flaky.py").write_text(FLAKY)
    return checkout


@pytest.fixture(scope="session")
def built(source: Checkout, tmp_path_factory: pytest.TempPathFactory, one_core: dict[str, str]) -> Checkout:
    """The tiny study, built once."""
    checkout = Checkout(tmp_path_factory.mktemp("built") / "repository", one_core)
    shutil.copytree(source.path, checkout.path)
    checkout.build()
    return checkout


@pytest.fixture
def copy_of(tmp_path: Path, one_core: dict[str, str]) -> Callable[[Checkout], Checkout]:
    """Return what copies a checkout, results and Snakemake's memory included."""

    def make(checkout: Checkout) -> Checkout:
        copied = Checkout(tmp_path / "repository", one_core)
        shutil.copytree(checkout.path, copied.path)
        return copied

    return make


@pytest.mark.slow
def test_a_run_makes_everything(built: Checkout) -> None:
    made = built.path / "results/quick"
    for name in (
        "figures/TINY-F1.svg",
        "figures/TINY-F1.pdf",
        "figures/TINY-F1.png",
        "figures/TINY-F2.svg",
        "tables/TINY-T1.csv",
        "claims.csv",
        "report.html",
    ):
        assert (made / name).stat().st_size > 0
    assert (built.path / "results/mlflow.db").is_file()
    assert (made / "tracked.txt").read_text().strip()
    assert len(built.results()) == 5
    assert not list(built.path.glob("results/store/*/checkpoint.pt"))
    assert (made / "claims.csv").read_text().count("K1,TINY-T1,") == 1


@pytest.mark.slow
def test_snakemakes_own_report_has_every_figure_and_table(built: Checkout) -> None:
    done = built.snakemake("--report", "report.zip")
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(built.path / "report.zip") as report:
        names = report.namelist()
    assert "report/report.html" in names
    for name in ("TINY-F1.svg", "TINY-F2.svg", "TINY-T1.csv", "claims.csv"):
        assert any(one.endswith(f"/{name}") for one in names), names


@pytest.mark.slow
def test_a_second_run_does_nothing(built: Checkout) -> None:
    assert built.todo() == {}
    assert "Nothing to be done" in built.build()


@pytest.mark.slow
def test_a_run_of_some_experiments_leaves_the_whole_report_alone(
    built: Checkout, copy_of: Callable[[Checkout], Checkout]
) -> None:
    checkout = copy_of(built)
    made = checkout.path / "results/quick"
    whole = {name: (made / name).read_bytes() for name in ("report.html", "claims.csv", "tracked.txt")}
    narrow = ("--config", "experiments=[TINY-F1]")
    assert set(checkout.todo(*narrow)) == {"all", "claims", "report_page", "track"}, "no figure is drawn again"
    done = checkout.snakemake(*narrow)
    assert done.returncode == 0, done.stdout
    assert {name: (made / name).read_bytes() for name in whole} == whole
    assert "TINY-F1" in (made / "only-TINY-F1/report.html").read_text()
    assert "TINY-T1" not in (made / "only-TINY-F1/report.html").read_text()
    last = done.stdout.partition("plumbline: report, claims of preset quick finished")[2]
    assert "results/quick/only-TINY-F1/report.html" in last
    assert "results/quick/figures" not in last, "none was drawn"
    assert checkout.todo() == {}


@pytest.mark.slow
def test_the_last_words_name_what_was_made(source: Checkout, copy_of: Callable[[Checkout], Checkout]) -> None:
    checkout = copy_of(source)
    done = checkout.snakemake("TINY-F2")
    last = done.stdout.partition("plumbline: one figure of preset quick finished")[2]
    assert "results/quick/figures/TINY-F2.svg" in last
    assert "report" not in last
    assert "claims" not in last


ODD = 'my [project] ü, it\'s $HOME & "co"'
"""A name of a folder in which each sign means something to a shell, to Snakemake or to YAML."""


PROJECT = "my [project] ü, it's $HOME & co"
"""The same without double quotes, with which and an apostrophe MLflow cannot make its database."""


@pytest.mark.slow
def test_paths_may_have_blanks_and_signs_of_the_shell(
    source: Checkout, tmp_path: Path, one_core: dict[str, str]
) -> None:
    checkout = Checkout(tmp_path / PROJECT, one_core)
    shutil.copytree(source.path, checkout.path)
    places = {"results": f"results of {ODD}", "datasets": "data (all)", "mirror": f"{tmp_path}/downloads of {ODD}"}
    (checkout.path / "own.yaml").write_text(json.dumps(places))
    done = checkout.snakemake("--configfile", "own.yaml", "--printshellcmds")
    assert done.returncode == 0, done.stdout
    made = checkout.path / places["results"]
    assert (made / "quick/report.html").is_file()
    assert (made / "quick/figures/TINY-F2.svg").is_file()
    assert (made / "mlflow.db").is_file()
    assert {path.name for path in checkout.path.iterdir()} >= {places["results"], "own.yaml"}
    assert not {"my", "results", "of", "results of my", "mlruns"} & {path.name for path in checkout.path.iterdir()}
    assert checkout.todo("--configfile", "own.yaml") == {}


@pytest.mark.slow
def test_a_mirror_with_a_blank_is_one_word(layout: DryCheckout, tmp_path: Path) -> None:
    mirror = str(tmp_path / ODD)
    (tmp_path / "own.yaml").write_text(json.dumps({"data": "real", "mirror": mirror, "datasets": "my data"}))
    done = layout.snakemake(
        "--dry-run", "--printshellcmds", "--configfile", str(tmp_path / "own.yaml"), "--", "CBO-F5", "CAL-F4-lda"
    )
    commands = [shlex.split(line) for line in done.stdout.splitlines() if "plumbline fetch " in line]
    assert commands, done.stdout
    for words in commands:
        assert words[words.index("--mirror") + 1] == mirror
        assert words[words.index("--directory") + 1] == "my data/raw"


@pytest.mark.slow
def test_without_slurm_its_profile_ends_at_once(source: Checkout, copy_of: Callable[[Checkout], Checkout]) -> None:
    checkout = copy_of(source)
    programs = checkout.path / "programs"
    programs.mkdir()
    slurm = {"sbatch", "sacct", "sacctmgr", "scancel", "scontrol", "sinfo", "squeue", "srun"}
    for folder in filter(os.path.isdir, os.environ["PATH"].split(os.pathsep)):
        for program in Path(folder).iterdir():
            if program.name not in slurm and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    checkout.env["PATH"] = str(programs)
    done = checkout.snakemake("--profile", "slurm", "results/quick/illustrations/TINY-F2.parquet")
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if "no Slurm here (no command `sbatch`)" in line]
    assert "Traceback" not in done.stdout
    assert "the same command goes on" not in done.stdout
    assert "Building DAG" not in done.stdout, "at once"


@pytest.mark.slow
def test_where_data_lie_and_how_jobs_are_cut_changes_no_result(
    built: Checkout, copy_of: Callable[[Checkout], Checkout]
) -> None:
    checkout = copy_of(built)
    assert checkout.todo("--config", "mirror=elsewhere") == {}
    todo = checkout.todo("--config", "chunk=1")
    assert todo["trials"] == 1, "four chunks of one task"
    assert "illustrate" not in todo
    assert checkout.todo("--config", "chunk=1", "job=chunk")["trials"] == 4
    before = checkout.results()
    done = checkout.snakemake("--config", "chunk=1", "job=chunk", "--", "TINY-T1")
    assert done.returncode == 0, done.stdout
    assert checkout.results() == before


@pytest.mark.slow
def test_a_chunk_that_is_missing_comes_from_the_store(built: Checkout, copy_of: Callable[[Checkout], Checkout]) -> None:
    checkout = copy_of(built)
    before = checkout.results()
    chunks = {path: path.read_bytes() for path in checkout.path.glob("results/trials/*/*/*.parquet")}
    (missing,) = (path for path in chunks if path.parent.name == "flaky")
    missing.unlink()
    for made in ("records/TINY-T1.parquet", "tables/TINY-T1.csv"):  # Snakemake asks for no file that nothing needs
        (checkout.path / "results/quick" / made).unlink()
    assert checkout.todo("TINY-T1")["trials"] == 1
    done = checkout.snakemake("TINY-T1")
    assert done.returncode == 0, done.stdout
    assert {path: path.read_bytes() for path in chunks} == chunks
    assert checkout.results() == before
    assert "round" not in (checkout.path / "results/logs/trials/branin.log").read_text(), "no trial ran"


@pytest.mark.slow
def test_a_comment_runs_nothing_and_code_runs_its_own_jobs(
    built: Checkout, copy_of: Callable[[Checkout], Checkout]
) -> None:
    checkout = copy_of(built)
    flaky = "src/plumbline/methods/flaky.py"
    checkout.edit(flaky, '"""Return the middle."""', '"""Return the very middle."""  # a comment')
    assert checkout.todo() == {}
    before = checkout.results()
    checkout.edit(flaky, "* 1.0", "* 0.5")
    todo = checkout.todo()
    assert todo["trials"] == todo["experiment"] == 1
    checkout.build()
    after = checkout.results()
    assert before.items() <= after.items(), "what was computed stays"
    assert len(after) == len(before) + 2
    log = (checkout.path / "results/logs/trials/branin.log").read_text()
    assert "branin flaky seed 0" in log
    assert "branin dice" not in log, "its code is what it was"
    checkout.edit("src/plumbline/trials/trial.py", "range(len(X))", "range(0, len(X))")
    assert checkout.todo()["trials"] == 2, "the loop is everyone's"


@pytest.mark.slow
def test_code_of_a_package_runs_its_jobs_again(
    source: Checkout, copy_of: Callable[[Checkout], Checkout], tmp_path: Path
) -> None:
    package = tmp_path / "site-packages"
    write_package(package)
    checkout = copy_of(source)
    checkout.env["PYTHONPATH"] += f":{package}"
    checkout.edit("config/methods/tiny.yaml", "{name: flaky}", "{name: my-middle}")
    checkout.edit("config/tasks/tiny.yaml", "problem: branin", "problem: my-bowl-2")
    done = checkout.snakemake("TINY-T1")
    assert done.returncode == 0, done.stdout
    assert checkout.todo("TINY-T1") == {}
    unused, helper = package / "mine/unused.py", package / "mine/helper.py"
    unused.write_text("x = 2\n")
    assert checkout.todo("TINY-T1") == {}
    helper.write_text(helper.read_text().replace("return x", "return x / 2"))
    assert checkout.todo("TINY-T1") == {"trials": 1, "experiment": 1}


@pytest.mark.slow
def test_a_failed_trial_stops_what_rests_on_it(source: Checkout, copy_of: Callable[[Checkout], Checkout]) -> None:
    checkout = copy_of(source)
    (checkout.path / "BROKEN").touch()
    done = checkout.snakemake("--keep-going", "--quiet", "rules")
    assert done.returncode == 1
    assert "plumbline: error: 2 of 4 trials failed" in done.stdout, "without looking into a log"
    log = Path("results/logs/quick/experiments/TINY-T1.log")
    assert str(log) in done.stdout
    (line,) = (checkout.path / log).read_text().splitlines()
    assert line.startswith(
        "plumbline: error: 2 of 4 trials failed, the first: branin flaky seed 0: RuntimeError: broken"
    )
    assert "`plumbline failures`" in line
    assert (checkout.path / "results/quick/figures/TINY-F1.svg").is_file(), "the rest goes on"
    assert (checkout.path / "results/quick/figures/TINY-F2.svg").is_file()
    assert not (checkout.path / "results/quick/report.html").exists()

    (checkout.path / "BROKEN").unlink()
    text = checkout.plumbline("failures", "--forget")
    assert "branin flaky seed 1: RuntimeError: broken on purpose" in text
    assert "2 failures forgotten; 1 job to run again" in text
    todo = checkout.todo()
    assert todo["trials"] == todo["experiment"] == 1
    checkout.build()
    assert checkout.todo() == {}
    assert "no trial has failed" in checkout.plumbline("failures")


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["the job", "Snakemake and its job"])
def test_a_killed_job_goes_on(
    killed: str, built: Checkout, source: Checkout, copy_of: Callable[[Checkout], Checkout]
) -> None:
    checkout = copy_of(source)
    (checkout.path / "SLOW").touch()
    command = checkout.command("snakemake", "--cores", "1", "results/quick/tables/TINY-T1.csv")
    log = checkout.path / "output"
    with log.open("w") as stream:
        run = subprocess.Popen(command, cwd=checkout.path, env=checkout.env, stdout=stream, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 180
        job = checkout.path / "results/logs/trials/branin.log"
        while not (job.is_file() and "branin flaky seed 0: round 1/2" in job.read_text()):
            assert time.monotonic() < deadline, log.read_text()
            assert run.poll() is None, log.read_text()
            time.sleep(0.2)
        lines = {process: process.cmdline() for process in psutil.Process(run.pid).children(recursive=True)}
        if killed != "the job":
            run.kill()
        for process, line in lines.items():
            if "plumbline" in line and "trials" in line and line[0] != "/bin/bash":
                process.kill()
        assert run.wait(timeout=60) == (1 if killed == "the job" else -signal.SIGKILL)
    finally:
        if run.poll() is None:
            run.kill()
    assert not list(checkout.path.glob("results/trials/branin/flaky/*.parquet"))
    (checkout.path / "SLOW").unlink()
    if killed != "the job":
        assert checkout.snakemake("--unlock").returncode == 0
    checkout.build()
    assert "branin flaky seed 0: trial" in job.read_text()
    assert "going on after round 1" in job.read_text()
    assert "branin dice" not in job.read_text(), "it was done before the kill"
    assert checkout.results() == built.results()

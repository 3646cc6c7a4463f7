# What the rules share: the plan of this run, where things lie, and lookups by wildcard. No numerics.
import json
import os
import re
import sys
import time
from functools import cache
from pathlib import Path

# The folder that this workflow is in, whichever Snakefile Snakemake was started with: a checkout, whose own package is taken,
# whichever is installed; or the folder of an installed package, which has none.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]
SOURCE = [str(path) for path in [ROOT / "src"] if path.is_dir()]
sys.path[:0] = SOURCE

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.strict_yaml import read_yaml
from plumbline.core.places import STUDIES
from plumbline.store.keys import code_digest, illustration_digest, input_paths, trainer_digest, trial_inputs
from plumbline.study.plan import load_plan
from plumbline.study.resolved import job_resources
from plumbline.study.settings import summary_folder
from plumbline.registry.source_digest import source_digest
from plumbline.tracking.addresses import command_of

STARTED = time.time()
# The folder of the configuration: the one that Snakemake runs in, as `plumbline init` writes it, else the workflow's own.
HOME = Path.cwd() if (Path.cwd() / STUDIES).is_dir() else ROOT
WITH_CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method

try:
    PLAN = load_plan(config, HOME)
    for field in ("results", "datasets"):
        if re.search(r"[{}\n]", path := getattr(PLAN.config, field)):
            raise PlumblineError(
                f"config: {field}: braces and line ends may not be in a path of the workflow: {path!r}"
            )
    if WITH_CONDA and not SOURCE:
        raise PlumblineError(
            "--sdm conda: only a checkout of the repository has what conda's Python runs: leave it out"
        )
    if os.pathsep in str(ROOT):
        raise PlumblineError(f"{ROOT}: Python takes no path with {os.pathsep!r} in it: rename the folder")
except PlumblineError as error:
    raise WorkflowError(str(error))

RESULTS = PLAN.config.results
DATA = PLAN.config.datasets
OUT = f"{RESULTS}/{PLAN.config.preset}"
STORE = f"{RESULTS}/store"
LOCKSTEP = PLAN.config.lockstep
TRIALS = f"{RESULTS}/trials"
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"

RESOLVED = PLAN.run.experiments
STUDY_OF = {name: one.study for name, one in RESOLVED.items()}
EXPERIMENTS = {name: one.experiment for name, one in RESOLVED.items()}
CHUNKS_OF = {name: one.chunks for name, one in RESOLVED.items()}
# A trial that two experiments share is one job.
CHUNKS = {chunk.id: chunk for chunks in CHUNKS_OF.values() for chunk in chunks}
PATHS = {id: f"{TRIALS}/{chunk.path(Path()).as_posix()}" for id, chunk in CHUNKS.items()}


# What speaks of the whole run. A run of some experiments or studies has a place of its own, and leaves the whole one's
# alone.
SUMMARY_NAME = summary_folder(PLAN.config, (read_yaml(HOME / "config" / "config.yaml") or {}).get("studies", ()))
SUMMARY = f"{RESULTS}/{SUMMARY_NAME}"


def config_json(*more, **changes):
    """Return the part of the configuration that a job needs, so that no other part makes it run again.

    All that says which trials there are is part of it: without `instead` a job would look for those of other data.
    """
    fields = {"preset", "data", "instead", "studies", "results", "datasets", *more}
    return json.dumps({**PLAN.config.model_dump(mode="json", include=fields), **changes})


@cache
def config_of(experiment, *more):
    """Return the part of the configuration that a job of one experiment needs."""
    return config_json(*more, studies=[PLAN.study_of(experiment).study])


@cache
def resources_of(chunk):
    """Return the resources that a job asks for: the greater of those of its method and of its task."""
    return job_resources(PLAN.library, CHUNKS[chunk].spec)


def code_of(chunks):
    """Return the digests of the code that a job runs."""
    return sorted({code_digest(chunk.spec) for chunk in chunks})


def chunk_options(chunks):
    """Return the options of `plumbline trials` for the chunks of a job, as words of its command."""
    return [word for chunk in chunks for word in ("--chunk", chunk.model_dump_json(), "--output", PATHS[chunk.id])]


def device_of(chunk):
    """Return the device that a job computes on; where a GPU was asked for and none is, as on a laptop, it takes longer."""
    return "auto" if resources_of(chunk).gpu else "cpu"


def growing(amount):
    """Return the function of an amount that grows with each attempt."""
    return lambda wildcards, attempt: amount * attempt


# Rules call the package of this checkout, or the installed one: with the interpreter that runs Snakemake, or with that of
# the conda environment under `--sdm conda`. One thread a job: two on a busy machine are slower than one.
PYTHON = "python" if WITH_CONDA else sys.executable
PACKAGE_PATH = ":".join(filter(None, [*SOURCE, os.environ.get("PYTHONPATH")]))
# Snakemake formats the prefix, hence the names of variables, and the doubled braces.
shell.prefix(
    "set -euo pipefail; export PYTHONPATH={PACKAGE_PATH:q} MPLBACKEND=agg PLUMBLINE_TRACEBACK=1"
    " OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1; "
    'plumbline() {{ {PYTHON:q} -m plumbline "$@"; }}; '
)


wildcard_constraints:
    experiment="|".join(EXPERIMENTS) or "none",
    model="|".join(PLAN.models) or "none",
    chunk="[0-9a-f]{16}",
    task="[^/]+",
    method="[^/]+",


def inputs_of(chunks):
    """Return the files that a job reads, as the options of its chunks declare them: features, trained models."""
    return sorted({f"{DATA}/{path}" for chunk in chunks for path in trial_inputs(chunk.spec)})


def model_inputs(wildcards):
    """Return the files that a model is trained on."""
    model = PLAN.models[wildcards.model]
    return [f"{DATA}/{path}" for path in input_paths("trainer", model.trainer, model.options)]


def words_of(experiment):
    """Return the legends of an experiment's methods, and the titles and parameters of its tasks."""
    one = RESOLVED[experiment]
    legends = {name: legend.model_dump(mode="json") for name, legend in one.legends.items()}
    return {"legends": legends, "titles": one.titles, "parameters": one.parameters}


def chunks_of(experiment):
    """Return the function of the records that an experiment consists of: a list that Snakemake reads where it is needed."""
    return lambda wildcards: [PATHS[chunk.id] for chunk in CHUNKS_OF[experiment]]


def illustration_of(experiment):
    """Return the illustration that an experiment's figure shows: none where it has none."""
    return illustration_path(experiment) if EXPERIMENTS[experiment].illustration else []


def evidence_of(experiment):
    """Return the files of an experiment's collected records and pictures of models: none where it has no trials."""
    kinds = ("records", "snapshots") if CHUNKS_OF[experiment] else ()
    return {kind: f"{OUT}/{kind}/{experiment}.parquet" for kind in kinds}


def verbatim(text):
    """Return a text that Snakemake's report shows as it is: a word joiner, which is not seen, keeps {name} from being read
    as a wildcard.
    """
    return text.replace("{", "{\N{WORD JOINER}")


def shown(experiment, kind, path):
    """Return a file of an experiment as Snakemake's report shows it."""
    return report(
        path,
        caption=f"../report/{kind}.rst",
        category=verbatim(STUDY_OF[experiment].title),
        subcategory=verbatim(f"{experiment}: {EXPERIMENTS[experiment].title}"),
        labels={"experiment": experiment, "kind": kind},
    )


def figure_of(experiment):
    """Return the files of an experiment's figure: none where it has none."""
    path = f"{OUT}/figures/{experiment}"
    return (
        {"svg": shown(experiment, "figure", f"{path}.svg"), "pdf": f"{path}.pdf", "png": f"{path}.png"}
        if EXPERIMENTS[experiment].figure
        else {}
    )


def table_of(experiment):
    """Return the file of an experiment's table: none where it has none."""
    return (
        {"csv": shown(experiment, "table", f"{OUT}/tables/{experiment}.csv")} if EXPERIMENTS[experiment].table else {}
    )


def illustration_jobs():
    """Return the experiments of the preset with an illustration, by job: the same whichever of them are built."""
    found = {}
    for name in PLAN.preset_names():
        if PLAN.experiment(name).illustration is not None:
            job = PLAN.study_of(name).study if PLAN.config.job == "task" else name
            found.setdefault(job, []).append(name)
    return found


def illustration_path(experiment):
    """Return the file of an experiment's illustration."""
    return f"{OUT}/illustrations/{experiment}.parquet"


def illustration_words(names):
    """Return the experiments and the files that they are illustrated in, as words of a command."""
    return [*names, *(word for name in names for word in ("--output", illustration_path(name)))]


def illustrated_with(names):
    """Return what illustrations depend on: their settings and the digests of their code."""
    found = [PLAN.experiment(name).illustration for name in names]
    return [(one.model_dump_json(), illustration_digest(one.kind)) for one in found]


def option(name, *values):
    """Return an option with its values as words of a command, which the shell line quotes; none without values."""
    return [name, *values] if values else []


def claimed_records():
    """Return the records of every experiment that a claim rests on."""
    return [f"{OUT}/records/{name}.parquet" for name, one in RESOLVED.items() if one.claims]


def all_figures():
    """Return every figure of this run."""
    return [f"{OUT}/figures/{name}.svg" for name, experiment in EXPERIMENTS.items() if experiment.figure]


def all_tables():
    """Return every table of this run."""
    return [f"{OUT}/tables/{name}.csv" for name, experiment in EXPERIMENTS.items() if experiment.table]


def outputs_of(*names):
    """Return the figures, tables and collected records of experiments."""
    figures = [f"{OUT}/figures/{name}.svg" for name in names if EXPERIMENTS[name].figure]
    tables = [f"{OUT}/tables/{name}.csv" for name in names if EXPERIMENTS[name].table]
    return figures + tables + [path for name in names for path in evidence_of(name).values()]


def raw_file(wildcards):
    """Return the download that a dataset's features are built from; none for generated ones."""
    dataset = PLAN.datasets[wildcards.dataset]
    return [f"{DATA}/raw/{dataset.file}"] if dataset.file else []


def dataset_of_file(wildcards):
    """Return the name of the dataset that a downloaded file belongs to."""
    return next(name for name, dataset in PLAN.datasets.items() if dataset.file == wildcards.file)


def built(*paths):
    """Return those of the paths that this run made."""
    return [path for path in map(Path, paths) if path.exists() and path.stat().st_mtime >= STARTED]


def failed_logs():
    """Return the last line of each log of this run that tells of an error, or that its job was killed (for memory).

    `--quiet rules` would not show any.
    """
    found = {}
    for path in sorted(Path(LOGS).rglob("*.log")):
        if path.stat().st_mtime >= STARTED:
            lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            if lines and (
                lines[-1].startswith("plumbline: error: ")
                or any(line.startswith("Traceback") for line in lines)
                or re.search(r": line \d+: +\d+ \w+", lines[-1])  # what bash says of a process that a signal ended
            ):
                found[path] = lines[-1]
    return found


def made():
    """Return the files that this run made of what readers look at, by kind."""
    kinds = {
        "report": [f"{SUMMARY}/report.html"],
        "figures": all_figures(),
        "tables": all_tables(),
        "claims": [f"{SUMMARY}/claims.csv"],
    }
    return {kind: found for kind, paths in kinds.items() if (found := built(*paths))}


def made_in_words(found):
    """Return what this run made: `preset quick` where that is all of it, `one figure of preset quick` where it is not."""
    if "report" in found and not PLAN.config.experiments:
        return f"preset {PLAN.config.preset}"
    words = [
        kind if kind in ("report", "claims") else f"one {kind[:-1]}" if len(paths) == 1 else f"{len(paths)} {kind}"
        for kind, paths in found.items()
    ]
    return f"{', '.join(words) or 'the jobs asked for'} of preset {PLAN.config.preset}"


onsuccess:
    minutes, seconds = divmod(round(time.time() - STARTED), 60)
    found = made()
    print(f"\nplumbline: {made_in_words(found)} finished in {minutes} min {seconds} s")
    for kind, paths in found.items():
        several = kind in ("figures", "tables") and len(paths) > 1
        print(f"  {kind:8} {f'{OUT}/{kind}/ ({len(paths)} new)' if several else paths[0]}")
    if built(f"{SUMMARY}/tracked.txt"):
        print(f"  MLflow   {RESULTS}/mlflow.db    ({command_of(f'sqlite:///{RESULTS}/mlflow.db')})")
    if SUMMARY_NAME != PLAN.config.preset:
        print(
            f"  only {', '.join(PLAN.config.experiments or PLAN.config.studies)}: report and claims of all others stay as"
            " they were"
        )


onerror:
    for path, line in failed_logs().items():
        print(f"\n{path}\n  {line}")
        if path.parent.name == "fetch":
            needing = [name for name in EXPERIMENTS if path.stem in PLAN.downloads(name)]
            print(f"  report and claims of the rest: --config 'without=[{', '.join(needing)}]'")
    print("\nplumbline: what is done is kept; the same command goes on from there")

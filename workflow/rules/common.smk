# What the rules share: the plan of this run, where things lie, and lookups by wildcard. No numerics.
import os
import sys
import time
from pathlib import Path

# The checkout's own package, whichever is installed.
sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

from plumbline.config import load_plan
from plumbline.errors import PlumblineError
from plumbline.keys import code_digest, features_path, illustration_digest
from plumbline.sources import source_digest
from plumbline.study import datasets_of

STARTED = time.time()

try:
    PLAN = load_plan(config, Path(workflow.basedir))
except PlumblineError as error:
    raise WorkflowError(str(error))

RESULTS = PLAN.config.results
DATA = PLAN.config.datasets
OUT = f"{RESULTS}/{PLAN.config.preset}"
STORE = f"{RESULTS}/store"
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"
CONFIG_JSON = PLAN.config.model_dump_json()

STUDIES = {name: study for study, name, _ in PLAN.experiments()}
EXPERIMENTS = {name: experiment for _, name, experiment in PLAN.experiments()}
CHUNKS_OF = {name: PLAN.chunks(name) for name in EXPERIMENTS}
# A trial that two experiments share is one job.
CHUNKS = {chunk.id: chunk for chunks in CHUNKS_OF.values() for chunk in chunks}
RESOURCES = {
    chunk.id: STUDIES[name].methods[chunk.spec.method.label].resources
    for name, chunks in CHUNKS_OF.items()
    for chunk in chunks
}

# Rules call the package of this checkout: with the interpreter that runs Snakemake, or with that of the conda
# environment under `--sdm conda`. One thread a job: two on a busy machine are slower than one.
PYTHON = "python" if DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method else sys.executable
PACKAGE_PATH = ":".join(filter(None, [str(Path(workflow.basedir) / "src"), os.environ.get("PYTHONPATH")]))
# Snakemake formats the prefix, hence the doubled braces.
shell.prefix(
    f"set -euo pipefail; export PYTHONPATH={PACKAGE_PATH} MPLBACKEND=agg"
    " OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1; "
    f'plumbline() {{{{ {PYTHON} -m plumbline "$@"; }}}}; '
)


wildcard_constraints:
    experiment="|".join(EXPERIMENTS) or "none",
    chunk="[0-9a-f]{16}",


def chunk_path(chunk):
    """Return the file of a job's records; the folders are for people who browse."""
    spec = chunk.spec
    return f"{RESULTS}/trials/{spec.problem.label}/{spec.method.label}/{chunk.id}.parquet"


def chunk_features(wildcards):
    """Return the features that a job reads."""
    return [str(features_path(Path(DATA), name)) for name in datasets_of([CHUNKS[wildcards.chunk].spec])]


def experiment_chunks(wildcards):
    """Return the records that an experiment consists of."""
    return [chunk_path(chunk) for chunk in CHUNKS_OF[wildcards.experiment]]


def experiment_records(wildcards):
    """Return the records that an experiment's figure and table need: none where it has no trials."""
    return f"{OUT}/records/{wildcards.experiment}.parquet" if CHUNKS_OF[wildcards.experiment] else []


def experiment_snapshots(wildcards):
    """Return the pictures of models that an experiment's figure needs: none where it has no trials."""
    return f"{OUT}/snapshots/{wildcards.experiment}.parquet" if CHUNKS_OF[wildcards.experiment] else []


def experiment_illustration(wildcards):
    """Return the illustration that an experiment's figure needs: none where it has none."""
    illustrated = EXPERIMENTS[wildcards.experiment].illustration
    return f"{OUT}/illustrations/{wildcards.experiment}.parquet" if illustrated else []


def named_options(files):
    """Return the named input files of a rule that are there as options of its command."""
    return " ".join(f"--{name} {path}" for name, path in files.items() if path)


def claimed_records():
    """Return the records of every experiment that a claim rests on."""
    claimed = {claim.experiment for study in PLAN.studies.values() for claim in study.claims.values()}
    return [f"{OUT}/records/{name}.parquet" for name in EXPERIMENTS if name in claimed]


def all_figures():
    """Return every figure of this run."""
    return [f"{OUT}/figures/{name}.svg" for name, experiment in EXPERIMENTS.items() if experiment.figure]


def all_tables():
    """Return every table of this run."""
    return [f"{OUT}/tables/{name}.csv" for name, experiment in EXPERIMENTS.items() if experiment.table]


def study_outputs(study):
    """Return the figures and tables of one study of this run."""
    of_study = {name: experiment for name, experiment in EXPERIMENTS.items() if STUDIES[name].study == study}
    figures = [f"{OUT}/figures/{name}.svg" for name, experiment in of_study.items() if experiment.figure]
    return figures + [f"{OUT}/tables/{name}.csv" for name, experiment in of_study.items() if experiment.table]


def raw_file(wildcards):
    """Return the download that a dataset's features are built from; none for generated ones."""
    dataset = PLAN.datasets[wildcards.dataset]
    return [f"{DATA}/raw/{dataset.file}"] if dataset.file else []


def dataset_of_file(wildcards):
    """Return the name of the dataset that a downloaded file belongs to."""
    return next(name for name, dataset in PLAN.datasets.items() if dataset.file == wildcards.file)


def title_of(wildcards):
    """Return the title of an experiment, for the Snakemake report."""
    return f"{wildcards.experiment}: {EXPERIMENTS[wildcards.experiment].title}"


def study_title(wildcards):
    """Return the title of an experiment's study, the category in the Snakemake report."""
    return STUDIES[wildcards.experiment].title


onsuccess:
    minutes, seconds = divmod(round(time.time() - STARTED), 60)
    print(f"\nplumbline: preset {PLAN.config.preset} finished in {minutes} min {seconds} s")
    print(f"  report   {OUT}/report.html")
    print(f"  figures  {OUT}/figures/")
    print(f"  claims   {OUT}/claims.csv")
    print(f"  MLflow   {RESULTS}/mlflow.db    (mlflow ui --backend-store-uri sqlite:///{RESULTS}/mlflow.db)")

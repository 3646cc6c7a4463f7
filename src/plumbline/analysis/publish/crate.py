"""A preset's results as a Workflow Run RO-Crate: an archive that says in JSON-LD what was run, on what, with what end.

The profiles are those of the Workflow Run RO-Crate group, version 0.5: Leo et al. (2024), PLOS ONE 19(9): e0309210.
Experiments are not actions of their own: what ran job by job is in Snakemake's metadata and the provenance of trials.
"""

import io
import json
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic
from plumbline.core.libraries import installed_version
from plumbline.core.places import own, shipped
from plumbline.core.words import counted
from plumbline.store.folder import TrialFolder
from plumbline.store.records import read_table
from plumbline.store.reference_files import CLAIMS
from plumbline.study.resolved import ResolvedRun
from plumbline.study.settings import Config, read_config, summary_folder

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
LICENCE = "https://spdx.org/licenses/MIT"
BIOSCHEMAS = "https://bioschemas.org/profiles"
TEXT = {"encodingFormat": "text/plain"}
JSON_LD = "1.1"
"""Version of RO-Crate that the profiles rest on."""


class Output(NamedTuple):
    """A file that the workflow made.

    Attributes:
        path: where it is.
        place: where it goes in the crate.
        kind: of its parameter: report, claims, figures, tables or records.
        title: what it shows.
        experiment: whose it is; empty for the page and the claims.
    """

    path: Path
    place: str
    kind: str
    title: str
    experiment: str = ""


KINDS = {
    "report": ("text/html", "the page of the study"),
    "claims": ("text/csv", "verdicts on the papers' claims"),
    "figures": ("image/svg+xml", "one figure per experiment"),
    "tables": ("text/csv", "one table per experiment"),
    "records": ("application/vnd.apache.parquet", "one row per evaluation, one file per experiment"),
}
"""Media types and meanings of what the workflow makes."""


class Results(NamedTuple):
    """Where the results of a run are.

    Attributes:
        folder: of the preset.
        summary: of its page and claims.
        store: of its trials.
    """

    folder: Path
    summary: Path
    store: Path

    @classmethod
    def of(cls, config: Config, home: Path) -> "Results":
        """Return the places of a run's results, as the workflow in `home` has them."""
        results = own(Path(config.results))
        usual = read_config(home / "config" / "config.yaml").studies
        return cls(results / config.preset, results / summary_folder(config, usual), results / "store")

    def outputs(self, run: ResolvedRun) -> Iterator[Output]:
        """Yield what the run made, of what there is."""
        for kind, name in (("report", "report.html"), ("claims", CLAIMS)):
            if (self.summary / name).is_file():
                yield Output(self.summary / name, f"results/{name}", kind, KINDS[kind][1])
        for name, one in run.experiments.items():
            for kind, ending in (("figures", "svg"), ("tables", "csv"), ("records", "parquet")):
                path = self.folder / kind / f"{name}.{ending}"
                if path.is_file():
                    yield Output(path, f"results/{kind}/{path.name}", kind, f"{name}: {one.experiment.title}", name)

    def versions(self, made: Iterable[Output]) -> dict[str, list[str]]:
        """Return the packages that the trials behind some outputs ran with, in all of their versions."""
        found: dict[str, set[str]] = {}
        for one in made:
            keys = read_table(one.path, ["key"])["key"].unique().to_pylist() if one.kind == "records" else []
            for trial in (TrialFolder(self.store, key) for key in keys):
                about = trial.provenance() if trial.done else {}
                packages = {
                    **about.get("packages", {}),
                    "python": about.get("python"),
                    "plumbline": about.get("version"),
                }
                for name, version in packages.items():
                    if version:
                        found.setdefault(name, set()).add(version)
        return {name: sorted(versions) for name, versions in sorted(found.items())}


def write_crate(run: ResolvedRun, home: Path, output: Path, agent: str = "") -> Path:
    """Write the crate of a run, and return where it is.

    Args:
        run: the preset.
        home: the folder with its configuration.
        output: a folder, or a file that ends in .zip.
        agent: who ran it; nobody is named where empty.

    Raises:
        PlumblineError: there are no results, something is at `output` already, or that is in the configuration, which
            the crate contains.
    """
    if output.exists():
        raise PlumblineError(f"{output} is there already: name another file or folder")
    if output.resolve().is_relative_to((home / "config").resolve()):
        raise PlumblineError(f"{output} is in the configuration, which is packed: name a place outside of it")
    crate = run_crate(run, Results.of(run.config, home), home, agent)
    if output.suffix == ".zip":
        with atomic(output) as part:
            crate.write_zip(part)
    else:
        part = output.with_name(f".{output.name}.{token_hex(4)}")
        try:
            crate.write(part)
            part.rename(output)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    return output


def run_crate(run: ResolvedRun, results: Results, home: Path, agent: str = "") -> "ROCrate":
    """Return the crate of a run; see `write_crate`.

    Raises:
        PlumblineError: there are no results of the run's experiments, or a file of them is damaged.
    """
    from rocrate.rocrate import ROCrate

    made = list(results.outputs(run))
    ran = [name for name in run.experiments if any(one.experiment == name for one in made)]
    if not ran:
        raise PlumblineError(f"no results of preset {run.config.preset!r} in {results.folder}: run it first")
    ended = datetime.fromtimestamp(max(one.path.stat().st_mtime for one in made), UTC).replace(microsecond=0)
    crate = ROCrate(version=JSON_LD)
    crate.name = f"plumbline, preset {run.config.preset} on {run.config.data} data"
    crate.description = f"Results of {counted(len(ran), 'experiment')} on Bayesian optimisation, with their workflow."
    crate.license = _entity(crate, LICENCE, "CreativeWork", name="MIT licence", url=LICENCE)
    crate.root_dataset["author"] = _entity(crate, "#developers", "Organization", name="the plumbline developers")
    crate.datePublished = ended
    workflow = _workflow(crate, results.versions(made))
    inputs = _inputs(crate, run, home)
    parameters = {kind: _parameter(crate, f"output-{kind}", "File", about) for kind, (_, about) in KINDS.items()}
    files = [_result(crate, one, parameters[one.kind]) for one in made]
    workflow["input"] = [one["exampleOfWork"] for one in inputs]
    workflow["output"] = [parameters[kind] for kind in dict.fromkeys(one.kind for one in made)]
    action = crate.add_action(
        workflow,
        identifier="#run",
        object=inputs,
        result=files,
        properties={
            "name": f"Run of preset {run.config.preset}",
            "description": f"Snakemake ran the experiments {', '.join(ran)}.",
            "endTime": ended.isoformat(),
            "actionStatus": "http://schema.org/CompletedActionStatus",
        },
    )
    if agent:
        action["agent"] = _entity(crate, "#agent", "Person", name=agent)
    crate.root_dataset["conformsTo"] = [
        _entity(crate, link, "CreativeWork", name=name, version=link.rpartition("/")[2])
        for link, name in PROFILES.items()
    ]
    crate.root_dataset["mentions"] = action
    _readme(crate)
    return crate


def _entity(crate: "ROCrate", identifier: str, kind: str, **properties: Any) -> Any:
    from rocrate.model import ContextEntity

    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))


def _parameter(crate: "ROCrate", name: str, kind: str, about: str) -> Any:
    profile = {"conformsTo": {"@id": f"{BIOSCHEMAS}/FormalParameter/1.0-RELEASE"}}
    return crate.add_formal_parameter(name, kind, identifier=f"#{name}", description=about, properties=profile)


def _workflow(crate: "ROCrate", packages: dict[str, list[str]]) -> Any:
    """Add the workflow with its rules, and return it."""
    home = shipped()
    folder = home / "workflow"
    paths = sorted(path for path in folder.rglob("*") if path.suffix in (".smk", ".rst"))
    environment = crate.add_file(
        home / "envs" / "plumbline.yaml",
        "envs/plumbline.yaml",
        properties={
            "name": "exact versions of what the workflow needs",
            "encodingFormat": "application/yaml",
        },
    )
    properties = {
        "name": "plumbline",
        "version": installed_version("plumbline") or "",
        "license": {"@id": LICENCE},
        "conformsTo": {"@id": f"{BIOSCHEMAS}/ComputationalWorkflow/1.0-RELEASE"},
        **TEXT,
        "hasPart": [
            crate.add_file(path, f"workflow/{path.relative_to(folder)}", properties={"name": path.name, **TEXT})
            for path in paths
        ],
        "softwareRequirements": [environment, *_software(crate, packages)],
    }
    return crate.add_workflow(
        folder / "Snakefile",
        "workflow/Snakefile",
        main=True,
        lang="snakemake",
        lang_version=installed_version("snakemake"),
        properties=properties,
    )


def _software(crate: "ROCrate", packages: dict[str, list[str]]) -> Iterator[Any]:
    """Add the packages that trials ran with, in each of their versions."""
    for name, versions in packages.items():
        for version in versions:
            about = {"name": name, "softwareVersion": version}
            yield _entity(crate, package_url(name, version), "SoftwareApplication", **about)


def package_url(name: str, version: str) -> str:
    """Return the identifier of a package as a package URL (purl); Python itself is no package of Python's index."""
    return f"pkg:{'generic' if name == 'python' else 'pypi'}/{name}@{quote(version)}"


def _inputs(crate: "ROCrate", run: ResolvedRun, home: Path) -> list[Any]:
    """Add the configuration, as its files have it and as the run resolved it."""
    text = json.dumps(run.config.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"
    settings = crate.add_file(
        io.StringIO(text),
        "configuration.json",
        properties={"name": "configuration of the run", "encodingFormat": "application/json"},
    )
    settings["exampleOfWork"] = _parameter(crate, "input-configuration", "File", "preset, studies and data")
    config = crate.add_dataset(
        home / "config", "config/", properties={"name": "methods, tasks, experiments and claims"}
    )
    config["exampleOfWork"] = _parameter(crate, "input-definitions", "Dataset", "the folder config/")
    return [settings, config]


def _readme(crate: "ROCrate") -> None:
    """Add a README that says what is where."""
    text = (
        f"# {crate.name}\n\n{crate.description}\n`ro-crate-metadata.json` says what is what, and\n"
        "`results/report.html` is the place to begin. `config/` and `workflow/` are what was run, and\n"
        "`configuration.json` says which part of it.\n"
    )
    about = {"about": {"@id": "./"}, "encodingFormat": "text/markdown", "name": "README"}
    crate.add_file(io.StringIO(text), "README.md", properties=about)


def _result(crate: "ROCrate", one: Output, parameter: Any) -> Any:
    properties = {"name": one.title, "encodingFormat": KINDS[one.kind][0], "contentSize": str(one.path.stat().st_size)}
    found = crate.add_file(one.path, one.place, properties=properties)
    found["exampleOfWork"] = parameter
    return found

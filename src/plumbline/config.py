"""The configuration of a run: which preset, which studies, on what data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt

from plumbline.catalogue import Kind, catalogue
from plumbline.data.datasets import Dataset, load_datasets
from plumbline.errors import PlumblineError, unknown
from plumbline.looks import Look
from plumbline.options import Options, parse
from plumbline.specs import Chunk
from plumbline.study import Experiment, Output, Preset, Study, load_study, read_yaml


class Config(Options):
    """What `config/*.yaml` and `snakemake --config` may say."""

    preset: Preset = "quick"
    data: Literal["generated", "real"] = Field(
        default="generated", description="real datasets, or the generated stand-ins that need no network"
    )
    mirror: str | None = Field(
        default=None, description="a folder of downloads; PLUMBLINE_MIRROR is used if this is null"
    )
    studies: tuple[str, ...] = Field(min_length=1, description="names of files in config/studies")
    experiments: tuple[str, ...] = Field(default=(), description="build only these; empty for all of the preset")
    chunk: PositiveInt | None = Field(default=None, description="seeds a job; null for all seeds in one job")
    results: str = "results"
    datasets: str = "data"
    allow_incomplete: bool = Field(default=False, description="draw figures although trials failed, and say so in them")


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of the configuration; the committed copy is what Snakemake validates with."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


@dataclass(frozen=True)
class Plan:
    """A configuration with its studies read: everything that the workflow asks of the YAML files."""

    config: Config
    studies: dict[str, Study]
    datasets: dict[str, Dataset]

    @cached_property
    def stand_ins(self) -> Mapping[str, str]:
        """Datasets that are replaced by generated ones in this run: real name to generated name."""
        if self.config.data == "real":
            return {}
        return {entry.stands_in_for: name for name, entry in self.datasets.items() if entry.stands_in_for}

    def experiments(self) -> Iterator[tuple[Study, str, Experiment]]:
        """Yield (study, name, experiment at the preset's scale) of all that this run builds."""
        for study in self.studies.values():
            for name, experiment in study.experiments.items():
                scaled = experiment.at(self.config.preset)
                if scaled is not None and (not self.config.experiments or name in self.config.experiments):
                    yield study, name, scaled

    def study_of(self, name: str) -> Study:
        """Return the study that experiment `name` belongs to; raise PlumblineError if there is none."""
        for study in self.studies.values():
            if name in study.experiments:
                return study
        raise unknown("experiment", name, self.names())

    def experiment(self, name: str) -> Experiment:
        """Return experiment `name` at the preset's scale; raise PlumblineError where the preset leaves it out."""
        experiment = self.study_of(name).experiments[name].at(self.config.preset)
        if experiment is None:
            raise PlumblineError(f"{name} is not part of preset {self.config.preset!r}: choose another with --config")
        return experiment

    def names(self) -> list[str]:
        """Return the names of all experiments, in this preset or not."""
        return [name for study in self.studies.values() for name in study.experiments]

    def looks(self, name: str) -> dict[str, Look]:
        """Return how the methods of experiment `name` look, by label."""
        return {}

    def task_titles(self, name: str) -> dict[str, str]:
        """Return what the tasks of experiment `name` are called in figures."""
        return {}

    def task_parameters(self, name: str) -> dict[str, dict[str, float | str]]:
        """Return the values of what the tasks of experiment `name` vary, by task and name."""
        return {}

    def chunks(self, name: str) -> list[Chunk]:
        """Return the jobs of experiment `name`."""
        return self.study_of(name).chunks(name, self.config.preset, self.stand_ins, self.config.chunk)


def load_plan(config: Mapping[str, Any] | Config, root: Path, source: str = "config") -> Plan:
    """Read the studies that `config` names, from the repository at `root`.

    Raises:
        PlumblineError: what is wrong, with file, field and what is allowed.
    """
    checked = config if isinstance(config, Config) else parse(Config, dict(config), source)
    folder = root / "config" / "studies"
    known = [path.stem for path in sorted(folder.glob("*.yaml"))]
    for name in checked.studies:
        if name not in known:
            raise unknown("study", name, known)
    plan = Plan(
        config=checked,
        studies={name: load_study(folder / f"{name}.yaml") for name in checked.studies},
        datasets=load_datasets(root / "config" / "datasets.yaml"),
    )
    for name in checked.experiments:
        plan.study_of(name)
    for study, name, experiment in plan.experiments():
        source = f"config/studies/{study.study}.yaml: {name}"
        for spec in study.trials(name, checked.preset, plan.stand_ins):
            spec.check(source)
        outputs: dict[Kind, Output | None] = {
            "illustration": experiment.illustration,
            "figure": experiment.figure,
            "table": experiment.table,
        }
        for kind, output in outputs.items():
            if output is not None:
                catalogue().check(kind, output.kind, output.options, source)
        if experiment.figure is not None and not experiment.grid and experiment.illustration is None:
            raise PlumblineError(f"{source}: a figure needs a `grid` of trials or an `illustration`")
    return plan


def read_config(*paths: Path) -> Config:
    """Return the configuration of YAML files, later ones over earlier ones, as Snakemake's --configfile does."""
    merged: dict[str, Any] = {}
    for path in paths:
        content = read_yaml(path) or {}
        if not isinstance(content, dict):
            raise PlumblineError(f"{path}: a configuration is a mapping of names to values")
        merged |= content
    return parse(Config, merged, paths[-1])

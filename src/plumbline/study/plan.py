"""The plan of a run: a configuration with its studies, methods, tasks and datasets read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import parse
from plumbline.core.strict_yaml import line_of, yaml_files
from plumbline.data.datasets import Dataset, load_datasets
from plumbline.data.models import ModelEntry, load_models
from plumbline.store.keys import input_paths
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.study.checks import (
    check_claim,
    check_experiment,
    check_grids,
    check_inputs,
    check_methods_and_tasks,
    check_models,
    check_names_of_files,
    check_replaced,
)
from plumbline.study.experiments import Experiment, Preset, Study, load_study, named_in_studies
from plumbline.study.methods_and_tasks import MethodsAndTasks, load_methods_and_tasks
from plumbline.study.resolved import ResolvedExperiment, ResolvedRun, chunks, job_resources, jobs_by_task, pairs, trials
from plumbline.study.settings import Config
from plumbline.study.targets import RuleNames

IN_STUDIES = "are in the studies of the configuration"
"""What is true of the experiments of a plan; `plumbline experiments` lists those of other studies too."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The checked content of the YAML files; `resolve` expands an experiment, `run` all that a run builds.

    `folder` is that of the studies' files, with those that the configuration leaves out; None where there is none.
    """

    config: Config
    studies: dict[str, Study]
    library: MethodsAndTasks = field(default_factory=MethodsAndTasks)
    datasets: dict[str, Dataset] = field(default_factory=dict)
    models: dict[str, ModelEntry] = field(default_factory=dict)
    folder: Path | None = None

    @cached_property
    def stand_ins(self) -> Mapping[str, str]:
        """Datasets and models that others replace in this run: generated ones, and what the configuration says."""
        generated = {} if self.config.data == "real" else {real: name for name, real in self.generated.items()}
        return {**generated, **self.config.instead}

    @cached_property
    def generated(self) -> Mapping[str, str]:
        """Generated datasets and models, with the real ones whose place they can take."""
        entries: list[tuple[str, Dataset | ModelEntry]] = [*self.datasets.items(), *self.models.items()]
        return {name: entry.stands_in_for for name, entry in entries if entry.stands_in_for}

    def downloads(self, name: str) -> set[str]:
        """Return the names of the files that experiment `name` rests on and that have to be fetched."""
        found: set[str | None] = set()
        for one in self.resolve(name).inputs:
            paths = [f"features/{one}"]
            if (model := self.models.get(one)) is not None:
                paths = input_paths("trainer", model.trainer, model.options)
            for path in map(Path, paths):
                dataset = self.datasets.get(path.stem)
                found.add(path.name if path.parent.name == "raw" else dataset.file if dataset else None)
        return {file for file in found if file}

    @cached_property
    def _scaled(self) -> dict[str, Experiment | None]:
        return {
            name: experiment.at(self.config.preset)
            for study in self.studies.values()
            for name, experiment in study.experiments.items()
        }

    @cached_property
    def _resolved(self) -> dict[str, ResolvedExperiment]:
        return {}

    def resolve(self, name: str) -> ResolvedExperiment:
        """Return experiment `name` at the preset's scale with its trials.

        Raises:
            PlumblineError: there is no such experiment, or the preset leaves it out.
        """
        if name not in self._resolved:
            self._resolved[name] = self._resolve(name)
        return self._resolved[name]

    def _resolve(self, name: str) -> ResolvedExperiment:
        study, experiment = self.study_of(name), self.experiment(name)
        found = tuple(trials(experiment, self.library, self.stand_ins))
        tasks = {spec.task: self.library.tasks[spec.task] for spec, _ in found}
        return ResolvedExperiment(
            study=study,
            name=name,
            experiment=experiment,
            preset=self.config.preset,
            trials=found,
            chunks=tuple(one for spec, seeds in found for one in chunks(spec, seeds, self._seeds_per_job(spec))),
            legends={spec.method.label: self.library.methods[spec.method.label].legend for spec, _ in found},
            titles={label: task.title_with(self.stand_ins) for label, task in tasks.items()},
            parameters={
                label: {key: value for key, value in task.parameters.items() if not isinstance(value, str)}
                for label, task in tasks.items()
            },
            claims=tuple(
                (claim, frozenset().union(*map(self.grid, names)))
                for claim in study.claims.values()
                for names in claim.evidence
                if name in names
            ),
            entries=self.library,
            stand_ins=self.stand_ins,
            generated=self.generated.keys(),
        )

    def built(self) -> list[str]:
        """Names of the experiments that this run builds."""
        wanted = {*(self.config.experiments or self.names())} - {*self.config.without}
        return [name for name in self.names() if self._scaled[name] is not None and name in wanted]

    @cached_property
    def run(self) -> ResolvedRun:
        """All that this run builds."""
        return ResolvedRun(
            config=self.config,
            studies=self.studies,
            experiments={name: self.resolve(name) for name in self.built()},
            entries=self.library,
            models=self.models,
            datasets=self.datasets,
            stand_ins=self.stand_ins,
        )

    def jobs_by_task(self) -> dict[str, list[Chunk]]:
        """Return the chunks of each job of this run, by its name, where a job runs those of a task (`config.job`)."""
        wanted = {chunk.id for one in self.run.experiments.values() for chunk in one.chunks}
        whole = {name: self.resolve(name) for name in self.preset_names()}
        jobs = jobs_by_task(self.library, whole)
        return {name: chunks for name, chunks in jobs.items() if chunks[0].id in wanted}

    def jobs(self) -> dict[str, str]:
        """Return the name of the job that runs a chunk, by the chunk's id: its log and its benchmark are called so."""
        if self.config.job == "task":
            return {chunk.id: job for job, chunks in self.jobs_by_task().items() for chunk in chunks}
        chunks_of = (one.chunks for one in self.run.experiments.values())
        return {one.id: one.path(Path()).with_suffix("").as_posix() for found in chunks_of for one in found}

    def study_of(self, name: str) -> Study:
        """Return the study that experiment `name` belongs to.

        Raises:
            PlumblineError: no study has it.
        """
        for study in self.studies.values():
            if name in study.experiments:
                return study
        raise self.unknown_experiment(name)

    def unknown_experiment(self, name: str) -> PlumblineError:
        """Return the error for an experiment that no study of the configuration has, with the study that has it."""
        for path, names in named_in_studies(self.folder, "experiments", []) if self.folder else ():
            if name in names and path.stem not in self.studies:
                study = path.stem
                return PlumblineError(
                    f"experiment {name!r}: its study {study} is not in `studies`: add it there in config/config.yaml, "
                    f"or take it alone, with `--config 'studies=[{study}]'` (snakemake) or "
                    f"""`--config 'config/config.yaml,{{"studies": ["{study}"]}}'` (plumbline)"""
                )
        return unknown("experiment", name, self.names(), are=IN_STUDIES)

    def experiment(self, name: str) -> Experiment:
        """Return experiment `name` at the preset's scale.

        Raises:
            PlumblineError: no study has it, or the preset leaves it out.
        """
        unscaled = self.study_of(name).experiments[name]
        experiment = self._scaled[name]
        if experiment is None:
            having = [preset for preset in get_args(Preset) if getattr(unscaled, preset) is not None]
            raise PlumblineError(
                f"{name} is not part of preset {self.config.preset!r}; it is of {' and '.join(having) or 'none'}: "
                "choose another with `--configfile` (snakemake) or `--config` (plumbline)"
            )
        return experiment

    def names(self) -> list[str]:
        """Return the names of all experiments, in this preset or not."""
        return [name for study in self.studies.values() for name in study.experiments]

    def preset_names(self) -> list[str]:
        """Return the names of the experiments of this preset, whichever a run builds."""
        return [name for name, scaled in self._scaled.items() if scaled is not None]

    def grid(self, name: str) -> set[tuple[str, str]]:
        """Return the (task, method) of experiment `name` at the preset's scale; none where the preset leaves it out."""
        experiment = self._scaled[name]
        return {pair for block in experiment.grid for pair in pairs(self.library, block)} if experiment else set()

    def _seeds_per_job(self, spec: TrialSpec) -> int | None:
        sizes = [size for size in (self.config.chunk, job_resources(self.library, spec).seeds_per_job) if size]
        return min(sizes, default=None)


def _refuse_doubles(studies: Mapping[str, Study], root: Path) -> None:
    """Raise PlumblineError where two studies have an experiment or a claim of one name: results are filed by it."""
    for kind in ("experiments", "claims"):
        first: dict[str, str] = {}
        for study, content in studies.items():
            for name in getattr(content, kind):
                if name in first:
                    files = [Path("config/studies") / f"{one}.yaml" for one in (study, first[name])]
                    here, there = (f"{file}:{line_of(root / file, kind, name)}" for file in files)
                    raise PlumblineError(f"{here}: {kind.removesuffix('s')} {name} is in {there} too: rename one")
                first[name] = study


def _refuse_other_targets(studies: Mapping[str, Study], root: Path) -> None:
    """Raise PlumblineError where a study or an experiment is called like another target of the workflow."""
    rules = RuleNames.read(root)
    for study, content in studies.items():
        named = {"the study": study, **{f"experiment {name}": name for name in content.experiments}}
        for what, name in named.items():
            other = (
                "a rule of the workflow"
                if rules.have(name)
                else "a study"
                if what != "the study" and name in studies
                else ""
            )
            if other:
                raise PlumblineError(f"config/studies/{study}.yaml: {what} has the name of {other}: rename it")


def load_plan(config: Mapping[str, Any] | Config, root: Path, source: str = "config") -> Plan:
    """Read and check what `config` names, from the repository at `root`.

    Raises:
        PlumblineError: what is wrong, with file, field and what is allowed.
    """
    checked = config if isinstance(config, Config) else parse(Config, dict(config), source)
    folder = root / "config" / "studies"
    known = [path.stem for path in yaml_files(folder)]
    for name in checked.studies:
        if name not in known:
            raise PlumblineError(f"{checked.source('studies', source)}: studies: {unknown('study', name, known)}")
    plan = Plan(
        config=checked,
        studies={name: load_study(folder / f"{name}.yaml") for name in checked.studies},
        library=load_methods_and_tasks(root / "config"),
        datasets=load_datasets(root / "config" / "datasets.yaml"),
        models=load_models(root / "config" / "models.yaml"),
        folder=folder,
    )
    _refuse_doubles(plan.studies, root)
    _refuse_other_targets(plan.studies, root)
    check(plan, source)
    where = {field: checked.source(field, source) for field in ("preset", "experiments", "without")}
    for name in checked.experiments:
        if name not in plan.names():
            raise PlumblineError(f"{where['experiments']}: experiments: {plan.unknown_experiment(name)}")
        plan.experiment(name)
        if name in checked.without:
            raise PlumblineError(f"{where['without']}: {name} is among `experiments`, and among those to do `without`")
    for name in checked.without:
        if name not in plan.names():
            raise PlumblineError(f"{where['without']}: without: {plan.unknown_experiment(name)}")
    if not plan.built():
        raise PlumblineError(
            f"{where['preset']}: nothing to build: no experiment of {', '.join(checked.studies)} is of preset "
            f"{checked.preset!r}{' and left by `without`' if checked.without else ''}: "
            f"an experiment says `{checked.preset}: {{}}` to be"
        )
    return plan


def check(plan: Plan, source: str = "config") -> None:
    """Raise PlumblineError for a name or an option that stands for nothing, before any trial is launched.

    Experiments are checked at all presets: what a typo would drop silently at one is found at each.
    """
    check_methods_and_tasks(plan.library)
    check_names_of_files(plan.datasets, "config/datasets.yaml")
    check_names_of_files(plan.models, "config/models.yaml")
    check_models(plan.models, plan.datasets)
    instead = plan.config.source("instead", source)
    check_replaced(plan.config.instead, plan.models, plan.datasets, f"{instead}: instead")
    check_inputs(plan.library, plan.models, plan.datasets)
    for study in plan.studies.values():
        file = f"config/studies/{study.study}.yaml"
        grids = {}
        for name, experiment in study.experiments.items():
            grids[name] = check_grids(experiment, plan.library, f"{file}: {name}")
            check_experiment(experiment, grids[name], plan.library, f"{file}: {name}")
        for name, claim in study.claims.items():
            for names in claim.evidence:
                check_claim(claim, {one: grids[one] for one in names}, f"{file}: claim {name}")

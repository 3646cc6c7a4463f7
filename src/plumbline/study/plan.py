"""The plan of a run: a configuration with its studies, methods, tasks and datasets read and checked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import parse
from plumbline.core.resources import Resources, greater
from plumbline.data.datasets import Dataset, load_datasets
from plumbline.data.models import ModelEntry, load_models
from plumbline.store.keys import input_paths, trial_inputs
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.study.checks import (
    check_claim,
    check_experiment,
    check_inputs,
    check_methods_and_tasks,
    check_models,
    check_replaced,
)
from plumbline.study.experiments import Block, Experiment, Preset, Study, load_study
from plumbline.study.legends import Legend
from plumbline.study.methods_and_tasks import MethodsAndTasks, load_methods_and_tasks
from plumbline.study.settings import Config


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that the workflow and the analysis ask of the YAML files."""

    config: Config
    studies: dict[str, Study]
    library: MethodsAndTasks = field(default_factory=MethodsAndTasks)
    datasets: dict[str, Dataset] = field(default_factory=dict)
    models: dict[str, ModelEntry] = field(default_factory=dict)

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

    def inputs(self, name: str) -> list[str]:
        """Return the names of the datasets and models that experiment `name` reads."""
        return sorted({Path(path).stem for spec in self.trials(name) for path in trial_inputs(spec)})

    def downloads(self, name: str) -> set[str]:
        """Return the names of the files that experiment `name` rests on and that have to be fetched."""
        found: set[str | None] = set()
        for one in self.inputs(name):
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
    def _chunks(self) -> dict[str, list[Chunk]]:
        return {}

    def experiments(self) -> Iterator[tuple[Study, str, Experiment]]:
        """Yield (study, name, experiment at the preset's scale) of all that this run builds."""
        for study in self.studies.values():
            for name in study.experiments:
                scaled = self._scaled[name]
                chosen = not self.config.experiments or name in self.config.experiments
                if scaled is not None and chosen and name not in self.config.without:
                    yield study, name, scaled

    def study_of(self, name: str) -> Study:
        """Return the study that experiment `name` belongs to; raise PlumblineError if there is none."""
        for study in self.studies.values():
            if name in study.experiments:
                return study
        raise unknown("experiment", name, self.names(), "plumbline experiments")

    def experiment(self, name: str) -> Experiment:
        """Return experiment `name` at the preset's scale; raise PlumblineError where the preset leaves it out."""
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

    def claimed(self) -> list[str]:
        """Return the experiments of this run that a claim rests on."""
        claims = (claim for study in self.studies.values() for claim in study.claims.values())
        claimed = {name for claim in claims for name in claim.experiments}
        return [name for _, name, _ in self.experiments() if name in claimed]

    def trials(self, name: str) -> list[TrialSpec]:
        """Return one spec a (task, method) of experiment `name`, with seed 0; none where the preset leaves it out."""
        return [spec for spec, _ in self._trials(name)]

    def _trials(self, name: str) -> list[tuple[TrialSpec, range]]:
        """Return the same with their seeds: those of methods compared on a task are the same, which pairs them."""
        experiment = self._scaled[self._known(name)]
        if experiment is None:
            return []
        specs = []
        for block in experiment.grid:
            for task_name, label in self._pairs(block):
                task = self.library.tasks[task_name]
                rounds = {} if block.rounds is None else {"rounds": block.rounds}
                spec = TrialSpec.model_construct(
                    problem=task.with_stand_ins(self.stand_ins),
                    method=self.library.methods[label].with_stand_ins(self.stand_ins),
                    seed=0,
                    budget=task.budget.model_copy(update=rounds),
                    diagnostics=experiment.diagnostics,
                    task=task_name,
                )
                specs.append((spec, range(block.seeds or experiment.seeds)))
        return specs

    def chunks(self, name: str) -> list[Chunk]:
        """Return the jobs of experiment `name`."""
        if name not in self._chunks:
            self._chunks[name] = [
                Chunk.model_construct(spec=spec, seeds=tuple(seeds[start : start + step]))
                for spec, seeds in self._trials(name)
                for step in [self._seeds_per_job(spec) or len(seeds)]
                for start in range(0, len(seeds), step)
            ]
        return self._chunks[name]

    def resources(self, spec: TrialSpec) -> Resources:
        """Return what a job of a trial's method and task needs: the greater of both."""
        return greater(self.library.methods[spec.method.label].resources, self.library.tasks[spec.task].resources)

    def legends(self, name: str) -> dict[str, Legend]:
        """Return the look of each method of experiment `name`, in the order of its grid."""
        return {spec.method.label: self.library.methods[spec.method.label].legend for spec in self.trials(name)}

    def task_titles(self, name: str) -> dict[str, str]:
        """Return the title of each task of experiment `name`, in the order of its grid; stand-ins are named."""
        return {spec.task: self.library.tasks[spec.task].title_with(self.stand_ins) for spec in self.trials(name)}

    def task_parameters(self, name: str) -> dict[str, dict[str, float]]:
        """Return the numbers that the tasks of experiment `name` vary: `{"radio-channels-2": {"n_ch": 2}}`."""
        varied = {spec.task: self.library.tasks[spec.task].parameters for spec in self.trials(name)}
        return {
            task: {key: value for key, value in values.items() if not isinstance(value, str)}
            for task, values in varied.items()
        }

    def whole_grid(self, name: str) -> set[tuple[str, str]]:
        """Return the (task, method) of experiment `name` at any preset.

        Raises:
            PlumblineError: a name that is not in the library.
        """
        blocks = self.study_of(name).experiments[name].grids()
        return {pair for block in blocks for pair in self._pairs(block)}

    def _pairs(self, block: Block) -> Iterator[tuple[str, str]]:
        methods = self.library.expand("method", block.methods)
        for task in self.library.expand("task", block.tasks):
            for method in methods:
                yield task, method

    def _seeds_per_job(self, spec: TrialSpec) -> int | None:
        sizes = [size for size in (self.config.chunk, self.resources(spec).seeds_per_job) if size]
        return min(sizes, default=None)

    def _known(self, name: str) -> str:
        self.study_of(name)
        return name


def _refuse_doubles(studies: Mapping[str, Study], folder: str) -> None:
    """Raise PlumblineError where two studies have an experiment or a claim of one name: results are filed by it."""
    for kind in ("experiments", "claims"):
        first: dict[str, str] = {}
        for study, content in studies.items():
            for name in getattr(content, kind):
                if name in first:
                    what = f"{kind.removesuffix('s')} {name}"
                    raise PlumblineError(f"{folder}/{study}.yaml: {what} is in {first[name]}.yaml too: rename one")
                first[name] = study


def load_plan(config: Mapping[str, Any] | Config, root: Path, source: str = "config") -> Plan:
    """Read and check what `config` names, from the repository at `root`.

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
        library=load_methods_and_tasks(root / "config"),
        datasets=load_datasets(root / "config" / "datasets.yaml"),
        models=load_models(root / "config" / "models.yaml"),
    )
    _refuse_doubles(plan.studies, "config/studies")
    check(plan)
    for name in checked.experiments:
        plan.experiment(name)
        if name in checked.without:
            raise PlumblineError(f"{source}: {name} is among `experiments`, and among those to do `without`")
    for name in checked.without:
        if name not in plan.names():
            raise PlumblineError(f"{source}: without: {unknown('experiment', name, plan.names())}")
    return plan


def check(plan: Plan) -> None:
    """Raise PlumblineError for a name or an option that stands for nothing, before any trial is launched.

    Experiments are checked at all presets: what a typo would drop silently at one is found at each.
    """
    check_methods_and_tasks(plan.library)
    check_models(plan.models, plan.datasets)
    check_replaced(plan.config.instead, plan.models, plan.datasets)
    check_inputs(plan.library, plan.models, plan.datasets)
    for study in plan.studies.values():
        source = f"config/studies/{study.study}.yaml"
        for name, experiment in study.experiments.items():
            try:
                grid = plan.whole_grid(name)
            except PlumblineError as error:
                raise PlumblineError(f"{source}: {name}: {error}") from error
            check_experiment(experiment, grid, plan.library, f"{source}: {name}")
        for name, claim in study.claims.items():
            if claim.experiments:
                check_claim(claim, {one: plan.whole_grid(one) for one in claim.experiments}, f"{source}: claim {name}")

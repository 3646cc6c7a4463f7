"""Experiments as a run makes them: grids expanded into trials, with all that the analysis needs beside the records."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from plumbline.core.resources import Resources, greater
from plumbline.data.datasets import Dataset
from plumbline.data.models import ModelEntry
from plumbline.store.keys import trial_inputs
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.study.claims import Claim
from plumbline.study.experiments import Block, Experiment, Preset, Study
from plumbline.study.legends import Legend
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.study.settings import Config

STANDS_IN = "stands in for"
"""Words in the label of data that replace others."""

TaskMethod = tuple[str, str]
"""A task and a method."""

MOST_CHUNKS = 50
"""Chunks of one job at most."""

LONGEST = 90_000
"""Bytes of all chunks of one job at most: they are words of its command line, which Linux limits to 128 kB."""


@dataclass(frozen=True, eq=False)
class ResolvedExperiment:
    """An experiment at the scale of a preset, with its trials.

    Attributes:
        study: the study that it belongs to.
        name: of the experiment.
        experiment: its settings at the scale of the preset.
        preset: name of the preset.
        trials: a spec for each (task, method), with seed 0, and the seeds to run; methods compared on a task have the
            same seeds, which pairs them.
        chunks: the jobs that run these trials.
        legends: legend of each method, by label, in the order of the grid.
        titles: title of each task, in the order of the grid; stand-ins are named.
        parameters: the numbers in which its tasks differ, by task: `{"radio-channels-2": {"n_ch": 2}}`.
        claims: the claims that rest on it, each with the trials of all experiments of the claim at this preset.
        entries: all methods and tasks, those of other experiments too.
        stand_ins: datasets and models that others replace in this run, with their replacements.
        generated: names of generated datasets and models.
    """

    study: Study
    name: str
    experiment: Experiment
    preset: Preset
    trials: tuple[tuple[TrialSpec, range], ...]
    chunks: tuple[Chunk, ...]
    legends: Mapping[str, Legend]
    titles: Mapping[str, str]
    parameters: Mapping[str, Mapping[str, float]]
    claims: tuple[tuple[Claim, frozenset[TaskMethod]], ...]
    entries: MethodsAndTasks
    stand_ins: Mapping[str, str]
    generated: Collection[str]

    @property
    def specs(self) -> list[TrialSpec]:
        """A spec for each (task, method), with seed 0."""
        return [spec for spec, _ in self.trials]

    @property
    def pairs(self) -> set[TaskMethod]:
        """The (task, method) of its trials."""
        return {(spec.task, spec.method.label) for spec in self.specs}

    @property
    def evaluations(self) -> dict[tuple[str, str, int], int]:
        """The number of evaluations of each of its trials, by task, method and seed."""
        return {
            (spec.task, spec.method.label, seed): spec.budget.initial.size + spec.budget.rounds * spec.budget.q
            for spec, seeds in self.trials
            for seed in seeds
        }

    @cached_property
    def inputs(self) -> list[str]:
        """Names of the datasets and models that its trials read."""
        return sorted({Path(path).stem for spec in self.specs for path in trial_inputs(spec)})

    @cached_property
    def data(self) -> str:
        """The datasets and models that its trials read, in words, stand-ins named as such; empty if there are none."""
        real = {stand_in: name for name, stand_in in self.stand_ins.items()}

        def label(name: str) -> str:
            generated = "generated, " if name in self.generated else ""
            return f"{name} ({generated}{STANDS_IN} {real[name]})" if name in real else name

        return ", ".join(map(label, self.inputs))


@dataclass(frozen=True, eq=False)
class ResolvedRun:
    """All that one run builds.

    Attributes:
        config: the configuration of the run.
        studies: by name, those without experiments too.
        experiments: the experiments that the run builds, by name.
        entries: all methods and tasks.
        models: entries of the models that trials may read, by name.
        datasets: entries of the datasets that trials may read, by name.
        stand_ins: datasets and models that others replace in this run, with their replacements.
    """

    config: Config
    studies: Mapping[str, Study]
    experiments: Mapping[str, ResolvedExperiment]
    entries: MethodsAndTasks
    models: Mapping[str, ModelEntry]
    datasets: Mapping[str, Dataset]
    stand_ins: Mapping[str, str]

    @property
    def inputs(self) -> set[str]:
        """Names of the datasets and models that the trials of the run read."""
        return {name for one in self.experiments.values() for name in one.inputs}


def pairs(entries: MethodsAndTasks, block: Block) -> Iterator[TaskMethod]:
    """Yield the (task, method) of a block, families expanded.

    Raises:
        PlumblineError: a name that is in no YAML file.
    """
    methods = entries.expand("method", block.methods)
    for task in entries.expand("task", block.tasks):
        for method in methods:
            yield task, method


def job_resources(entries: MethodsAndTasks, spec: TrialSpec) -> Resources:
    """Return the resources of a job: the greater of those of its method and of its task."""
    return greater(entries.methods[spec.method.label].resources, entries.tasks[spec.task].resources)


def jobs_by_task(entries: MethodsAndTasks, experiments: Mapping[str, ResolvedExperiment]) -> dict[str, list[Chunk]]:
    """Return the chunks of each job, by its name, where a job runs the chunks of a task one after another.

    The chunks of a job are those of the same experiments: a run of one experiment computes nothing for others, and the
    job is the same job in it. They read the same files and ask for the same resources.

    Args:
        entries: methods and tasks, with the resources that they ask for.
        experiments: all of the preset, by name, whichever are built.
    """
    by_id = {chunk.id: chunk for one in experiments.values() for chunk in one.chunks}
    users: dict[str, list[str]] = defaultdict(list)
    for name, one in experiments.items():
        for chunk in one.chunks:
            users[chunk.id].append(name)
    alike: dict[tuple[str, ...], list[Chunk]] = defaultdict(list)
    for id, chunk in by_id.items():
        needs = job_resources(entries, chunk.spec).model_dump_json()
        alike[chunk.spec.task, needs, *users[id], *trial_inputs(chunk.spec)].append(chunk)
    jobs: dict[str, list[Chunk]] = {}
    for chunks in alike.values():
        for job in _parts(chunks):
            task = job[0].spec.task
            number = 1 + sum(name.partition("~")[0] == task for name in jobs)
            jobs[task if number == 1 else f"{task}~{number}"] = job
    return jobs


def _parts(chunks: Iterable[Chunk]) -> list[list[Chunk]]:
    """Cut chunks into jobs, each within MOST_CHUNKS and LONGEST."""
    parts: list[list[Chunk]] = []
    length = 0
    for chunk in chunks:
        words = len(chunk.model_dump_json().encode())
        if not parts or len(parts[-1]) == MOST_CHUNKS or length + words > LONGEST:
            parts.append([])
            length = 0
        parts[-1].append(chunk)
        length += words
    return parts


def trials(
    experiment: Experiment, entries: MethodsAndTasks, stand_ins: Mapping[str, str]
) -> Iterator[tuple[TrialSpec, range]]:
    """Yield a spec for each (task, method) of an experiment, with seed 0, and the seeds to run."""
    for block in experiment.grid:
        for task_name, label in pairs(entries, block):
            task = entries.tasks[task_name]
            rounds = {} if block.rounds is None else {"rounds": block.rounds}
            spec = TrialSpec.model_construct(
                problem=task.with_stand_ins(stand_ins),
                method=entries.methods[label].with_stand_ins(stand_ins),
                seed=0,
                budget=task.budget.model_copy(update=rounds),
                diagnostics=experiment.diagnostics,
                task=task_name,
            )
            first = experiment.first_seed
            yield spec, range(first, first + (block.seeds or experiment.seeds))


def document_rounds(experiments: Iterable[Experiment], entries: MethodsAndTasks) -> dict[TaskMethod, int]:
    """Return the rounds of a document's runs by task and method: those of its own settings, in whichever is longest."""
    whole = (scaled for one in experiments if (scaled := one.at("paper")) is not None)
    found: dict[TaskMethod, int] = {}
    for block in (block for one in whole for block in one.grid):
        for task, method in pairs(entries, block):
            rounds = entries.tasks[task].budget.rounds if block.rounds is None else block.rounds
            found[task, method] = max(rounds, found.get((task, method), 0))
    return found


def chunks(spec: TrialSpec, seeds: range, size: int | None) -> Iterator[Chunk]:
    """Yield the jobs that run `seeds` of one (task, method), at most `size` seeds each."""
    step = size or len(seeds)
    for start in range(0, len(seeds), step):
        yield Chunk.model_construct(spec=spec, seeds=tuple(seeds[start : start + step]))

"""The studies as data: documents, experiments with their grids of trials, figures, tables and claims."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field

from plumbline.errors import PlumblineError, unknown
from plumbline.options import Options, parse
from plumbline.specs import Budget, Chunk, Diagnostics, InitialDesign, MethodRef, ProblemRef, TrialSpec, safe_label

Preset = Literal["quick", "desk", "paper"]
MAX_SEEDS = 10_000


class Resources(Options):
    """What a job of a method asks of a cluster: GPUs, and memory in MB and minutes, which grow with retries."""

    gpu: int = Field(default=0, ge=0, le=8)
    mem_mb: int = Field(default=2_000, ge=100)
    runtime: int = Field(default=60, ge=1)


class MethodEntry(MethodRef):
    """A method of a study: a registered name, its options, and what its jobs need."""

    resources: Resources = Resources()

    def reference(self) -> MethodRef:
        """Return the method without its resources, which do not change what it computes."""
        return MethodRef(name=self.name, options=self.options, label=self.label)


class Block(Options):
    """Problems crossed with methods; what is given here replaces the experiment's own."""

    problems: tuple[ProblemRef, ...] = Field(min_length=1)
    methods: tuple[str, ...] = Field(min_length=1)
    initial: InitialDesign | None = None
    rounds: int | None = Field(default=None, ge=0, le=100_000)
    q: int | None = Field(default=None, ge=1, le=1_000)


class Scale(Options):
    """What a preset changes of an experiment's published settings."""

    seeds: int | None = Field(default=None, ge=1, le=MAX_SEEDS)
    rounds: int | None = Field(default=None, ge=0, le=100_000)
    grid: tuple[Block, ...] | None = None
    diagnostics: Diagnostics | None = None


class Output(Options):
    """A figure, a table or an illustration: its kind, with its options."""

    kind: str
    options: dict[str, Any] = Field(default_factory=dict)


class Experiment(Options):
    """The trials of one figure or table, at the document's settings, and what each preset changes of them.

    A preset that is null leaves the experiment out. Without a grid the experiment needs no trials; what a figure shows
    without any is its illustration.
    """

    title: str
    caption: str = ""
    chosen: str = ""
    """Settings that the document leaves open, and what was chosen."""
    grid: tuple[Block, ...] = ()
    seeds: int = Field(default=1, ge=1, le=MAX_SEEDS)
    budget: Budget | None = None
    diagnostics: Diagnostics = Diagnostics()
    illustration: Output | None = None
    """What is computed for the figure besides trials, or in their place (see `plumbline.illustrations`)."""
    figure: Output | None = None
    table: Output | None = None
    quick: Scale | None = None
    desk: Scale | None = Scale()
    paper: Scale | None = Scale()

    def at(self, preset: Preset) -> "Experiment | None":
        """Return the experiment at the scale of a preset, or None where the preset leaves it out."""
        scale: Scale | None = getattr(self, preset)
        if scale is None:
            return None
        changes: dict[str, Any] = {
            name: value for name in ("seeds", "grid", "diagnostics") if (value := getattr(scale, name)) is not None
        }
        if scale.rounds is not None and self.budget is not None:
            changes["budget"] = self.budget.model_copy(update={"rounds": scale.rounds})
            grid = changes.get("grid", self.grid)
            changes["grid"] = tuple(block.model_copy(update={"rounds": None}) for block in grid)
        return self.model_copy(update=changes)


class ClaimTest(Options):
    """One measurable part of a claim.

    The statistic (see `plumbline.analysis.statistics`) of `metric`, for `method` against `baseline` on `task`, is
    expected to be `direction` than `threshold`. The baseline is on `baseline_task` where one is given: then seeds
    share neither design nor noise, and pairing them neither helps nor harms.
    """

    statistic: str
    metric: str
    task: str
    method: str
    baseline: str | None = None
    baseline_task: str | None = None
    direction: Literal["less", "greater"]
    threshold: float = 0.0
    published: str = ""
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def trials(self) -> tuple[tuple[str, str], ...]:
        """Return the tasks and methods that the test is about."""
        if self.baseline is None:
            return ((self.task, self.method),)
        return ((self.task, self.method), (self.baseline_task or self.task, self.baseline))


class Claim(Options):
    """A published statement, where it stands, and the tests that it must pass."""

    source: str
    statement: str
    experiment: str
    tests: tuple[ClaimTest, ...] = Field(min_length=1)


class Hyperparameter(Options):
    """One row of a search space: CAL, tables 1 and 2."""

    name: str
    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"
    step: float | None = None
    integer: bool = False


class Study(Options):
    """A document's experiments."""

    study: str
    title: str
    citation: str
    methods: dict[Annotated[str, AfterValidator(safe_label)], MethodEntry] = Field(default_factory=dict)
    spaces: dict[str, tuple[Hyperparameter, ...]] = Field(default_factory=dict)
    experiments: dict[str, Experiment]
    claims: dict[str, Claim] = Field(default_factory=dict)
    yaml_anchors: Any = None
    """A place for YAML's own anchors."""

    def trials(self, name: str, preset: Preset, stand_ins: Mapping[str, str]) -> list[TrialSpec]:
        """Return one spec a (problem, method) of experiment `name`, with seed 0; none where the preset leaves it out.

        Args:
            name: the experiment.
            preset: its scale.
            stand_ins: datasets to use instead of others, by name; labels follow the dataset in use.
        """
        experiment = self.experiments[name].at(preset)
        if experiment is None:
            return []
        return [
            TrialSpec(
                problem=_with_stand_in(problem, stand_ins),
                method=self.methods[label].reference().model_copy(update={"label": label}),
                seed=0,
                budget=_budget(experiment, block),
                diagnostics=experiment.diagnostics,
            )
            for block in experiment.grid
            for problem in block.problems
            for label in block.methods
        ]

    def task_labels(self, name: str, preset: Preset, stand_ins: Mapping[str, str]) -> dict[str, str]:
        """Return the name of each task of experiment `name` in this run, by its name without stand-ins."""
        real, used = (self.trials(name, preset, replaced) for replaced in ({}, stand_ins))
        return {one.task: other.task for one, other in zip(real, used, strict=True)}

    def seeds(self, name: str, preset: Preset) -> range:
        """Return the seeds of experiment `name`: the same for each of its methods, which pairs them."""
        experiment = self.experiments[name].at(preset)
        return range(experiment.seeds if experiment else 0)

    def chunks(self, name: str, preset: Preset, stand_ins: Mapping[str, str], size: int | None) -> list[Chunk]:
        """Return the jobs of experiment `name`: `size` seeds each, or all of them in one."""
        seeds = tuple(self.seeds(name, preset))
        step = size or max(len(seeds), 1)
        return [
            Chunk(spec=spec, seeds=seeds[start : start + step])
            for spec in self.trials(name, preset, stand_ins)
            for start in range(0, len(seeds), step)
        ]

    def check(self, source: str) -> None:
        """Raise PlumblineError for a name that stands for nothing, before any trial is launched."""
        for name, experiment in self.experiments.items():
            grids = [
                experiment.grid,
                *(s.grid for s in (experiment.quick, experiment.desk, experiment.paper) if s and s.grid),
            ]
            for block in (block for grid in grids for block in grid):
                for label in block.methods:
                    if label not in self.methods:
                        raise PlumblineError(f"{source}: {name}: {unknown('method', label, self.methods)}")
            if experiment.grid and experiment.budget is None:
                raise PlumblineError(f"{source}: {name}: a grid of trials needs a `budget`")
        for name, claim in self.claims.items():
            if claim.experiment not in self.experiments:
                raise PlumblineError(
                    f"{source}: claim {name}: {unknown('experiment', claim.experiment, self.experiments)}"
                )


def _budget(experiment: Experiment, block: Block) -> Budget:
    assert experiment.budget is not None
    changes: dict[str, Any] = {
        key: value for key in ("initial", "rounds", "q") if (value := getattr(block, key)) is not None
    }
    return experiment.budget.model_copy(update=changes)


def _with_stand_in(problem: ProblemRef, stand_ins: Mapping[str, str]) -> ProblemRef:
    dataset = problem.options.get("dataset")
    options = {**problem.options, "dataset": stand_ins[str(dataset)]} if dataset in stand_ins else problem.options
    renamed = problem.model_copy(update={"options": options})
    return renamed.model_copy(update={"label": renamed.resolved_label()})


def datasets_of(specs: Iterable[TrialSpec]) -> list[str]:
    """Return the datasets whose features the trials read."""
    return sorted({spec.problem.options["dataset"] for spec in specs if "dataset" in spec.problem.options})


def load_study(path: Path) -> Study:
    """Read and check a study.

    Raises:
        PlumblineError: what is wrong, with file, field and what is allowed.
    """
    study = parse(Study, read_yaml(path), path)
    study.check(str(path))
    return study


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file.

    Raises:
        PlumblineError: no such file, or no YAML, with the line.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"no file {path}") from error
    except yaml.YAMLError as error:
        raise PlumblineError(f"{path} is not YAML: {' '.join(str(error).split())}") from error

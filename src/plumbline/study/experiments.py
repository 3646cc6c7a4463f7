"""The studies as data: documents, experiments with their grids of trials, figures, tables and claims."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options, distinct, parse
from plumbline.core.strict_yaml import read_yaml, yaml_files
from plumbline.registry.references import LONGEST_LABEL
from plumbline.store.reference_files import EditionFiles
from plumbline.store.spec import Diagnostics
from plumbline.study.claims import Claim
from plumbline.study.inheritance import inherit

Preset = Literal["quick", "desk", "paper"]
MAX_SEEDS = 10_000


class Block(Options):
    """Tasks crossed with methods; seeds are the same in all blocks, which pairs what is compared.

    Attributes:
        tasks: names of tasks, or of families of them.
        methods: names of methods, or of families of them.
        rounds: in place of the tasks' own.
        seeds: in place of the experiment's.
    """

    tasks: Annotated[tuple[str, ...], AfterValidator(distinct)] = Field(min_length=1)
    methods: Annotated[tuple[str, ...], AfterValidator(distinct)] = Field(min_length=1)
    rounds: int | None = Field(default=None, ge=0, le=100_000)
    seeds: int | None = Field(default=None, ge=1, le=MAX_SEEDS)


class Scale(Options):
    """What a preset changes of an experiment's published settings.

    Attributes:
        seeds: in place of the experiment's and of its blocks'.
        rounds: in place of the tasks' and of the blocks'.
        grid: in place of the experiment's.
        diagnostics: in place of the experiment's.
    """

    seeds: int | None = Field(default=None, ge=1, le=MAX_SEEDS)
    rounds: int | None = Field(default=None, ge=0, le=100_000)
    grid: tuple[Block, ...] | None = Field(default=None, min_length=1)
    diagnostics: Diagnostics | None = None


class Output(Options):
    """A figure, a table or an illustration.

    Attributes:
        kind: the registered name.
        options: those of its kind.
    """

    kind: str
    options: dict[str, Any] = Field(default_factory=dict)


class Experiment(Options):
    """The trials of one figure or table, at the document's settings, and what each preset changes of them.

    A preset that is null leaves the experiment out. Without a grid the experiment needs no trials; what a figure shows
    without any is its illustration.

    Attributes:
        like: another experiment of the file, whose fields this one has but for those given here.
        title: of figure and table.
        caption: what they show.
        chosen: settings that the document leaves open, and what was chosen.
        grid: blocks of tasks and methods.
        seeds: number of trials of each method on each task.
        first_seed: the first of the seeds; an experiment with fresh seeds begins after all seeds that have been run.
        diagnostics: what is checked of the model at every query.
        illustration: what is computed for the figure besides trials, or in their place (see `plumbline.illustrations`).
        figure: its kind, with its options.
        table: its kind, with its options.
        quick: what the preset changes; null leaves the experiment out.
        desk: the same of this preset.
        paper: the same of this preset.
    """

    like: str = ""
    title: str
    caption: str = ""
    chosen: str = ""
    grid: tuple[Block, ...] = ()
    seeds: int = Field(default=1, ge=1, le=MAX_SEEDS)
    first_seed: int = Field(default=0, ge=0, le=1_000_000)
    diagnostics: Diagnostics = Diagnostics()
    illustration: Output | None = None
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
        of_blocks: dict[str, Any] = {} if scale.rounds is None else {"rounds": scale.rounds}
        if scale.seeds is not None and scale.grid is None:
            of_blocks["seeds"] = None  # those of blocks are for the experiment's own scale
        grid = changes.get("grid", self.grid)
        changes["grid"] = tuple(block.model_copy(update=of_blocks) for block in grid)
        return self.model_copy(update=changes)

    def grids(self) -> dict[str, tuple[Block, ...]]:
        """Blocks of its own grid and of each preset's, by the names of the fields: `grid`, `quick.grid`."""
        scales: dict[str, Scale | None] = {"quick": self.quick, "desk": self.desk, "paper": self.paper}
        return {"grid": self.grid, **{f"{name}.grid": one.grid for name, one in scales.items() if one and one.grid}}


class Hyperparameter(Options):
    """One row of a search space: CAL, tables 1 and 2.

    Attributes:
        name: of the hyperparameter.
        low: least value.
        high: greatest value.
        scale: on which it is searched.
        step: between values; null for any value.
        integer: whether values are integers.
    """

    name: str
    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"
    step: float | None = None
    integer: bool = False


def _name_of_experiment(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", name) or len(name) > LONGEST_LABEL:
        raise ValueError(
            f"an experiment's name is letters, digits and . _ -, so that it can name a file, {LONGEST_LABEL} at most: "
            f"{name!r}"
        )
    return name


class Study(Options):
    """A document's experiments and claims.

    Attributes:
        study: name of the file.
        title: title of the document.
        citation: how to cite the document.
        spaces: search spaces of its tables, by name.
        experiments: by the names that `--config experiments=...`, figures and claims use; none where claims are listed
            and not run.
        claims: by name.
    """

    study: str
    title: str
    citation: str
    spaces: dict[str, tuple[Hyperparameter, ...]] = Field(default_factory=dict)
    experiments: dict[Annotated[str, AfterValidator(_name_of_experiment)], Experiment]
    claims: dict[str, Claim] = Field(default_factory=dict)

    def check(self, source: str) -> None:
        """Raise PlumblineError for a claim about no known experiment, or with experiments or a primary test alone."""
        for name, claim in self.claims.items():
            if bool(claim.experiments) != bool(claim.primary):
                raise PlumblineError(
                    f"{source}: claim {name}: give both `experiments` and `primary`, or neither: not run"
                )
            for one in claim.all_experiments:
                if one not in self.experiments:
                    raise PlumblineError(f"{source}: claim {name}: {unknown('experiment', one, self.experiments)}")


def in_atlas(experiment: Experiment, folder: Path) -> bool:
    """Return whether the atlas in `folder` has trials on every task of an experiment."""
    return all(EditionFiles(folder).rounds(task).is_file() for block in experiment.grid for task in block.tasks)


def load_study(path: Path) -> Study:
    """Read and check a study.

    Raises:
        PlumblineError: what is wrong, with file, field and what is allowed.
    """
    content = read_yaml(path)
    if isinstance(content, dict) and isinstance(content.get("experiments"), dict):
        inherited = inherit(content["experiments"], "experiment", lambda name: f"{path}: experiments.{name}")
        content = {**content, "experiments": inherited}
    study = parse(Study, content, path)
    if study.study != path.stem:
        raise PlumblineError(f"{path}: study: it has the name of its file, {path.stem!r} (got {study.study!r})")
    study.check(str(path))
    return study


def named_in_studies(
    folder: Path, part: Literal["experiments", "claims"], unread: list[PlumblineError]
) -> Iterator[tuple[Path, set[str]]]:
    """Yield each file of a study with the names in a part of it, unchecked: one that is being written hinders nobody.

    Args:
        folder: of the studies.
        part: of a study.
        unread: what is wrong with files that are no YAML is appended to it.

    Raises:
        PlumblineError: as `yaml_files` does.
    """
    for path in yaml_files(folder):
        try:
            content = read_yaml(path)
        except PlumblineError as error:
            unread.append(error)
            continue
        names = content.get(part) if isinstance(content, dict) else None
        if isinstance(names, dict):
            yield path, set(map(str, names))

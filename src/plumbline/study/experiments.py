"""The studies as data: documents, experiments with their grids of trials, figures, tables and claims."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options, parse, read_yaml
from plumbline.store.spec import Diagnostics
from plumbline.study.claims import Claim

Preset = Literal["quick", "desk", "paper"]
MAX_SEEDS = 10_000


class Block(Options):
    """Tasks crossed with methods, by their names in the YAML files.

    `rounds` replace the tasks' own, and `seeds` the experiment's: seeds 0, 1, ... are the same in all blocks.
    """

    tasks: tuple[str, ...] = Field(min_length=1)
    methods: tuple[str, ...] = Field(min_length=1)
    rounds: int | None = Field(default=None, ge=0, le=100_000)
    seeds: int | None = Field(default=None, ge=1, le=MAX_SEEDS)


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
        of_blocks: dict[str, Any] = {} if scale.rounds is None else {"rounds": scale.rounds}
        if scale.seeds is not None and scale.grid is None:
            of_blocks["seeds"] = None  # those of blocks are for the experiment's own scale
        grid = changes.get("grid", self.grid)
        changes["grid"] = tuple(block.model_copy(update=of_blocks) for block in grid)
        return self.model_copy(update=changes)

    def grids(self) -> Iterator[Block]:
        """Yield the blocks of its own grid and of all presets'."""
        yield from self.grid
        for scale in (self.quick, self.desk, self.paper):
            yield from (scale.grid if scale else None) or ()


class Hyperparameter(Options):
    """One row of a search space: CAL, tables 1 and 2."""

    name: str
    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"
    step: float | None = None
    integer: bool = False


def _name_of_experiment(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", name):
        raise ValueError(f"an experiment's name is letters, digits and . _ -, so that it can name a file: {name!r}")
    return name


class Study(Options):
    """A document's experiments."""

    study: str
    title: str
    citation: str
    spaces: dict[str, tuple[Hyperparameter, ...]] = Field(default_factory=dict)
    experiments: dict[Annotated[str, AfterValidator(_name_of_experiment)], Experiment]
    """May be empty: a document whose claims are listed, and none of them run."""
    claims: dict[str, Claim] = Field(default_factory=dict)
    yaml_anchors: Any = None
    """A place for YAML's own anchors."""

    def check(self, source: str) -> None:
        """Raise PlumblineError for a claim about an experiment that there is not, or about none."""
        for name, claim in self.claims.items():
            if bool(claim.experiments) != bool(claim.primary):
                raise PlumblineError(
                    f"{source}: claim {name}: give both `experiments` and `primary`, or neither: not run"
                )
            for one in claim.experiments:
                if one not in self.experiments:
                    raise PlumblineError(f"{source}: claim {name}: {unknown('experiment', one, self.experiments)}")


def load_study(path: Path) -> Study:
    """Read and check a study.

    Raises:
        PlumblineError: what is wrong, with file, field and what is allowed.
    """
    study = parse(Study, read_yaml(path), path)
    study.check(str(path))
    return study

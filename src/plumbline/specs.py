"""What a trial is, as data: the problem, the method, the seed and the budget."""

import hashlib
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, Field, PositiveInt, ValidationInfo, field_validator, model_validator

from plumbline.calibration.alpha import Alpha
from plumbline.catalogue import catalogue
from plumbline.errors import unknown
from plumbline.inputs import METHOD
from plumbline.options import Options

Json = dict[str, Any]
_LABEL = re.compile(r"[a-z0-9][a-z0-9._+-]*")
_WITH_DIMENSION = re.compile(r"(?P<family>.+)-(?P<dim>\d+)")


def canonical_json(data: Any) -> str:
    """Return `data` as JSON with sorted keys and no spaces: equal data, equal text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def short_digest(text: str) -> str:
    """Return 16 hex digits that stand for `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def safe_label(label: str) -> str:
    """Return `label` if it can name a file; raise ValueError otherwise."""
    if not _LABEL.fullmatch(label):
        raise ValueError(f"a label is lower-case letters, digits and . _ + -, so that it can name a file: {label!r}")
    return label


class Named(Options):
    """A registered name with its options."""

    name: str
    options: Json = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_a_word(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data


class MethodChoice(Named):
    """A method inside the options of another, which wraps it; one without options may be its name alone."""

    model_config = ConfigDict(json_schema_extra={METHOD: True, "type": ["object", "string"]})


class ProblemRef(Named):
    """A problem; `ackley-20` is short for name `ackley` with option `dim: 20`."""

    @model_validator(mode="after")
    def _split_dimension(self) -> Self:
        match = _WITH_DIMENSION.fullmatch(self.name)
        if match and self.name not in catalogue().problem and match["family"] in catalogue().problem:
            if self.options.get("dim", int(match["dim"])) != int(match["dim"]):
                raise ValueError(f"{self.name!r} with option `dim: {self.options['dim']}`: which of the two is meant?")
            object.__setattr__(self, "name", match["family"])
            object.__setattr__(self, "options", {**self.options, "dim": int(match["dim"])})
        return self

    def typed(self) -> str:
        """Return the problem as one would type it, without its other options: `ackley-20`."""
        return f"{self.name}-{self.options['dim']}" if "dim" in self.options else self.name


class MethodRef(Named):
    """A method; `label` is what figures and folders call it, its name where none is given."""

    label: str = Field(default="", validate_default=True)

    @field_validator("label")
    @classmethod
    def _is_safe_in_paths(cls, label: str, info: ValidationInfo) -> str:
        return safe_label(label) if label else info.data.get("name", "")


class InitialDesign(Options):
    """How a trial begins: `size` points by a registered `design` (see `plumbline.designs`) with its `options`."""

    design: str
    size: int = Field(ge=1, le=100_000)
    options: Json = Field(default_factory=dict)

    @field_validator("design")
    @classmethod
    def _is_known(cls, design: str) -> str:
        known = catalogue().design
        if design not in known:
            raise ValueError(str(unknown("design", design, known)))
        return design


class Snapshots(Options):
    """Pictures of the model on a grid of a one-dimensional problem: after which rounds, on how many points."""

    rounds: tuple[PositiveInt, ...]
    points: int = Field(default=201, ge=2, le=10_000)


class Diagnostics(Options):
    """What is checked at every query before it is observed.

    Attributes:
        alphas: miscoverage levels of the sets whose coverage and width are recorded.
        holdout: number of fresh uniform points to check coverage on; for a tabular problem its own holdout rows are
            used and this only switches the check on.
        holdout_fraction: instead, check coverage on this random share of the data so far, drawn anew each round, with
            the model fitted to the rest (CBO, figures 7 and 11).
        ends: record coverage where each climb or chain of the search ended, by noise of its own and a model of all data
            under no shift: what CBO's code calls query coverage.
        widths: record how wide sets are at the problem's optimum and on average over the fresh holdout points.
        reach: record how long sets are in units of credible intervals: medians over the fresh holdout points that have
            an observation within this distance, in sides of the box, and over those that have none.
        recommend: note what the point is worth that a method holds to be the optimum once the budget is spent; for
            problems of one objective.
        snapshots: pictures of the model for figures of one-dimensional runs.
    """

    alphas: tuple[Alpha, ...] = (0.5, 0.2, 0.1, 0.05)
    holdout: int = Field(default=0, ge=0, le=100_000)
    holdout_fraction: float = Field(default=0.0, ge=0.0, lt=1.0)
    ends: bool = False
    widths: bool = False
    reach: float = Field(default=0.0, ge=0.0)
    recommend: bool = False
    snapshots: Snapshots | None = None

    @model_validator(mode="after")
    def _one_holdout(self) -> Self:
        for name, wanted in ("widths", self.widths), ("reach", self.reach):
            if wanted and not self.holdout:
                raise ValueError(f"`{name}` is about `holdout` fresh points: say how many")
        if self.holdout and self.holdout_fraction:
            raise ValueError("`holdout` (fresh points) or `holdout_fraction` (of the data): which of the two is meant?")
        return self


class Budget(Options):
    """How long a trial goes on: `rounds` of `q` evaluations after the initial design."""

    initial: InitialDesign
    rounds: int = Field(ge=0, le=100_000)
    q: int = Field(default=1, ge=1, le=1_000)


class TrialSpec(Options):
    """One method on one task with one seed.

    Attributes:
        problem: what is optimised.
        method: what proposes.
        seed: of every random stream.
        budget: how long it goes on.
        diagnostics: what is checked on the way.
        task: what figures and folders call problem and budget together; where it is empty, the problem as one would
            type it. What is computed depends neither on it nor on the method's label.
    """

    problem: ProblemRef
    method: MethodRef
    seed: int = Field(ge=0, le=2**31 - 1)
    budget: Budget
    diagnostics: Diagnostics = Diagnostics()
    task: str = Field(default="", validate_default=True)

    @field_validator("task")
    @classmethod
    def _is_safe_in_paths(cls, task: str, info: ValidationInfo) -> str:
        if task:
            return safe_label(task)
        return info.data["problem"].typed() if "problem" in info.data else ""

    def canonical(self) -> str:
        """Return the spec as canonical JSON; defaults of the method's and problem's own options are not spelt out."""
        return canonical_json(self.model_dump(mode="json"))

    def with_seed(self, seed: int) -> "TrialSpec":
        """Return the same trial with another seed."""
        return self.model_copy(update={"seed": seed})

    def check(self, source: str) -> None:
        """Raise PlumblineError where the problem or the method is unknown or has other options."""
        catalogue().check("problem", self.problem.name, self.problem.options, source)
        catalogue().check("method", self.method.name, self.method.options, source)


class Chunk(Options):
    """Seeds of one (task, method) that one job runs, one after another."""

    spec: TrialSpec
    seeds: tuple[int, ...]

    @cached_property
    def id(self) -> str:
        """Return the digest that names the chunk's files."""
        return short_digest(canonical_json(self.model_dump(mode="json")))

    def path(self, trials: Path) -> Path:
        """Return the file of the job's records in the folder `trials`; its folders are for people who browse."""
        return trials / self.spec.task / self.spec.method.label / f"{self.id}.parquet"

    def specs(self) -> list[TrialSpec]:
        """Return one spec a seed."""
        return [self.spec.with_seed(seed) for seed in self.seeds]

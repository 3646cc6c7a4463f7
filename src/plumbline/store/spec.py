"""What a trial is, as data: the problem, the method, the seed and the budget."""

from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import Field, PositiveInt, ValidationInfo, field_validator, model_validator

from plumbline.core.alpha import Alpha
from plumbline.core.options import Options
from plumbline.registry.catalogue import catalogue
from plumbline.registry.references import InitialDesign, MethodRef, ProblemRef, canonical_json, safe_label, short_digest


class Snapshots(Options):
    """Pictures of the model on a grid of a one-dimensional problem.

    Attributes:
        rounds: after which rounds.
        points: of the grid.
    """

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

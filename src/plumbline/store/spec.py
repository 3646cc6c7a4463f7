"""The spec of a trial: the problem, the method, the seed and the budget, as data."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, PositiveInt, ValidationInfo, field_validator, model_validator

from plumbline.core.alpha import Alpha
from plumbline.core.options import Options, distinct
from plumbline.core.words import counted
from plumbline.registry.catalogue import catalogue
from plumbline.registry.references import InitialDesign, MethodRef, ProblemRef, canonical_json, safe_label, short_digest


class Snapshots(Options):
    """Snapshots of the model on a grid of a one-dimensional problem.

    Attributes:
        rounds: the rounds with a snapshot.
        points: number of grid points.
    """

    rounds: Annotated[tuple[PositiveInt, ...], AfterValidator(distinct)] = Field(min_length=1)
    points: int = Field(default=201, ge=2, le=10_000)


class Diagnostics(Options):
    """Diagnostics of forecasts at every query before its observation.

    Attributes:
        alphas: miscoverage levels of the sets whose coverage and width are recorded.
        holdout: number of fresh uniform points for a check of coverage; for a tabular problem the check uses its own
            holdout rows, and any positive number switches it on.
        holdout_fraction: instead, check coverage on this random share of the data so far, drawn anew each round, with
            the model fitted to the rest (CBO, figures 7 and 11).
        ends: record coverage at the ends of the search's climbs or chains, with separate noise and a model of all data
            without shift, after the query coverage of CBO's code.
        widths: record the width of sets at the problem's optimum and its mean over the fresh holdout points.
        reach: record the length of sets in units of credible intervals: medians over the fresh holdout points with an
            observation within this distance, in sides of the box, and over those without.
        recommend: note the value at the method's estimated optimum once the budget is spent; for problems of one
            objective.
        snapshots: snapshots of the model for figures of one-dimensional runs.
    """

    alphas: Annotated[tuple[Alpha, ...], AfterValidator(distinct)] = Field(default=(0.5, 0.2, 0.1, 0.05), min_length=1)
    holdout: int = Field(default=0, ge=0, le=100_000)
    holdout_fraction: float = Field(default=0.0, ge=0.0, lt=1.0)
    ends: bool = False
    widths: bool = False
    reach: float = Field(default=0.0, ge=0.0)
    recommend: bool = False
    snapshots: Snapshots | None = None

    @model_validator(mode="after")
    def _one_holdout(self) -> Self:
        for name, value in ("widths", self.widths), ("reach", self.reach):
            if value and not self.holdout:
                raise ValueError(f"`{name}` is about `holdout` fresh points: say how many")
        if self.holdout and self.holdout_fraction:
            raise ValueError("`holdout` (fresh points) or `holdout_fraction` (of the data): which of the two is meant?")
        return self

    def check_rounds(self, rounds: int) -> None:
        """Raise ValueError for snapshots of rounds after the last one of a trial of `rounds`."""
        last = max(self.snapshots.rounds) if self.snapshots else 0
        if last > rounds:
            raise ValueError(f"diagnostics.snapshots.rounds: round {last} of a trial of {counted(rounds, 'round')}")


class Budget(Options):
    """The budget of a trial: `rounds` of `q` evaluations after the initial design."""

    initial: InitialDesign
    rounds: int = Field(ge=0, le=100_000)
    q: int = Field(default=1, ge=1, le=1_000)


Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]


class TrialSpec(Options):
    """One method on one task with one seed.

    Attributes:
        problem: the problem.
        method: the method.
        seed: seed of every random stream.
        budget: initial design and number of rounds.
        diagnostics: diagnostics of the forecasts.
        task: name of problem and budget together in figures and folders; if empty, the problem as one would type it.
            The results depend neither on it nor on the method's label.
    """

    problem: ProblemRef
    method: MethodRef
    seed: Seed
    budget: Budget
    diagnostics: Diagnostics = Diagnostics()
    task: str = Field(default="", validate_default=True)

    @field_validator("task")
    @classmethod
    def _is_safe_in_paths(cls, task: str, info: ValidationInfo) -> str:
        if task:
            return safe_label(task)
        return info.data["problem"].typed() if "problem" in info.data else ""

    @model_validator(mode="after")
    def _snapshots_are_of_its_rounds(self) -> Self:
        self.diagnostics.check_rounds(self.budget.rounds)
        return self

    def with_seed(self, seed: int) -> "TrialSpec":
        """Return the same trial with another seed."""
        return self.model_copy(update={"seed": seed})

    def check(self, source: str) -> None:
        """Raise PlumblineError where the problem or the method is unknown or has other options."""
        catalogue().check("problem", self.problem.name, self.problem.options, source)
        catalogue().check("method", self.method.name, self.method.options, source)


class Chunk(Options):
    """The seeds of one (task, method) in one job."""

    spec: TrialSpec
    seeds: Annotated[tuple[Seed, ...], AfterValidator(distinct)] = Field(min_length=1)

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

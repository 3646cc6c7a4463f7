"""Claims and the tests that decide about them."""

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from plumbline.core.options import Options
from plumbline.study.inheritance import merge

_AFTER = "@"


def shortened(metric: str, share: float) -> str:
    """Return what a metric is called after a share of the rounds."""
    return f"{metric}{_AFTER}{share:g}"


def whole(name: str) -> tuple[str, float]:
    """Return the metric and the share that `shortened` named; a share of 1 of a metric by its own name."""
    metric, _, share = name.partition(_AFTER)
    return metric, float(share or 1.0)


Of = Literal["last", "mean", "median"]
"""Which number of a run: its last value, or the mean or the median of those of its rounds."""


class Measure(Options):
    """What one or several tests measure and expect.

    Each run comes to a number of `metric`: its `last` value, or the `mean` or the `median` of its rounds. The
    `statistic` over seeds (see `plumbline.statistics.over_seeds`) of these numbers, of their `mean` or their `median`
    where there is a choice, is expected to be `less` or `greater` than `threshold`, or `within` a `range`: alike.

    Attributes:
        name: what is tested, in a few words.
        statistic: what is computed over seeds.
        metric: what is measured of each run.
        of: which number of a run.
        location: of the numbers of seeds.
        direction: what is expected of the statistic.
        threshold: what it is expected to be less or greater than.
        range: what it is expected to be within.
        options: of the statistic.
        after: the method's runs end after this share of their rounds, the baseline's at their end: whether it is
            so much faster.
        published: what the document has, where a text, a table or a figure says it.
    """

    name: str = ""
    statistic: str
    metric: str
    of: Of = "last"
    after: float | None = Field(default=None, gt=0, lt=1)
    location: Literal["mean", "median"] = "mean"
    direction: Literal["less", "greater", "within"]
    threshold: float = 0.0
    range: tuple[float, float] | None = None
    published: str = ""
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _a_range_or_a_threshold(self) -> Self:
        if (self.direction == "within") != (self.range is not None):
            raise ValueError("`range: [low, high]` is for `direction: within`, and that needs one")
        if self.range is not None and self.range[0] >= self.range[1]:
            raise ValueError("the `range` ends where it begins, or before")
        return self

    @model_validator(mode="after")
    def _a_last_value(self) -> Self:
        if self.after is not None and self.of != "last":
            raise ValueError("`after` is of the `last` value")
        return self


class ClaimTest(Measure):
    """One measurable part of a claim: a method's statistic on a task, against a baseline or alone.

    The baseline is of `baseline_task` where one is given: then seeds share neither design nor noise, and pairing them
    neither helps nor harms. The tasks of `also` are judged together with `task`: their seeds in one sample, or side by
    side, as the statistic has it.
    """

    task: str
    method: str
    baseline: str | None = None
    baseline_task: str | None = None
    also: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the tasks that are judged together."""
        return (self.task, *self.also)

    @property
    def trials(self) -> tuple[tuple[str, str], ...]:
        """Return the tasks and methods that the test is about: of each task the method, and after it the baseline."""
        baseline = () if self.baseline is None else (self.baseline,)
        first = tuple((self.baseline_task or self.task, name) for name in baseline)
        others = tuple((task, name) for task in self.also for name in (self.method, *baseline))
        return ((self.task, self.method), *first, *others)

    @property
    def runs(self) -> tuple[tuple[str, str, str], ...]:
        """Return the tasks, the methods and what their runs are measured by."""
        return tuple((task, method, self.measured_by(method)) for task, method in self.trials)

    def measured_by(self, method: str) -> str:
        """Return the metric of a method's runs, with the share of the rounds after which it is looked at."""
        return self.metric if self.after is None or method != self.method else shortened(self.metric, self.after)


class ClaimTests(Measure):
    """Tests as they are written: `task` or several `tasks`, and a `method`, or several `pairs` [method, baseline].

    Attributes:
        like: `primary`, in a secondary test: it has the fields of the claim's (first) primary test, but for `parts` and
            for those given here; null takes a field away.
        task: one task.
        tasks: several, a test each.
        method: what is tested.
        baseline: what it is compared with, where the statistic compares.
        baseline_task: of the baseline, where that is another.
        pairs: several [method, baseline], a test each.
        also: tasks that are judged together with each `task`, in one sample.
        cases: in the place of all these, [task, method, baseline] of each test, where tasks have methods of their own.
        parts: further tests of the same claim, where the document's sentence says several things.
    """

    like: Literal["", "primary"] = ""
    task: str | None = None
    tasks: tuple[str, ...] = ()
    method: str | None = None
    baseline: str | None = None
    baseline_task: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    also: tuple[str, ...] = ()
    cases: tuple[tuple[str, str, str], ...] = ()
    parts: tuple["ClaimTests", ...] = ()

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.cases:
            if self.task or self.tasks or self.method or self.baseline or self.pairs or self.also or self.baseline_task:
                raise ValueError("`cases` [task, method, baseline] stand alone")
            return self
        if bool(self.task) == bool(self.tasks):
            raise ValueError("give `task`, or several `tasks`")
        if bool(self.method) == bool(self.pairs) or (self.pairs and self.baseline):
            raise ValueError("give a `method` and maybe its `baseline`, or several `pairs` of both")
        if self.also and self.baseline_task:
            raise ValueError("`also` is of tasks that have a baseline of their own: leave `baseline_task` out")
        return self

    def own(self) -> Iterator[ClaimTest]:
        """Yield the single tests of what comes first: all pairs on the first task, then on the next."""
        shared = {name: getattr(self, name) for name in (*Measure.model_fields, "baseline_task", "also")}
        crossed = product(self.tasks or (self.task,), self.pairs or ((self.method, self.baseline),))
        for task, method, baseline in self.cases or ((task, *pair) for task, pair in crossed):
            yield ClaimTest.model_validate({**shared, "task": task, "method": method, "baseline": baseline})

    def each(self) -> Iterator[ClaimTest]:
        """Yield each single test: its own, then those of `parts`."""
        yield from self.own()
        for part in self.parts:
            yield from part.each()


class Stuck(Options):
    """When a run of a claim counts as stuck.

    Attributes:
        metric: by which it is judged.
        above: it is stuck if it ends with more than this.
    """

    metric: str
    above: float


class Beyond(Options):
    """Why no trial can decide about a claim.

    Attributes:
        verdict: in the place of one by trials.
        because: the reason.
    """

    verdict: Literal["cannot fail", "does not apply"]
    because: str


def _like(primary: dict[str, Any], test: Any) -> Any:
    if not (isinstance(test, dict) and test.get("like")):
        return test
    return {name: value for name, value in merge(primary, test).items() if value is not None}


def _alternatives(written: Any) -> Any:
    return (written,) if isinstance(written, dict | ClaimTests) else written


class Claim(Options):
    """A published statement, where it stands, and the test that decides about it; without experiments it is not run.

    Attributes:
        source: section and figure.
        statement: what is claimed, in our words.
        sentence: the document's own, in short.
        seeds: the document's; 0 where it says nothing, or has none.
        experiments: whose trials it rests on, all of them together.
        primary: the test that decides, with a part for each task and pair. Of several the first is taken whose trials a
            preset runs in whole.
        secondary: tests that are shown beside it, and count for nothing.
        stuck: of runs, counted beside the verdict.
        beyond: why no experiment of ours can decide about it: its test_results stand, its verdict says which.
    """

    source: str
    statement: str
    sentence: str = ""
    seeds: int = Field(default=0, ge=0)
    experiments: tuple[str, ...] = ()
    primary: Annotated[
        tuple[ClaimTests, ...],
        BeforeValidator(_alternatives, json_schema_input_type=ClaimTests | tuple[ClaimTests, ...]),
    ] = ()
    secondary: tuple[ClaimTests, ...] = ()
    stuck: Stuck | None = None
    beyond: Beyond | None = None

    @model_validator(mode="before")
    @classmethod
    def _like_primary(cls, data: Any) -> Any:
        """Give secondary tests that are `like: primary` its fields."""
        if not (isinstance(data, dict) and isinstance(data.get("secondary"), list)):
            return data
        first = next(iter(_alternatives(data.get("primary")) or ()), None)
        if not isinstance(first, dict):
            return data
        shared = {name: value for name, value in first.items() if name != "parts"}
        return {**data, "secondary": [_like(shared, test) for test in data["secondary"]]}

    @property
    def tests(self) -> tuple[ClaimTest, ...]:
        """Return all single tests, the primary ones first."""
        return tuple(test for tests in (*self.primary, *self.secondary) for test in tests.each())

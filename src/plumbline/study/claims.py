"""Claims and the tests that decide about them."""

from collections.abc import Container, Iterator
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from plumbline.core.errors import PlumblineError, shown
from plumbline.core.nested import merge
from plumbline.core.options import Options, distinct
from plumbline.study.verdicts import Undecidable, Verdict

_AFTER = "@"


def truncated_metric(metric: str, share: float) -> str:
    """Return the name of a metric after a share of the rounds: `regret@0.5`."""
    return f"{metric}{_AFTER}{share:g}"


def split_metric(name: str) -> tuple[str, float]:
    """Return the metric and the share of rounds in a name by `truncated_metric`; the share is 1 for a plain metric.

    Raises:
        PlumblineError: the share is no number above 0 and up to 1.
    """
    metric, after, written = name.partition(_AFTER)
    if not after:
        return metric, 1.0
    try:
        share = float(written)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise PlumblineError(f"metric {shown(name)}: a share of the rounds follows {_AFTER}, above 0 and up to 1")
    return metric, share


Names = Annotated[tuple[str, ...], AfterValidator(distinct)]

Of = Literal["last", "mean", "median"]
"""Summary of a run: its last value, or the mean or the median of the values of its rounds."""


class Size(Options):
    """A size of an effect: a value of the tested statistic, or a ratio of means where the statistic is a difference.

    Attributes:
        value: of the statistic.
        ratio: the method's mean divided by the baseline's, in place of `value`.
    """

    value: float | None = None
    ratio: float | None = Field(default=None, gt=0)

    @property
    def given(self) -> float | None:
        """The number, of whichever kind; None where there is none."""
        return self.value if self.ratio is None else self.ratio

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if self.value is not None and self.ratio is not None:
            raise ValueError("give a `value` of the statistic or a `ratio` of means, not both")
        return self


class Published(Size):
    """What the document says of the tested quantity: in words, and as a size where it gives one.

    Attributes:
        words: its own, or what is read off a figure.
        source: section, table or figure; the claim's own where it is empty.
        error: how far off the size may be: half a unit of the last digit of a number in the text, and what one may be
            wrong by in reading a figure, its error bars included.
        evaluations: of a run, after which the document has this size; null for its end.
    """

    words: str = ""
    source: str = ""
    error: float = Field(default=0.0, ge=0)
    evaluations: int | None = Field(default=None, ge=1)

    def __str__(self) -> str:
        return f"{self.words} ({self.source})" if self.source else self.words


def _in_words(written: Any) -> Any:
    return {"words": written} if isinstance(written, str) else written


class Criterion(Options):
    """The statistic of one or several tests, and the value that the claim expects.

    Each run is summarised by one value of `metric`: the `last`, or the `mean` or the `median` of its rounds. The
    `statistic` over seeds (see `plumbline.statistics.over_seeds`) takes the `mean` or the `median` of these values. The
    claim expects it to be `less` or `greater` than `threshold`, or `within` a `range` (equivalence).

    Attributes:
        name: the tested quantity, in a few words.
        statistic: its name; it is computed over seeds.
        metric: the metric of each run.
        of: the summary of a run.
        location: mean or median over seeds.
        direction: of the statistic's expected value.
        threshold: that the statistic is expected to be less or greater than.
        range: that the statistic is expected to be within.
        options: of the statistic.
        after: share of the rounds after which the method's runs are read, the baseline's at their end: tests whether
            the method is faster.
        published: the document's value, where a text, a table or a figure gives it: words, or a size too.
        matters: the least effect that we hold to matter: half of the document's size where it gives one.
        floor: a method that is no search at all, such as random search: likeness shows nothing unless these runs show
            that this method is not alike.
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
    published: Annotated[Published, BeforeValidator(_in_words, json_schema_input_type=Published | str)] = Published()
    matters: Size | None = None
    floor: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _a_range_or_a_threshold(self) -> Self:
        if (self.direction == "within") != (self.range is not None):
            raise ValueError("`range: [low, high]` is for `direction: within`, and that needs one")
        if self.range is not None and self.range[0] >= self.range[1]:
            raise ValueError("the `range` ends where it begins, or before")
        return self

    @property
    def published_size(self) -> Size | None:
        """The least effect that agrees with the document's size; None where it gives none."""
        given, error = self.published.given, self.published.error
        if given is None:
            return None
        least = given + error if self.direction == "less" else given - error
        return Size(value=least) if self.published.ratio is None else Size(ratio=least)

    @model_validator(mode="after")
    def _sizes_on_the_claimed_side(self) -> Self:
        for name, size in (("published", self.published_size), ("matters", self.matters)):
            if size is None:
                continue
            if self.direction == "within":
                raise ValueError(f"`{name}` has a size: a range has none, only `words`")
            if size.given is None:
                raise ValueError(f"`{name}`: give a `value` or a `ratio`")
            none = self.threshold if size.ratio is None or self.statistic == "ratio" else 1.0
            if (size.given >= none) if self.direction == "less" else (size.given <= none):
                raise ValueError(f"`{name}`, less its error, is not beyond the threshold: give its `words` alone")
        return self

    @model_validator(mode="after")
    def _a_last_value(self) -> Self:
        if self.after is not None and self.of != "last":
            raise ValueError("`after` is of the `last` value")
        return self


class ClaimTest(Criterion):
    """One test of a claim: a method's statistic on a task, against a baseline or alone.

    With `baseline_task` the baseline is read on another task: seeds then share neither design nor noise, and pairing
    neither helps nor harms. The tasks of `also` are tested together with `task`: their seeds form one sample, or stand
    side by side, depending on the statistic.
    """

    task: str
    method: str
    baseline: str | None = None
    baseline_task: str | None = None
    also: Names = ()

    @model_validator(mode="after")
    def _each_task_once(self) -> Self:
        if self.task in self.also:
            raise ValueError(f"`also` has {self.task!r}, the task itself: its seeds would count twice")
        return self

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that are tested together."""
        return (self.task, *self.also)

    @property
    def middle(self) -> float:
        """The middle of the range, or else the threshold."""
        return sum(self.range) / 2 if self.range is not None else self.threshold

    @property
    def trials(self) -> tuple[tuple[str, str], ...]:
        """The (task, method) that the test needs: of each task the method, then the baseline."""
        baseline = () if self.baseline is None else (self.baseline,)
        first = tuple((self.baseline_task or self.task, name) for name in baseline)
        others = tuple((task, name) for task in self.also for name in (self.method, *baseline))
        return ((self.task, self.method), *first, *others)

    @property
    def runs(self) -> tuple[tuple[str, str, str], ...]:
        """The (task, method, metric) of the runs that the test needs, and of those of its floor."""
        floors = () if self.floor is None else tuple((task, self.floor) for task in self.tasks)
        return tuple((task, method, self.metric_of(method)) for task, method in (*self.trials, *floors))

    def metric_of(self, method: str) -> str:
        """Return the metric of a method's runs, with the share of the rounds after which it is read."""
        return self.metric if self.after is None or method != self.method else truncated_metric(self.metric, self.after)


class ClaimTests(Criterion):
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
        cases: in place of all these, [task, method, baseline] of each test, where tasks have methods of their own.
        parts: further tests of the same claim, where the document's sentence says several things.
    """

    like: Literal["", "primary"] = ""
    task: str | None = None
    tasks: Names = ()
    method: str | None = None
    baseline: str | None = None
    baseline_task: str | None = None
    pairs: Annotated[tuple[tuple[str, str], ...], AfterValidator(distinct)] = ()
    also: Names = ()
    cases: Annotated[tuple[tuple[str, str, str], ...], AfterValidator(distinct)] = ()
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
        if both := {*self.also} & {self.task, *self.tasks}:
            raise ValueError(f"`also` has {min(filter(None, both))!r}, a task itself: its seeds would count twice")
        return self

    def own(self) -> Iterator[ClaimTest]:
        """Yield the single tests of what comes first: all pairs on the first task, then on the next."""
        shared = {name: getattr(self, name) for name in (*Criterion.model_fields, "baseline_task", "also")}
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
        metric: whose final value is compared.
        above: the greatest value of a run that is not stuck.
    """

    metric: str
    above: float


class Beyond(Options):
    """Why no trial can decide about a claim.

    Attributes:
        verdict: in place of one by trials.
        because: the reason.
    """

    verdict: Undecidable
    because: str


def _like(primary: dict[str, Any], test: Any) -> Any:
    if not (isinstance(test, dict) and test.get("like")):
        return test
    return {name: value for name, value in merge(primary, test).items() if value is not None}


def _alternatives(written: Any) -> Any:
    return (written,) if isinstance(written, dict | ClaimTests) else written


class Former(Options):
    """A verdict that we gave before.

    Attributes:
        verdict: what it was.
        why: the reason for which it changed.
    """

    verdict: Verdict
    why: str


class InWords(Options):
    """The reference verdict in words; `**bold**` is the only markup.

    Attributes:
        holds: what of the claim holds; empty where nothing does.
        rest: what does not hold, or is open; empty where all holds.
    """

    holds: str = ""
    rest: str = ""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not (self.holds or self.rest):
            raise ValueError("say in words what `holds`, or what does not: the `rest`")
        return self

    @property
    def said(self) -> dict[str, str]:
        """What is said, by what it is about."""
        return {about: words for about, words in zip(SAID, (self.holds, self.rest), strict=True) if words}


SAID = ("what holds", "what does not hold, or is open")
"""What the words about a verdict are about, in their order."""


class Claim(Options):
    """A published statement, where it stands, and the test that decides about it; without experiments it is not run.

    Attributes:
        source: section and figure.
        statement: what is claimed, in our words.
        sentence: the document's own, in short.
        seeds: the document's; 0 where it says nothing, or has none.
        experiments: whose trials it rests on, all of them together.
        fresh: experiments with seeds that nobody has seen; once all have reference results, it rests on them alone.
        primary: the test that decides, with a part for each task and pair. If several are given, the first counts whose
            trials a preset runs completely.
        secondary: tests that are shown beside it, without influence on the verdict.
        stuck: of runs, counted beside the verdict.
        beyond: why none of our experiments can decide about it; the test results are shown all the same.
        former: the verdict that we gave before, where it changed.
        in_words: what `holds` by the reference verdict, and the `rest`; another run is shown without these words.
    """

    source: str
    statement: str
    sentence: str = ""
    seeds: int = Field(default=0, ge=0)
    experiments: Names = ()
    fresh: Names = ()
    primary: Annotated[
        tuple[ClaimTests, ...],
        BeforeValidator(_alternatives, json_schema_input_type=ClaimTests | tuple[ClaimTests, ...]),
    ] = ()
    secondary: tuple[ClaimTests, ...] = ()
    stuck: Stuck | None = None
    beyond: Beyond | None = None
    former: Former | None = None
    in_words: InWords | None = None

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
    def evidence(self) -> tuple[Names, ...]:
        """The sets of experiments that it may rest on, one at a time."""
        return tuple(names for names in (self.experiments, self.fresh) if names)

    @property
    def all_experiments(self) -> Names:
        """The experiments of all its sets."""
        return (*self.experiments, *self.fresh)

    def rests_on(self, there: Container[str]) -> Names:
        """The experiments that it rests on, given those that are `there`."""
        return self.fresh if self.fresh and all(one in there for one in self.fresh) else self.experiments

    @property
    def tests(self) -> tuple[ClaimTest, ...]:
        """All single tests, the primary ones first."""
        return tuple(test for tests in (*self.primary, *self.secondary) for test in tests.each())

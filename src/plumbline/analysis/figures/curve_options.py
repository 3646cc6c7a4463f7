"""What curves are of: rows of panels, a metric each, and columns, a task each."""

from itertools import chain
from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from plumbline.analysis.evidence.bands import BandKind, in_words
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.kinds import Names, OutputOptions
from plumbline.core.options import Options

FIRST = "first"
"""The first method of each panel, in the place of a method's name."""


class Row(Options):
    """One row of panels.

    Attributes:
        metric: what is drawn.
        label: its axis.
        nominal: the metric that says what it should be, dotted.
        optimum: whether the task's optimum is drawn, dotted, where it is known.
        minimise: whether the row is turned upside down, as documents that minimise have it.
        limits: of the axis.
        logarithmic: whether that is logarithmic.
        methods: those of the panels that are drawn in this row; all where none are named.
        minus: a method whose value is taken off each other's, seed by seed: who is ahead, where bands overlap; `first`
            is the first of each panel.
        against: evaluations, or minutes since the initial design: what evaluations and all that the method did took.
        band: in place of the figure's: medians of shares of a few points jump.
    """

    metric: str
    label: str
    minus: str | None = None
    nominal: str | None = None
    optimum: bool = False
    minimise: bool = False
    limits: tuple[float | None, float | None] | None = None
    logarithmic: bool = False
    methods: tuple[str, ...] = ()
    against: Literal["evaluations", "minutes"] = "evaluations"
    band: BandKind | None = None

    @model_validator(mode="after")
    def _differences_are_of_evaluations(self) -> Self:
        if self.against == "minutes" and (self.minus or self.nominal):
            raise ValueError("`minus` and `nominal` are drawn against evaluations")
        return self


class Published(Options):
    """A line that others published, beside ours.

    Attributes:
        legend: whose it is.
        metric: the rows that it belongs to.
        evaluations: where it is known, initial ones counted.
        values: of the metric there, in our direction: problems are maximised.
        error: to either side within which they could be read off; drawn as a band.
    """

    legend: str
    metric: str
    evaluations: tuple[float, ...] = Field(min_length=2)
    values: tuple[float, ...]
    error: NonNegativeFloat = 0.0

    @model_validator(mode="after")
    def _a_value_each(self) -> Self:
        if len(self.values) != len(self.evaluations):
            raise ValueError(f"{len(self.evaluations)} evaluations and {len(self.values)} values: a value each")
        return self


class Panel(Options):
    """One column of panels: a task, and methods on it; all that have trials where none are named.

    Attributes:
        task: what methods ran on.
        methods: which.
        title: of the column; the task's own where it is empty.
        published: lines of others.
        costs: of the outcomes, in their order: lines go along what was spent, the initial design counted, where they
            are given.
    """

    task: str
    methods: tuple[str, ...] = ()
    title: str = ""
    published: tuple[Published, ...] = ()
    costs: tuple[PositiveFloat, ...] = ()


class CurvesOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        rows: of panels.
        panels: columns; a column a task with all of its methods where none are named.
        band: quantiles over seeds about the median, the median with its 95% interval, the mean with one standard error,
            or the mean with its 70% interval. Where a panel has more than four methods, whose bands would hide the
            lines, intervals are drawn at the ends of the lines only, beside all panels.
        quantiles: of the band of that name.
        queries: count queries only, without the initial design.
        across: panels side by side at most, where there is one row: more go on below. As many as are easily read where
            it is not given.
    """

    rows: tuple[Row, ...] = Field(default=(Row(metric="best_f", label="best value"),), min_length=1)
    panels: tuple[Panel, ...] = ()
    band: BandKind = "quantiles"
    quantiles: tuple[float, float] = (0.2, 0.8)
    queries: bool = False
    across: PositiveInt | None = None

    reads = ("optimum",)
    draws_curves = True

    @model_validator(mode="after")
    def _published_lines_have_a_row(self) -> Self:
        metrics = {row.metric for row in self.rows}
        for line in (line for panel in self.panels for line in panel.published):
            if line.metric not in metrics:
                raise ValueError(f"the published line {line.legend!r} is of {line.metric}, which no row draws")
        return self

    def names(self) -> Names:
        """Return the names in rows and panels."""
        methods = [*(panel.methods for panel in self.panels), *(row.methods for row in self.rows)]
        methods += [(row.minus,) for row in self.rows if row.minus not in (None, FIRST)]
        besides = ["round_seconds"] if self.timed else []
        # What was not observed cost nothing: the columns of `best_y` say what was.
        besides += ["best_y"] if any(panel.costs for panel in self.panels) else []
        return Names(
            tuple(panel.task for panel in self.panels),
            tuple(chain.from_iterable(methods)),
            (*(name for row in self.rows for name in (row.metric, row.nominal) if name), *besides),
        )

    @property
    def timed(self) -> bool:
        """Whether a row is drawn against time."""
        return any(row.against == "minutes" for row in self.rows)

    def shown(self, evidence: Evidence) -> str:
        """Return what lines and bands are; of rows with a band of their own, after their words."""
        own = {row.band: " ".join(row.label.split()) for row in self.rows if row.band not in (None, self.band)}
        parts = [in_words(self.band, self.quantiles)]
        parts += [f"{in_words(kind, self.quantiles)} ({label})" for kind, label in own.items() if kind]
        from_means = evidence.filed is not None and evidence.filed.rounds.empty
        differences = from_means and any(row.minus for row in self.rows)
        caveat = " (of differences at the end, where runs are on file)" if differences else ""
        return f"{', '.join(parts)} over seeds{caveat}"

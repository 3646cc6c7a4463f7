"""What curves are of: rows of panels, a metric each, and columns, a task each."""

from itertools import chain
from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from plumbline.analysis.evidence.bands import BandKind, in_words
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.kinds import Names, OutputOptions
from plumbline.core.options import Options

FIRST = "first"
"""The first method of each panel, in place of a method's name."""


class Row(Options):
    """One row of panels.

    Attributes:
        metric: the metric that is drawn.
        label: label of the axis.
        nominal: the metric with its nominal value, drawn dotted.
        optimum: whether the optimum of the task is drawn, dotted, if it is known.
        minimise: whether the row is drawn for minimisation, as in papers that minimise.
        limits: limits of the vertical axis.
        logarithmic: whether the vertical axis is logarithmic.
        methods: the methods of the panels that are drawn in this row; by default all.
        minus: a method whose value is subtracted from that of each other method, seed by seed, to show who is ahead
            where bands overlap; `first` is the first method of each panel.
        against: the horizontal axis: evaluations, or minutes since the initial design, for evaluations and the method
            together.
        band: overrides the figure's `band`, for metrics such as shares of few points, whose medians jump.
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
        legend: label of the line in the legend.
        metric: the metric of the rows in which it is drawn.
        evaluations: numbers of evaluations at which it is known, including the initial design.
        values: values of the metric there, in our direction: problems are maximised.
        error: reading error to either side, drawn as a band.
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
        task: the task.
        methods: the methods; by default all of the task.
        title: title of the column; by default the title of the task.
        published: lines read off a publication.
        costs: cost of an evaluation of each outcome; if given, the horizontal axis is the cost spent, including the
            initial design.
    """

    task: str
    methods: tuple[str, ...] = ()
    title: str = ""
    published: tuple[Published, ...] = ()
    costs: tuple[PositiveFloat, ...] = ()


def of_means(evidence: Evidence) -> bool:
    """Return whether the evidence has means by round in place of single runs."""
    return evidence.reference is not None and evidence.reference.rounds.empty


class CurvesOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        rows: the rows of panels.
        panels: the columns of the figure; by default one for each task, with all of its methods.
        band: quantiles over seeds about the median, the median with its 95% interval, the mean with one standard error,
            or the mean with its 70% interval. Where a panel has more than four methods, whose bands would hide the
            lines, intervals are drawn at the ends of the lines only, beside all panels.
        quantiles: the two quantiles of the band `quantiles`.
        queries: count queries only, without the initial design.
        across: the largest number of panels side by side if there is one row; more continue below. By default as many
            as are easily read.
        dashed: what dashed lines are, in words of the legend; the dashed line of a method then has no entry beside the
            solid one of the same colour.
    """

    rows: tuple[Row, ...] = Field(default=(Row(metric="best_f", label="best value"),), min_length=1)
    panels: tuple[Panel, ...] = ()
    band: BandKind = "quantiles"
    quantiles: tuple[float, float] = (0.2, 0.8)
    queries: bool = False
    across: PositiveInt | None = None
    dashed: str = ""

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

    def drawable(self, evidence: Evidence) -> Self:
        """Return these options with bands that the evidence has.

        Where the reference results have only means by round, these and their standard errors take the place of medians
        and quantiles.
        """
        if not of_means(evidence):
            return self
        band, *bands = (
            kind if kind in (None, "mean-interval") else "mean-error"
            for kind in (self.band, *(row.band for row in self.rows))
        )
        rows = (row.model_copy(update={"band": kind}) for row, kind in zip(self.rows, bands, strict=True))
        return self.model_copy(update={"band": band, "rows": tuple(rows)})

    def shown(self, evidence: Evidence) -> str:
        """Return what lines and bands are; of rows with a band of their own, after their words."""
        drawn = self.drawable(evidence)
        own: dict[BandKind, list[str]] = {}
        for row in drawn.rows:
            if row.band not in (None, drawn.band):
                own.setdefault(row.band, []).append(" ".join(row.label.split()))
        parts = [in_words(drawn.band, drawn.quantiles)]
        parts += [f"{in_words(kind, drawn.quantiles)} ({'; '.join(labels)})" for kind, labels in own.items()]
        differences = of_means(evidence) and any(row.minus for row in self.rows)
        caveat = "; of differences at the end only, where single runs are stored" if differences else ""
        others = (
            "; grey lines without markers: read off a publication"
            if any(panel.published for panel in self.panels)
            else ""
        )
        return f"{', '.join(parts)} over seeds{caveat}{others}"

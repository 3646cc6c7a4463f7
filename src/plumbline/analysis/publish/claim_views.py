"""Claims as the report shows them: words, tests with their places in a forest plot, and what filters look at."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from plumbline.analysis.publish.claim_pages import (
    Part,
    Titles,
    common,
    compared,
    measured,
    small_samples,
    tests_by_words,
)
from plumbline.analysis.publish.pages import listed
from plumbline.analysis.publish.supported_values import supports
from plumbline.analysis.publish.verdict_tables import effect, seeds_of
from plumbline.analysis.verdicts.criterion import describe
from plumbline.analysis.verdicts.rule import counts
from plumbline.analysis.verdicts.verdict import by_number
from plumbline.study.claims import Claim, ClaimTest
from plumbline.study.experiments import Study

REACH = 3.0
"""End of the axis of the forest plot, in standard deviations of a seed."""


class Lane(NamedTuple):
    """Where a test is drawn in its line of the forest plot: from 0 at the left to 100 at the right.

    Attributes:
        estimate: of the marker.
        low, high: ends of the interval.
        claimed: ends of the values that support the claim.
        published: the document's value of the statistic, where it gives one.
    """

    estimate: float
    low: float
    high: float
    claimed: tuple[float, float]
    published: float | None


@dataclass(frozen=True)
class PartView(Part):
    """A single test with its looks.

    Attributes:
        methods: legends of method and baseline.
        lane: its line of the forest plot; None where the study has the test no longer.
    """

    methods: tuple[str, ...]
    lane: Lane | None

    @property
    def words(self) -> str:
        """The test in a sentence; names of metrics stand between backticks."""
        on = f", on {self.tasks}" if self.tasks else ""
        return f"{self.measured}{on}; {self.row['budget']}"


@dataclass(frozen=True)
class ClaimView:
    """A claim that was judged.

    Attributes:
        name: of the claim.
        study: of the claim.
        claim: as its study states it; None where the study has it no longer.
        first: its first row in the table of claims.
        primary: parts of the test that decides.
        secondary: tests beside it.
        sentences: what they measure, by role.
        measured: estimate in words.
        seeds: of the primary test in words.
        counts: how many parts hold, fail and are open, in words.
        few: how often samples as small as the document's look as claimed, in words.
        doubts: about the verdict, with what would settle them.
    """

    name: str
    study: Study
    claim: Claim | None
    first: Mapping[Any, Any]
    primary: tuple[PartView, ...]
    secondary: tuple[PartView, ...]
    sentences: Mapping[str, list[str]]
    measured: str
    seeds: str
    counts: str
    few: str
    doubts: tuple[Mapping[Any, Any], ...]

    @property
    def verdict(self) -> str:
        """The verdict."""
        return str(self.first["verdict"])

    @property
    def experiments(self) -> list[str]:
        """Names of the experiments that it rests on."""
        return str(self.first["experiments"]).split()

    @property
    def methods(self) -> list[str]:
        """Legends of the methods of its tests."""
        return list(dict.fromkeys(method for test in (*self.primary, *self.secondary) for method in test.methods))

    @property
    def scales(self) -> list[str]:
        """Presets of its runs."""
        return str(self.first["preset"]).split(", ")


def claim_views(
    studies: Sequence[Study], claims: pd.DataFrame, doubts: pd.DataFrame, titles: Titles
) -> list[tuple[Study, list[ClaimView]]]:
    """Return the claims that rest on the experiments of each study, as one counts them; studies without are left out.

    Args:
        studies: in the order of the page.
        claims: a table of claims.
        doubts: about them.
        titles: of methods and tasks.
    """
    names = sorted(claims["claim"].unique(), key=by_number)
    rows_of = {name: claims[claims["claim"] == name] for name in names}
    found = [
        (
            study,
            [
                claim_view(study, name, rows, doubts, titles)
                for name, rows in rows_of.items()
                if set(rows["experiments"].iloc[0].split()).intersection(study.experiments)
            ],
        )
        for study in studies
    ]
    return [(study, views) for study, views in found if views]


def claim_view(study: Study, name: str, rows: pd.DataFrame, doubts: pd.DataFrame, titles: Titles) -> ClaimView:
    """Return one claim, from its rows in the table of claims."""
    claim = study.claims.get(name)
    primary = rows[rows["role"] == "primary"]
    first = rows.iloc[0]
    about = doubts[[name in names.split() for names in doubts["claims"]]] if len(doubts) else doubts
    parts = {role: part_views(claim, rows[rows["role"] == role], titles) for role in ("primary", "secondary")}
    return ClaimView(
        name,
        study,
        claim,
        first.to_dict(),
        parts["primary"],
        parts["secondary"],
        sentences={
            role: common([one for one in some if one.lane], claim) if claim else [] for role, some in parts.items()
        },
        measured=effect(primary),
        seeds=seeds_of(primary),
        counts=counts(primary["outcome"]),
        few=small_samples(first.where(first.index != "seeds", primary["seeds"].min())),
        doubts=tuple(about.to_dict("records")),
    )


def part_views(claim: Claim | None, rows: pd.DataFrame, titles: Titles) -> tuple[PartView, ...]:
    """Return the tests of one role; of one that the study has no longer only the words of its row are known."""
    tests = tests_by_words(claim) if claim else {}
    return tuple(part_view(tests.get(describe(row)), row, titles) for row in rows.to_dict("records"))


def part_view(test: ClaimTest | None, row: dict[Any, Any], titles: Titles) -> PartView:
    """Return one test from its row in the table of claims."""
    if test is None:
        return PartView(describe(row), "", describe(row), supports(row), row, (), None)
    method, baseline = compared(test, titles)
    both = method if test.baseline is None else f"{method} against {baseline}"
    legends = tuple(titles.method(name) for name in (test.method, test.baseline) if name)
    tasks = listed(titles.tasks(test.tasks))
    return PartView(both, tasks, measured(test, method, baseline), supports(row), row, legends, lane(test, row))


def lane(test: ClaimTest, row: Mapping[str, Any]) -> Lane:
    """Return the line of a test in the forest plot.

    The unit is the standard deviation of a seed, of shares one half. Zero is the threshold, with the claimed side at
    the right, or the middle of the claimed range. Where all seeds agree, what is not at the threshold is at the end of
    the axis.
    """
    low, high = test.range or (test.threshold, math.inf)
    zero, sign = test.middle, 1 if test.range or test.direction != "less" else -1
    unit = row["deviation"] if 0 < row["deviation"] < math.inf else math.nan

    def place(value: float) -> float:
        away = sign * (value - zero)
        if math.isnan(unit) or math.isinf(away):
            away = 0.0 if away == 0 or math.isnan(away) else math.copysign(REACH, away)
        else:
            away /= unit
        return round(50 + 50 * min(max(away / REACH, -1), 1), 1)

    claimed = (place(low), place(high)) if test.range else (50.0, 100.0)
    ends = sorted((place(row["low"]), place(row["high"])))
    published = test.published.given if test.published.ratio is None or test.statistic == "ratio" else None
    return Lane(place(row["ours"]), ends[0], ends[1], claimed, None if published is None else place(published))

"""A page a published claim: its sentence, test, verdict, power and doubts, and room for the authors' reply."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import relpath
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.analysis.publish.markdown import escaped
from plumbline.analysis.publish.pages import listed, render, write_pages
from plumbline.analysis.publish.reference_verdicts import read_claims, read_doubts
from plumbline.analysis.publish.supported_values import supports
from plumbline.analysis.publish.verdict_tables import NOT_JUDGED, seeds_of
from plumbline.analysis.verdicts.criterion import criterion, describe
from plumbline.analysis.verdicts.rule import counts
from plumbline.analysis.verdicts.small_sample_rates import DRAWS
from plumbline.analysis.verdicts.verdict import by_number
from plumbline.metrics.registry import find_metric
from plumbline.store.reference_files import CLAIMS, drawn
from plumbline.study.claims import Claim, ClaimTest
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.study.resolved import STANDS_IN
from plumbline.study.verdicts import MEANINGS

NOT_RUN = "not run"

STATES = {
    **MEANINGS,
    NOT_JUDGED: "Experiments are planned, and they are not among the reference results yet.",
    NOT_RUN: "No experiment of this study tests the claim.",
}
"""Verdicts, and what stands where there is none, in words."""

STATISTICS = {
    "difference": "the {location} over seeds of {number}, {method} minus {baseline}",
    "ratio": "the ratio of mean {number} over seeds, {method} divided by {baseline}",
    "value": "the {location} over seeds of {number}, {method}",
    "distance-difference": (
        "the {location} over seeds of the distance of {number} from {level}, {method} minus {baseline}"
    ),
    "spread-difference": "the {location} distance over seeds of {number} from its median, {method} minus {baseline}",
    "share-above": "the share of seeds with {number} above {level}, {method}",
    "share-lower": "the share of seeds in which {number} is lower with {method} than with {baseline}",
    "share-higher": "the share of seeds in which {number} is higher with {method} than with {baseline}",
    "consistent-wins": (
        "the share of seeds in which one of {method} and {baseline} has the higher {number} on every task"
    ),
}
"""Statistics over seeds in words."""

NUMBERS = {
    "last": "final `{metric}`",
    "mean": "`{metric}` averaged over the rounds of a run",
    "median": "the median `{metric}` over the rounds of a run",
}
"""The number that a run gives, in words."""


class Titles:
    """What readers call methods and tasks; a name that is no longer an entry stands for itself."""

    def __init__(self, entries: MethodsAndTasks, stand_ins: Mapping[str, str] | None = None) -> None:
        """Titles of tasks on their own data, or on those that stand in for them."""
        self.entries = entries
        self.stand_ins = stand_ins or {}

    def method(self, name: str) -> str:
        """The legend of a method."""
        return self.entries.methods[name].legend.label if name in self.entries.methods else name

    def task(self, name: str) -> str:
        """The title of a task."""
        return self.entries.tasks[name].title_with(self.stand_ins) if name in self.entries.tasks else name

    def methods(self, names: tuple[str, ...]) -> list[str]:
        """Legends of several methods, followed by the names where two share a legend."""
        legends = [self.method(name) for name in names]
        return [
            f"{legend} ({name})" if legends.count(legend) > 1 else legend
            for name, legend in zip(names, legends, strict=True)
        ]

    def tasks(self, names: tuple[str, ...]) -> list[str]:
        """Titles of several tasks, followed by the names where two share a title."""
        titles = [self.task(name) for name in names]
        return [
            f"{title} ({name})" if titles.count(title) > 1 else title for name, title in zip(names, titles, strict=True)
        ]


@dataclass(frozen=True)
class Part:
    """A single test with what its runs gave.

    Attributes:
        compared: method and baseline in words.
        tasks: in words.
        measured: the statistic in words, of the method and the baseline.
        supports: the values that support the claim.
        row: of the table of claims.
    """

    compared: str
    tasks: str
    measured: str
    supports: str
    row: dict[Any, Any]

    @property
    def stuck(self) -> list[tuple[str, int, int]]:
        """Each method, how many of its runs were stuck, and of how many; empty where the claim does not say when."""
        return [(name, few, every) for name, few, every in json.loads(self.row["stuck"] or "[]")]


def measured(test: ClaimTest, method: str, baseline: str) -> str:
    """The statistic of a test in words."""
    number = NUMBERS[test.of].format(metric=test.metric)
    if test.after is not None:
        number += f" (of {method}: after {test.after:.0%} of its rounds)"
    level = test.options.get("level", 0)
    words = STATISTICS[test.statistic]
    if test.statistic == "ratio" and test.location == "median":
        words = "the median over seeds of the ratio of {number}, {method} divided by {baseline}"
    return words.format(location=test.location, number=number, method=method, baseline=baseline, level=f"{level:g}")


def compared(test: ClaimTest, titles: Titles) -> tuple[str, str]:
    """Method and baseline in words, each with its task where these differ."""
    names = titles.methods((test.method,) if test.baseline is None else (test.method, test.baseline))
    method, baseline = names[0], names[-1]
    if test.baseline_task is not None:
        method, baseline = titles.method(test.method), titles.method(str(test.baseline))
        first, second = titles.tasks((test.task, test.baseline_task))
        return f"{method} on {first}", f"{baseline} on {second}"
    return method, baseline


def tests_by_words(claim: Claim) -> dict[str, ClaimTest]:
    """The tests of a claim, by the sentences that `describe` makes of their rows."""
    return {describe(criterion(test)): test for test in claim.tests}


def parts(claim: Claim, rows: pd.DataFrame, titles: Titles) -> list[Part]:
    """The single tests of a claim that were judged, in the order of the table of claims.

    Where several compare methods of the same titles, each says which entry its method is.

    Args:
        claim: with its tests.
        rows: of the table of claims, of one role.
    """
    tests = tests_by_words(claim)
    found = []
    for row in rows.to_dict("records"):
        test = tests[describe(row)]
        method, baseline = compared(test, titles)
        both = method if test.baseline is None else f"{method} against {baseline}"
        tasks = listed(titles.tasks(test.tasks))
        words = measured(test, escaped(method), escaped(baseline))
        found.append(Part(both, tasks, words, supports(row), row))
    shown = Counter((part.compared, part.tasks, part.measured) for part in found)
    return [
        replace(part, compared=f"{part.compared} ({part.row['method']})")
        if shown[part.compared, part.tasks, part.measured] > 1
        else part
        for part in found
    ]


def common(found: Sequence[Part], claim: Claim) -> list[str]:
    """The distinct measurements of several parts, with methods left out where parts compare several pairs."""
    tests = tests_by_words(claim)
    kinds: dict[tuple[str, str], list[str]] = {}
    for part in found:
        general = measured(tests[describe(part.row)], "the first method", "the second method")
        kinds.setdefault((general, part.supports), []).append(part.measured)
    return [
        f"{own[0] if len(set(own)) == 1 else general}; the claim needs a value {_in(supported)}"
        for (general, supported), own in kinds.items()
    ]


def _in(values: str) -> str:
    return values if values.startswith(("above", "below")) else f"from {values}"


def metrics_of(found: list[Part]) -> dict[str, str]:
    """The metrics of several tests, each with its definition."""
    return {name: find_metric(name).summary for name in dict.fromkeys(part.row["metric"] for part in found)}


def small_samples(first: pd.Series) -> str:
    """How often so few seeds as the document has look as claimed, in words; empty where nobody asked."""
    if pd.isna(first["pattern"]):
        return ""
    seeds = f"{first['paper_seeds']:.0f} seed{'s' if first['paper_seeds'] != 1 else ''}"
    text = (
        f"The published result rests on {seeds} and ours on {first['seeds']:.0f}. "
        f"We drew {DRAWS:,} samples of {seeds} from ours: "
        f"{first['pattern']:.1%} of them look as claimed, that is, every estimate lies on the claimed side, "
        "however uncertain it is."
    )
    if pd.isna(first["chance"]):
        return text
    return (
        f"{text} If the compared methods were the same, which we imitate by exchanging their results at random within "
        f"each seed, {first['chance']:.1%} would. The closer these two rates are, the less so small a sample says "
        "about the claim."
    )


def limits(first: pd.Series, claim: Claim) -> list[str]:
    """Where our experiments differ in scale or data from the document's: points that may speak for its authors."""
    found = []
    if first["missing"]:
        found.append(f"We have not run {listed(first['missing'].split())}.")
    if first["seeds"] < claim.seeds:
        found.append(f"We have {first['seeds']:.0f} seeds where the published result has {claim.seeds}.")
    if "desk" in first["preset"]:
        found.append("Some runs are at the reduced scale of the desk preset: fewer rounds or seeds than published.")
    if STANDS_IN in first["data"]:
        found.append(f"Some data are not those of the publication: {first['data']}.")
    return found


def stuck_in_words(found: Sequence[Part], titles: Titles) -> list[str]:
    """How many runs of each method were stuck in each of several tests; methods of one title are named by entry."""
    lines = [(part.tasks, part.stuck) for part in found if part.stuck]
    names = tuple(dict.fromkeys(name for _, entries in lines for name, *_ in entries))
    shown = dict(zip(names, titles.methods(names), strict=True))
    return [
        f"{tasks}: {', '.join(f'{shown[name]} {few} of {every}' for name, few, every in entries)}."
        for tasks, entries in lines
    ]


def claim_page(
    entries: MethodsAndTasks,
    study: Study,
    name: str,
    rows: pd.DataFrame,
    doubts: pd.DataFrame,
    reference: str,
    there: set[str],
    reply: str,
) -> str:
    """The page of one claim, as Markdown.

    Args:
        entries: all methods and tasks.
        study: of the claim.
        name: of the claim.
        rows: of the table of claims, of this claim; empty where it is not judged.
        doubts: about this claim's verdict.
        reference: the folder of reference results, from the page.
        there: experiments whose figure is among them.
        reply: of the authors; may be empty.
    """
    claim, titles = study.claims[name], Titles(entries)
    roles = {role: parts(claim, rows[rows["role"] == role], titles) for role in ("primary", "secondary")}
    first, decisive = rows.iloc[0] if len(rows) else None, rows[rows["role"] == "primary"]
    if first is not None:  # small samples are drawn from the seeds that all parts have
        first = first.where(first.index != "seeds", decisive["seeds"].min())
    verdict = verdict_of(claim, rows)
    return render(
        "claim.md.j2",
        name=name,
        claim=claim,
        title=re.sub(r" \([^)]*\)", "", claim.statement).rstrip(".;"),
        where=re.sub(r"^[A-Z]+, ", "", claim.source),
        study=study,
        verdict=verdict,
        meaning=STATES[verdict],
        primary=roles["primary"],
        secondary=roles["secondary"],
        tests={role: common(found, claim) for role, found in roles.items()},
        metrics=metrics_of([*roles["primary"], *roles["secondary"]]),
        stuck=stuck_in_words(roles["primary"], titles),
        counted=counts([part.row["outcome"] for part in roles["primary"]]),
        small_samples="" if first is None else small_samples(first),
        limits=[] if first is None else limits(first, claim),
        first=None if first is None else first.to_dict(),
        seeds="" if first is None else seeds_of(decisive),
        doubts=doubts.to_dict("records"),
        experiments={one: study.experiments[one] for one in claim.all_experiments},
        reference=reference,
        there=there,
        reply=reply,
    )


def write_claim_pages(
    studies: Sequence[Study], entries: MethodsAndTasks, reference: Path, folder: Path, replies: Path
) -> None:
    """Write one page per claim and an index of them to `folder`.

    Args:
        studies: with the claims.
        entries: all methods and tasks.
        reference: results with `claims.csv` and `doubts.csv`.
        folder: of the pages.
        replies: a folder with the authors' replies, `<claim>.md`; there may be none.
    """
    claims = read_claims(reference / CLAIMS)
    doubts = read_doubts(reference / CLAIMS)
    there = set(drawn(reference))
    pages, verdicts = {}, {}
    for study in studies:
        for name in study.claims:
            rows = claims[claims["claim"] == name]
            about = doubts[[name in names.split() for names in doubts["claims"]]]
            reply = replies / f"{name}.md"
            pages[f"{name}.md"] = claim_page(
                entries,
                study,
                name,
                rows,
                about,
                relpath(reference, folder),
                there,
                reply.read_text(encoding="utf-8") if reply.is_file() else "",
            )
            verdicts[name] = verdict_of(study.claims[name], rows), bool(len(about))
    ordered = {study.study: sorted(study.claims, key=by_number) for study in studies}
    pages["index.md"] = render("claims.md.j2", studies=studies, ordered=ordered, verdicts=verdicts, meanings=STATES)
    write_pages(pages, folder)


def verdict_of(claim: Claim, rows: pd.DataFrame) -> str:
    """The verdict on a claim in words, judged or not."""
    if len(rows):
        return str(rows.iloc[0]["verdict"])
    return NOT_JUDGED if claim.experiments else NOT_RUN

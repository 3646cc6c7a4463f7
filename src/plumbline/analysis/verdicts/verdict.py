"""The table of claims: which tests are judged, and what is told of each."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from plumbline.analysis.evidence.runs import RunName, Runs
from plumbline.analysis.verdicts.criterion import CRITERION, criterion
from plumbline.analysis.verdicts.part_results import PartResult, effect, favourable, part_result, stuck_runs
from plumbline.analysis.verdicts.rule import Judgement, judgements, verdict
from plumbline.analysis.verdicts.seeds_needed import seeds_needed
from plumbline.analysis.verdicts.small_sample_rates import chance_rate, claimed_rate
from plumbline.study.claims import Claim, ClaimTest, Stuck
from plumbline.study.resolved import TaskMethod

COLUMNS = [
    "claim",
    "experiments",
    "missing",
    "source",
    "statement",
    "sentence",
    "role",
    "test",
    *CRITERION,
    "published",
    "ours",
    "low",
    "high",
    "p",
    "median",
    "favourable",
    "effect",
    "deviation",
    "detectable",
    "needed",
    "seeds",
    "stuck",
    "budget",
    "preset",
    "data",
    "size_p",
    "because",
    "outcome",
    "paper_seeds",
    "pattern",
    "chance",
    "verdict",
]
"""Columns of the table of claims, which has one row a test; columns after `outcome` are of the claim.

Spaces separate the names of `experiments`, and of the `missing` ones, which were not run. `stuck` is JSON: of each
method its name, how many of its runs were stuck, and of how many.
`p` is the probability on the side of the estimate after Holm's correction; `median` is that of the seeds' differences
(ratios, values), `favourable` the share of seeds on the claimed side, `effect` the distance to the threshold in
standard deviations of a seed, `deviation` this standard deviation in units of `ours`, of a share one half, and
`detectable` the distance detected with power 0.8. `needed` are the seeds that decide
a part nine times in ten: by an effect that matters, or else by the effect as found. `size_p` is the probability of such
data were the effect of the published size, after Holm's correction, and `because` why a part cannot show anything.
`pattern` and `chance` are
small-sample rates: draws of as many seeds as the paper has, with every part of the primary test on the claimed side, as
the methods are and with the methods of each seed permuted.
"""

FEW_SEEDS = 10
"""The greatest number of a paper's seeds for which we compute small-sample rates."""


class RunnableTests(NamedTuple):
    """The single tests of a claim whose trials were run.

    Attributes:
        primary: parts of the primary test.
        secondary: tests beside it.
        complete: whether all parts of the primary test are there.
        stuck: when a run counts as stuck.
    """

    primary: tuple[ClaimTest, ...]
    secondary: tuple[ClaimTest, ...]
    complete: bool
    stuck: Stuck | None = None

    @property
    def runs(self) -> list[RunName]:
        """The runs that the tests need."""
        tests = (*self.primary, *self.secondary)
        of_stuck = [(*trial, self.stuck.metric) for test in tests for trial in test.trials] if self.stuck else []
        return [*(run for test in tests for run in test.runs), *of_stuck]


def runnable_tests(claim: Claim, there: Collection[tuple[str, str]]) -> RunnableTests | None:
    """Return the tests of a claim that need no other trials than `there`, (task, method); None without a primary one.

    Of several primary tests we take the first whose parts are all there, or else the one with most of them. A test
    begins with the subject of the document's sentence: without it, its `parts` alone say nothing.
    """

    def ready(tests: Iterable[ClaimTest]) -> tuple[ClaimTest, ...]:
        return tuple(test for test in tests if set(there).issuperset(test.trials))

    primaries = [tuple(entry.each()) for entry in claim.primary]
    possible = [ready(entry.each()) if ready(entry.own()) else () for entry in claim.primary]
    complete = [len(some) == len(parts) for some, parts in zip(possible, primaries, strict=True)]
    best = max(range(len(possible)), key=lambda one: (complete[one], len(possible[one]), -one), default=None)
    if best is None or not possible[best]:
        return None
    secondary = ready(test for entry in claim.secondary for test in entry.each())
    return RunnableTests(possible[best], secondary, complete[best], claim.stuck)


def by_number(claim: str) -> tuple[str, int]:
    """Return the key that sorts claims by their numbers: C2 before C10."""
    letters = claim.rstrip("0123456789")
    return letters, int(claim[len(letters) :] or 0)


def row(one: PartResult, judged: Judgement, parts: int) -> dict[str, Any]:
    """Return the columns of a single test of a family of `parts` in the table of claims."""
    low, high = one.found.interval()
    return {
        "test": one.test.name,
        **criterion(one.test),
        "published": str(one.test.published),
        "ours": one.found.value,
        "low": low,
        "high": high,
        "p": judged.p,
        "median": one.found.median,
        "favourable": favourable(one.test, one.found),
        "effect": effect(one.test, one.found),
        "deviation": one.found.deviation(one.test.middle),
        "detectable": one.found.detectable,
        "needed": seeds_needed(one, parts, judged.outcome in ("holds", "fails")),
        "seeds": one.seeds,
        "budget": one.budget,
        "size_p": judged.size_p,
        "because": judged.because,
        "outcome": judged.outcome,
    }


def claim_rows(
    name: str,
    claim: Claim,
    tests: RunnableTests,
    runs: Runs,
    preset: str,
    data: str,
    experiments: Collection[str] = (),
    missing: Iterable[str] = (),
    full: Mapping[TaskMethod, int] | None = None,
) -> pd.DataFrame:
    """Return the rows of one claim, one a test, with the verdict of its primary test.

    Args:
        name: of the claim.
        claim: what was claimed.
        tests: its tests whose trials were run.
        runs: of these trials.
        preset: of these runs.
        data: label of their datasets.
        experiments: that the claim rests on, where these are not the first that it names.
        missing: those of them that were not run.
        full: rounds of the document's runs; None where all runs count as whole.

    Raises:
        PlumblineError: runs or values that are not there.
    """
    by_role = {
        role: [part_result(test, runs, f"{name}.{role}.{number}", full) for number, test in enumerate(some)]
        for role, some in (("primary", tests.primary), ("secondary", tests.secondary))
    }
    found = {role: judgements(results, f"{name}.{role}") for role, results in by_role.items()}
    few = claim.seeds if claim.seeds <= FEW_SEEDS else 0
    shared = {
        "claim": name,
        "experiments": " ".join(experiments or claim.experiments),
        "missing": " ".join(missing),
        **claim.model_dump(include={"source", "statement", "sentence"}),
        "preset": preset,
        "data": data,
        "paper_seeds": claim.seeds,
        "pattern": claimed_rate(by_role["primary"], few, name),
        "chance": chance_rate(by_role["primary"], few, name),
        "verdict": verdict(found["primary"], tests.complete),
    }
    if claim.beyond is not None:
        shared["verdict"] = claim.beyond.verdict
    rows = []
    for role, results in by_role.items():
        for one, judgement in zip(results, found[role], strict=True):
            stuck = stuck_runs(claim.stuck, one.test, runs)
            about = {"role": role, "stuck": json.dumps(stuck) if stuck else ""}
            rows.append({**shared, **about, **row(one, judgement, len(results))})
    return pd.DataFrame(rows, columns=COLUMNS)

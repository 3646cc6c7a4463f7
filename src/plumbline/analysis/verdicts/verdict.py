"""Verdicts on published claims; `docs/results/verdict-rule.md` has the rule and its error rates."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from plumbline.analysis.evidence.runs import RunName, Runs
from plumbline.analysis.verdicts.part_results import PartResult, describe, effect, favourable, part_result, stuck_runs
from plumbline.analysis.verdicts.small_sample_rates import chance_rate, claimed_rate
from plumbline.statistics.inference import TAIL, Inference
from plumbline.statistics.multiple_tests import holm
from plumbline.study.claims import Claim, ClaimTest, Stuck
from plumbline.study.verdicts import Outcome, Verdict

COLUMNS = [
    "claim",
    "experiments",
    "missing",
    "source",
    "statement",
    "sentence",
    "role",
    "test",
    "statistic",
    "published",
    "ours",
    "low",
    "high",
    "p",
    "median",
    "favourable",
    "effect",
    "detectable",
    "seeds",
    "stuck",
    "budget",
    "preset",
    "data",
    "outcome",
    "paper_seeds",
    "pattern",
    "chance",
    "verdict",
]
"""Columns of the table of claims, which has one row a test; columns after `outcome` are of the claim.

Spaces separate the names of `experiments`, and of the `missing` ones, which were not run.
`p` is the probability on the side of the estimate after Holm's correction; `median` is that of the seeds' differences
(ratios, values), `favourable` the share of seeds on the claimed side, `effect` the distance to the threshold in
standard deviations of a seed, and `detectable` the distance detected with power 0.8. `pattern` and `chance` are
small-sample rates: draws of as many seeds as the paper has, with every part of the primary test on the claimed side, as
the methods are and with the methods of each seed permuted.
"""

MIN_SEEDS = 4
"""With fewer seeds a test stays open."""

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


def probabilities(test: ClaimTest, found: Inference) -> tuple[float, float]:
    """Return the p-values against the claim being false and against its being true, each at the boundary."""
    if test.range is not None:
        low, high = test.range
        return max(found.p_above(low), found.p_below(high)), min(found.p_below(low), found.p_above(high))
    sides = found.p_above(test.threshold), found.p_below(test.threshold)
    return sides if test.direction == "greater" else sides[::-1]


def outcomes(results: Sequence[PartResult]) -> list[tuple[Outcome, float]]:
    """Return the outcome of each test of a family, and its p-value after Holm's correction."""
    pairs = [probabilities(one.test, one.found) for one in results]
    holding, failing = (holm([pair[side] for pair in pairs]) for side in (0, 1))
    found: list[tuple[Outcome, float]] = []
    for one, holds, fails in zip(results, holding, failing, strict=True):
        outcome: Outcome = "open"
        if one.seeds >= MIN_SEEDS and min(holds, fails) <= TAIL:
            outcome = "holds" if holds < fails else "fails"
        found.append((outcome, min(holds, fails)))
    return found


def verdict(parts: Sequence[Outcome], complete: bool = True) -> Verdict:
    """Return the verdict from the outcomes of the parts of the primary test.

    Reproduced if all hold; partly if some do, or all of those that were run where others were not; not reproduced if
    none holds and any fails; else the data cannot tell.

    Args:
        parts: outcomes.
        complete: whether all parts were run.
    """
    if all(one == "holds" for one in parts):
        return "reproduced" if complete else "partly"
    if "holds" in parts:
        return "partly"
    return "not reproduced" if "fails" in parts else "inconclusive at this scale"


def by_number(claim: str) -> tuple[str, int]:
    """Return the key that sorts claims by their numbers: C2 before C10."""
    letters = claim.rstrip("0123456789")
    return letters, int(claim[len(letters) :] or 0)


def counts(outcomes: Iterable[str]) -> str:
    """Return the numbers of tests that hold, fail and are open, in words: `partly` alone would hide a contradiction."""
    found = Counter(outcomes)
    words = {"holds": "holds" if found["holds"] == 1 else "hold", "fails": "fails" if found["fails"] == 1 else "fail"}
    return ", ".join(f"{found[one]} {words.get(one, one)}" for one in ("holds", "fails", "open") if found[one])


def row(one: PartResult, outcome: Outcome, p: float) -> dict[str, Any]:
    """Return the columns of a single test in the table of claims."""
    low, high = one.found.interval()
    return {
        "test": one.test.name,
        "statistic": describe(one.test),
        "published": one.test.published,
        "ours": one.found.value,
        "low": low,
        "high": high,
        "p": p,
        "median": one.found.median,
        "favourable": favourable(one.test, one.found),
        "effect": effect(one.test, one.found),
        "detectable": one.found.detectable,
        "seeds": one.seeds,
        "budget": one.budget,
        "outcome": outcome,
    }


def claim_rows(
    name: str, claim: Claim, tests: RunnableTests, runs: Runs, preset: str, data: str, missing: Iterable[str] = ()
) -> pd.DataFrame:
    """Return the rows of one claim, one a test, with the verdict of its primary test.

    Args:
        name: of the claim.
        claim: what was claimed.
        tests: its tests whose trials were run.
        runs: of these trials.
        preset: of these runs.
        data: label of their datasets.
        missing: experiments of the claim that were not run.

    Raises:
        PlumblineError: runs or values that are not there.
    """
    by_role = {
        role: [part_result(test, runs, f"{name}.{role}.{number}") for number, test in enumerate(some)]
        for role, some in (("primary", tests.primary), ("secondary", tests.secondary))
    }
    found = {role: outcomes(results) for role, results in by_role.items()}
    few = claim.seeds if claim.seeds <= FEW_SEEDS else 0
    shared = {
        "claim": name,
        "experiments": " ".join(claim.experiments),
        "missing": " ".join(missing),
        **claim.model_dump(include={"source", "statement", "sentence"}),
        "preset": preset,
        "data": data,
        "paper_seeds": claim.seeds,
        "pattern": claimed_rate(by_role["primary"], few, name),
        "chance": chance_rate(by_role["primary"], few, name),
        "verdict": verdict([outcome for outcome, _ in found["primary"]], tests.complete),
    }
    if claim.beyond is not None:
        shared["verdict"] = claim.beyond.verdict
    rows = [
        {**shared, "role": role, **row(one, *judgement), "stuck": stuck_runs(claim.stuck, one.test, runs)}
        for role, results in by_role.items()
        for one, judgement in zip(results, found[role], strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)

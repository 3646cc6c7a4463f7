"""A verdict on every published claim: docs/verdicts.md has the rule, and how often it errs."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from plumbline.analysis.evidence.runs import RunName, Runs
from plumbline.analysis.verdicts.measure import PartResult, describe, effect, favourable, measure, stuck_runs
from plumbline.analysis.verdicts.small_sample_rates import chance, pattern
from plumbline.statistics.inference import TAIL, Inference
from plumbline.study.claims import Claim, ClaimTest, Stuck

Outcome = Literal["holds", "fails", "open"]
Verdict = Literal[
    "reproduced", "partly", "not reproduced", "inconclusive at this scale", "cannot fail", "does not apply"
]

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
"""Of the table of claims: one row a test; `outcome` is the test's, what comes after it the claim's.

Names of `experiments` are apart by spaces, as are those of the `missing`, which were not run.
`p` is what Holm's correction makes of the probability on the side where the estimate lies; `median` is of the seeds'
differences (ratios, values), `favourable` the share of seeds on the claimed side, `effect` the distance to the
threshold in standard deviations of a seed, `detectable` the distance that would be seen four times in five. `pattern`
is the share of draws of as many of our seeds as the paper has in which every part of the primary test looks as claimed,
`chance` the same if the methods of each seed change places at random.
"""

MIN_SEEDS = 4
"""With fewer nothing is judged."""

FEW_SEEDS = 10
"""A paper's seeds, up to which it is asked how often so few of ours would look as the paper has it."""


class Judged(NamedTuple):
    """The single tests of a claim that were run, and whether all of the primary one's parts were."""

    primary: tuple[ClaimTest, ...]
    secondary: tuple[ClaimTest, ...]
    whole: bool
    stuck: Stuck | None = None

    @property
    def asked(self) -> list[RunName]:
        """Return the runs that the tests are about."""
        tests = (*self.primary, *self.secondary)
        of_stuck = [(*trial, self.stuck.metric) for test in tests for trial in test.trials] if self.stuck else []
        return [*(run for test in tests for run in test.runs), *of_stuck]


def judged(claim: Claim, there: Collection[tuple[str, str]]) -> Judged | None:
    """Return what can be judged of a claim from these trials (task, method); None if nothing of its primary test.

    Of several primary tests it is the first that can be judged in whole, or else the one of which most can be. What the
    document's sentence is about comes first in a test: where nothing of that was run, its `parts` alone say nothing.
    """

    def ready(tests: Iterable[ClaimTest]) -> tuple[ClaimTest, ...]:
        return tuple(test for test in tests if set(there).issuperset(test.trials))

    primaries = [tuple(entry.each()) for entry in claim.primary]
    possible = [ready(entry.each()) if ready(entry.own()) else () for entry in claim.primary]
    whole = [len(some) == len(parts) for some, parts in zip(possible, primaries, strict=True)]
    best = max(range(len(possible)), key=lambda one: (whole[one], len(possible[one]), -one), default=None)
    if best is None or not possible[best]:
        return None
    secondary = ready(test for entry in claim.secondary for test in entry.each())
    return Judged(possible[best], secondary, whole[best], claim.stuck)


def probabilities(test: ClaimTest, found: Inference) -> tuple[float, float]:
    """Return the probability of such data if the claim were false, and that if it were true, each at its boundary."""
    if test.range is not None:
        low, high = test.range
        return max(found.p_above(low), found.p_below(high)), min(found.p_below(low), found.p_above(high))
    sides = found.p_above(test.threshold), found.p_below(test.threshold)
    return sides if test.direction == "greater" else sides[::-1]


def holm(probabilities: Sequence[float]) -> list[float]:
    """Return probabilities corrected for their number: all of those below a level err together no oftener than it.

    Holm (1979).
    """
    order = np.argsort(probabilities)
    steps = np.asarray(probabilities)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(p) for p in corrected]


def outcomes(measured: Sequence[PartResult]) -> list[tuple[Outcome, float]]:
    """Return of tests that are judged together whether each holds or fails, and the corrected probability."""
    pairs = [probabilities(one.test, one.found) for one in measured]
    holding, failing = (holm([pair[side] for pair in pairs]) for side in (0, 1))
    found: list[tuple[Outcome, float]] = []
    for one, holds, fails in zip(measured, holding, failing, strict=True):
        outcome: Outcome = "open"
        if one.seeds >= MIN_SEEDS and min(holds, fails) <= TAIL:
            outcome = "holds" if holds < fails else "fails"
        found.append((outcome, min(holds, fails)))
    return found


def verdict(parts: Sequence[Outcome], whole: bool = True) -> Verdict:
    """Return the verdict from the outcomes of the parts of the primary test.

    Reproduced if all hold; partly if some do, or all of those that were run where others were not; not reproduced if
    none holds and any fails; else the data cannot tell.

    Args:
        parts: outcomes.
        whole: whether all parts were run.
    """
    if all(one == "holds" for one in parts):
        return "reproduced" if whole else "partly"
    if "holds" in parts:
        return "partly"
    return "not reproduced" if "fails" in parts else "inconclusive at this scale"


def by_number(claim: str) -> tuple[str, int]:
    """Return what sorts claims as one counts: C2 before C10."""
    letters = claim.rstrip("0123456789")
    return letters, int(claim[len(letters) :] or 0)


def counts(outcomes: Iterable[str]) -> str:
    """Return how many tests hold, fail and are open, in words: `partly` alone would hide a contradiction."""
    found = Counter(outcomes)
    words = {"holds": "holds" if found["holds"] == 1 else "hold", "fails": "fails" if found["fails"] == 1 else "fail"}
    return ", ".join(f"{found[one]} {words.get(one, one)}" for one in ("holds", "fails", "open") if found[one])


def row(one: PartResult, outcome: Outcome, p: float) -> dict[str, Any]:
    """Return what a table of claims says of a single test."""
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
    name: str, claim: Claim, tests: Judged, runs: Runs, preset: str, data: str, missing: Iterable[str] = ()
) -> pd.DataFrame:
    """Return the rows of one claim: a measurement a test, and the verdict that its primary test comes to.

    Args:
        name: of the claim.
        claim: what was claimed.
        tests: those that were run.
        runs: that they rest on.
        preset: of these runs.
        data: that they read.
        missing: experiments that the claim rests on too, and that were not run.

    Raises:
        PlumblineError: runs or values that are not there.
    """
    by_role = {
        role: [measure(test, runs, f"{name}.{role}.{number}") for number, test in enumerate(some)]
        for role, some in (("primary", tests.primary), ("secondary", tests.secondary))
    }
    found = {role: outcomes(measured) for role, measured in by_role.items()}
    few = claim.seeds if claim.seeds <= FEW_SEEDS else 0
    shared = {
        "claim": name,
        "experiments": " ".join(claim.experiments),
        "missing": " ".join(missing),
        **claim.model_dump(include={"source", "statement", "sentence"}),
        "preset": preset,
        "data": data,
        "paper_seeds": claim.seeds,
        "pattern": pattern(by_role["primary"], few, name),
        "chance": chance(by_role["primary"], few, name),
        "verdict": verdict([outcome for outcome, _ in found["primary"]], tests.whole),
    }
    if claim.beyond is not None:
        shared["verdict"] = claim.beyond.verdict
    rows = [
        {**shared, "role": role, **row(one, *judgement), "stuck": stuck_runs(claim.stuck, one.test, runs)}
        for role, measured in by_role.items()
        for one, judgement in zip(measured, found[role], strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)

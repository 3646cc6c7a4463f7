"""A verdict on every published claim: docs/verdicts.md has the rule, and how often it errs."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.runs import Asked, Runs
from plumbline.errors import PlumblineError
from plumbline.measures.inference import TAIL, Inference
from plumbline.measures.statistics import Sample, infer
from plumbline.seeding import stream_seed
from plumbline.study import Claim, ClaimTest, Stuck

Outcome = Literal["holds", "fails", "open"]
Verdict = Literal[
    "reproduced", "partly", "not reproduced", "inconclusive at this scale", "cannot fail", "does not apply"
]

COLUMNS = [
    "claim",
    "experiment",
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
    "verdict",
]
"""Of the table of claims: one row a test; `outcome` is the test's, what comes after it the claim's.

`p` is what Holm's correction makes of the probability on the side where the estimate lies; `median` is of the seeds'
differences (ratios, values), `favourable` the share of seeds on the claimed side, `effect` the distance to the
threshold in standard deviations of a seed, `detectable` the distance that would be seen four times in five. `pattern`
is the share of draws of as many of our seeds as the paper has in which every part of the primary test looks as claimed.
"""

MIN_SEEDS = 4
"""With fewer nothing is judged."""

FEW_SEEDS = 10
"""A paper's seeds, up to which it is asked how often so few of ours would look as the paper has it."""

DRAWS = 2_000


class Judged(NamedTuple):
    """The single tests of a claim that were run, and whether all of the primary one's parts were."""

    primary: tuple[ClaimTest, ...]
    secondary: tuple[ClaimTest, ...]
    whole: bool
    stuck: Stuck | None = None

    @property
    def asked(self) -> list[Asked]:
        """Return the runs that the tests are about."""
        tests = (*self.primary, *self.secondary)
        of_stuck = [self.stuck.metric] if self.stuck else []
        return [(*trial, metric) for test in tests for trial in test.trials for metric in (test.metric, *of_stuck)]


def judged(claim: Claim, there: Collection[tuple[str, str]]) -> Judged | None:
    """Return what can be judged of a claim from these trials (task, method); None if nothing of its primary test.

    Of several primary tests it is the first that can be judged in whole, or else the one of which most can be.
    """
    primaries = [tuple(entry.each()) for entry in claim.primary]
    possible = [tuple(test for test in parts if set(there).issuperset(test.trials)) for parts in primaries]
    whole = [len(some) == len(parts) for some, parts in zip(possible, primaries, strict=True)]
    best = max(range(len(possible)), key=lambda one: (whole[one], len(possible[one]), -one), default=None)
    if best is None or not possible[best]:
        return None
    tests = (test for entry in claim.secondary for test in entry.each())
    secondary = tuple(test for test in tests if set(there).issuperset(test.trials))
    return Judged(possible[best], secondary, whole[best], claim.stuck)


class Measurement(NamedTuple):
    """A test's samples, a task each, what is inferred of them, and how complete they are, in words."""

    samples: Sequence[Sample]
    found: Inference
    seeds: int
    budget: str


def measure(test: ClaimTest, runs: Runs, name: str) -> Measurement:
    """Return what a test comes to.

    Raises:
        PlumblineError: no runs, or none that share a seed with a value of the metric.
    """
    samples, gaps = [], ""
    for task in test.tasks:
        method = runs(task, test.method, test.metric)
        numbers = pd.DataFrame({"method": method[test.of]})
        if test.baseline is not None:
            theirs = runs(test.baseline_task or task, test.baseline, test.metric)
            numbers = numbers.join(theirs[test.of].rename("baseline"), how="inner")
        numbers = numbers.dropna()
        if numbers.empty:
            against = f" and {test.baseline!r}" if test.baseline else ""
            raise PlumblineError(f"{name}: no seed of {test.method!r}{against} on {task!r} has {test.metric}")
        samples.append(numbers)
        if (known := method["rounds"].mean()) < (rounds := method["of"].max()):
            gaps = f", values in {known:.4g} of {rounds} rounds"
    if test.statistic == "consistent-wins":  # seeds side by side
        shared = sorted(set.intersection(*(set(numbers.index) for numbers in samples)))
        samples = [numbers.loc[shared] for numbers in samples]
    pairs = [_sample(numbers) for numbers in samples]
    evaluations = int(runs(test.task, test.method, test.metric)["evaluations"].max())
    found = infer(test.statistic, pairs, test.location, name, test.options)
    return Measurement(pairs, found, min(len(pair.method) for pair in pairs), f"{evaluations} evaluations{gaps}")


def _sample(numbers: pd.DataFrame) -> Sample:
    baseline = numbers["baseline"].to_numpy(dtype=float) if "baseline" in numbers else None
    return Sample(numbers["method"].to_numpy(dtype=float), baseline)


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


def outcomes(tests: Sequence[ClaimTest], measured: Sequence[Measurement]) -> list[tuple[Outcome, float]]:
    """Return of tests that are judged together whether each holds or fails, and the corrected probability."""
    pairs = [probabilities(test, one.found) for test, one in zip(tests, measured, strict=True)]
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


def counts(outcomes: Iterable[str]) -> str:
    """Return how many tests hold, fail and are open, in words: `partly` alone would hide a contradiction."""
    found = Counter(outcomes)
    words = {"holds": "holds" if found["holds"] == 1 else "hold", "fails": "fails" if found["fails"] == 1 else "fail"}
    return ", ".join(f"{found[one]} {words.get(one, one)}" for one in ("holds", "fails", "open") if found[one])


def describe(test: ClaimTest) -> str:
    """Return a test in words."""
    against = f" - {test.baseline}" if test.baseline else ""
    against += f" (of {test.baseline_task})" if test.baseline_task else ""
    options = "".join(f", {key} {value}" for key, value in test.options.items())
    location = "median " if test.location == "median" else ""
    metric = {"last": f"final {test.metric}", "mean": f"mean {test.metric}", "median": f"median {test.metric}"}[test.of]
    expected = f"{test.direction} than {test.threshold:g}"
    if test.range is not None:
        expected = f"within {test.range[0]:g} and {test.range[1]:g}"
    return (
        f"{location}{test.statistic} of {metric}, {test.method}{against} on {', '.join(test.tasks)}{options}: "
        f"{expected}"
    )


def looks_as_claimed(test: ClaimTest, value: float) -> bool:
    """Return whether a value is on the claimed side."""
    if test.range is not None:
        return test.range[0] < value < test.range[1]
    return value > test.threshold if test.direction == "greater" else value < test.threshold


def pattern(tests: Sequence[ClaimTest], measured: Sequence[Measurement], seeds: int, name: str) -> float:
    """Return how often all tests look as claimed with so many of the seeds, drawn without replacement.

    NaN where there are no more seeds than that.
    """
    there = min(one.seeds for one in measured)
    if not 0 < seeds < there:
        return float("nan")
    rng = np.random.default_rng(stream_seed(name, seeds, "pattern"))
    hits = 0
    for _ in range(DRAWS):
        drawn = rng.permutation(there)[:seeds]
        hits += all(
            looks_as_claimed(test, infer(test.statistic, _drawn(one, drawn), test.location, name, test.options).value)
            for test, one in zip(tests, measured, strict=True)
        )
    return hits / DRAWS


def _drawn(measured: Measurement, seeds: NDArray[np.intp]) -> list[Sample]:
    return [
        Sample(one.method[seeds], None if one.baseline is None else one.baseline[seeds]) for one in measured.samples
    ]


def facts(test: ClaimTest, measured: Measurement) -> dict[str, float]:
    """Return what stands beside an estimate: the median seed, the share on the claimed side, the size of the effect."""
    method = np.concatenate([one.method for one in measured.samples])
    typical, away = method, method - test.threshold
    if measured.samples[0].baseline is not None:
        baseline = np.concatenate([one.baseline for one in measured.samples if one.baseline is not None])
        typical, away = method - baseline, method - baseline - test.threshold * (test.statistic == "difference")
        if test.statistic == "ratio":
            typical, away = method / baseline, method - test.threshold * baseline
    spread = away.std(ddof=1) if len(away) > 1 else np.nan
    sided = away > 0 if test.direction == "greater" else away < 0
    ties = 0.5 * np.mean(away == 0)
    return {
        "median": float(np.median(typical)),
        "favourable": float(sided.mean() + ties) if test.range is None else np.nan,
        "effect": float(away.mean() / spread) if spread > 0 else np.nan,
        "detectable": measured.found.detectable,
    }


def stuck(claim: Claim, test: ClaimTest, runs: Runs) -> str:
    """Return how many runs of a test's methods ended stuck, in words; empty where the claim does not say when."""
    if claim.stuck is None:
        return ""
    counted = []
    for task, method in dict.fromkeys(test.trials):
        last = runs(task, method, claim.stuck.metric)["last"]
        counted.append(f"{method} {int((last > claim.stuck.above).sum())} of {len(last)}")
    return ", ".join(counted)


def claim_rows(name: str, claim: Claim, tests: Judged, runs: Runs, preset: str, data: str) -> pd.DataFrame:
    """Return the rows of one claim: a measurement a test, and the verdict that its primary test comes to.

    Args:
        name: of the claim.
        claim: what was claimed.
        tests: those that were run.
        runs: that they rest on.
        preset: of these runs.
        data: that they read.
    """
    rows: list[dict[str, Any]] = []
    of_claim: dict[str, Any] = {"paper_seeds": claim.seeds}
    for role, some in (("primary", tests.primary), ("secondary", tests.secondary)):
        measured = [measure(test, runs, f"{name}.{role}.{number}") for number, test in enumerate(some)]
        found = outcomes(some, measured)
        if role == "primary":
            of_claim["verdict"] = verdict([outcome for outcome, _ in found], tests.whole)
            of_claim["pattern"] = pattern(some, measured, claim.seeds if claim.seeds <= FEW_SEEDS else 0, name)
        for test, one, (outcome, p) in zip(some, measured, found, strict=True):
            low, high = one.found.interval()
            rows.append(
                {
                    "claim": name,
                    "experiment": claim.experiment,
                    "source": claim.source,
                    "statement": claim.statement,
                    "sentence": claim.sentence,
                    "role": role,
                    "test": test.name,
                    "statistic": describe(test),
                    "published": test.published,
                    "ours": one.found.value,
                    "low": low,
                    "high": high,
                    "p": p,
                    **facts(test, one),
                    "seeds": one.seeds,
                    "stuck": stuck(claim, test, runs),
                    "budget": one.budget,
                    "preset": preset,
                    "data": data,
                    "outcome": outcome,
                }
            )
    if claim.beyond is not None:
        of_claim["verdict"] = claim.beyond.verdict
    return pd.DataFrame([row | of_claim for row in rows], columns=COLUMNS)

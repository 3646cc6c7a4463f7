"""A verdict on every published claim."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from plumbline.analysis.evidence import Evidence
from plumbline.errors import PlumblineError
from plumbline.measures.metrics import by_round
from plumbline.measures.statistics import Interval, find_statistic, paired_bootstrap
from plumbline.study import Claim, ClaimTest

Outcome = Literal["holds", "fails", "open"]
Verdict = Literal["reproduced", "partly", "not reproduced", "inconclusive at this scale"]

COLUMNS = [
    "claim",
    "experiment",
    "source",
    "statement",
    "statistic",
    "published",
    "ours",
    "low",
    "high",
    "seeds",
    "budget",
    "preset",
    "data",
    "outcome",
    "verdict",
]
"""Of the table of claims: one row a test; `outcome` is the test's, `verdict` the claim's."""


MIN_SEEDS = 5
"""Below this many seeds a bootstrap interval is an ornament: the outcome is left open. CAL's own figures have five."""


def outcome(interval: Interval, test: ClaimTest, seeds: int) -> Outcome:
    """Return whether a statistic is on the claimed side of the threshold with its whole interval, or on the other."""
    if seeds < MIN_SEEDS:
        return "open"
    sign = 1 if test.direction == "greater" else -1
    low, high = sorted((sign * (interval.low - test.threshold), sign * (interval.high - test.threshold)))
    if np.isnan(low) or np.isnan(high):
        return "open"
    if low > 0:
        return "holds"
    return "fails" if high < 0 else "open"


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """Return the verdict on a claim from the outcomes of its tests.

    Reproduced if all hold; partly if some do; not reproduced if none holds and any fails; else the intervals are too
    wide to tell.
    """
    if all(one == "holds" for one in outcomes):
        return "reproduced"
    if "holds" in outcomes:
        return "partly"
    return "not reproduced" if "fails" in outcomes else "inconclusive at this scale"


def counts(outcomes: Iterable[str]) -> str:
    """Return how many tests hold, fail and are open, in words: `partly` alone would hide a contradiction."""
    found = Counter(outcomes)
    words = {"holds": "holds" if found["holds"] == 1 else "hold", "fails": "fails" if found["fails"] == 1 else "fail"}
    return ", ".join(f"{found[one]} {words.get(one, one)}" for one in ("holds", "fails", "open") if found[one])


class Measurement(NamedTuple):
    """A statistic with its interval, the seeds that it rests on (those of both methods), and the gaps in its rounds."""

    interval: Interval
    seeds: int
    gaps: str


def measure(test: ClaimTest, evidence: Evidence, name: str) -> Measurement:
    """Return what a test comes to, over the rounds that have a value.

    Raises:
        PlumblineError: no trials, or none that share a seed and a round with a value of the metric.
    """
    tables = [by_round(evidence.trials(*trials), test.metric) for trials in test.trials]
    if test.baseline is None:
        pairs: list[tuple[pd.DataFrame, pd.DataFrame | None]] = [(table, None) for table in tables]
    else:
        pairs = [one.align(other, join="inner") for one, other in zip(tables[::2], tables[1::2], strict=True)]
    method, baseline = last_rounds(pairs) if test.also else pairs[0]
    if method.size == 0:
        against = f" and {test.baseline!r}" if test.baseline else ""
        raise PlumblineError(
            f"{name}: no seed and round of {test.method!r}{against} on {test.task!r} has {test.metric}"
        )
    interval = paired_bootstrap(
        find_statistic(test.statistic),
        method.to_numpy(),
        None if baseline is None else baseline.to_numpy(),
        name,
        **test.options,
    )
    known = method.notna() if baseline is None else method.notna() & baseline.notna()
    rounds = int(evidence.trials(test.task, test.method)["iteration"].max())
    return Measurement(interval, len(method), "" if test.also else _gaps(known, rounds))


def last_rounds(pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame | None]]) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the last values of several tasks, a column each, of the seeds that all of them have."""
    if any(method.empty for method, _ in pairs):
        return pd.DataFrame(), None

    def side_by_side(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
        return pd.concat([table.iloc[:, -1] for table in tables], axis=1, join="inner", ignore_index=True)

    baselines = [baseline for _, baseline in pairs if baseline is not None]
    return side_by_side([method for method, _ in pairs]), side_by_side(baselines) if baselines else None


def _gaps(known: pd.DataFrame, rounds: int) -> str:
    """Return in how many rounds after the initial design a value is known, a mean over seeds; empty where in all."""
    there = known.to_numpy()[:, known.columns.to_numpy() > 0].sum() / len(known)
    return "" if there == rounds else f", values in {there:.4g} of {rounds} rounds"


def describe(test: ClaimTest) -> str:
    """Return a test in words."""
    against = f" - {test.baseline}" if test.baseline else ""
    against += f" (of {test.baseline_task})" if test.baseline_task else ""
    options = "".join(f", {key} {value}" for key, value in test.options.items())
    return (
        f"{test.statistic} of {test.metric}, {test.method}{against} on {', '.join((test.task, *test.also))}{options}: "
        f"{test.direction} than {test.threshold:g}"
    )


def claim_rows(name: str, claim: Claim, evidence: Evidence, preset: str, data: str) -> pd.DataFrame:
    """Return the rows of one claim: a measurement a test, and the verdict on all of them."""
    rows: list[dict[str, Any]] = []
    for number, test in enumerate(claim.tests):
        interval, seeds, gaps = measure(test, evidence, f"{name}.{number}")
        trials = evidence.trials(test.task, test.method)
        rows.append(
            {
                "claim": name,
                "experiment": claim.experiment,
                "source": claim.source,
                "statement": claim.statement,
                "statistic": describe(test),
                "published": test.published,
                "ours": interval.value,
                "low": interval.low,
                "high": interval.high,
                "seeds": seeds,
                "budget": f"{trials['evaluation'].max() + 1} evaluations{gaps}",
                "preset": preset,
                "data": data,
                "outcome": outcome(interval, test, seeds),
            }
        )
    judged = verdict([row["outcome"] for row in rows])
    return pd.DataFrame([row | {"verdict": judged} for row in rows], columns=COLUMNS)

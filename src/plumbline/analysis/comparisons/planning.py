"""How many seeds a comparison takes, from the spread and the pairing of those that were run."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.comparisons.compare import Block, blocks_of
from plumbline.core.errors import PlumblineError
from plumbline.core.seeding import stream_seed
from plumbline.metrics.registry import Better
from plumbline.statistics.power import DRAWS, Power, effects_of_resamples, seeds_interval
from plumbline.study.claims import Of

Array = NDArray[np.float64]

POWERS = (0.8, 0.9)
MOST_GIVEN = 100_000
"""Seeds of a study whose power is simulated: of more it takes gigabytes."""
FEWEST = 4
"""Seeds that are taken to show a spread."""


class EffectSize(NamedTuple):
    """A difference that is to be seen: a share of the baseline's mean, or a number in units of the metric."""

    size: float
    relative: bool

    def of(self, baseline: Array) -> Array:
        """Return the difference for means of the baseline."""
        return self.size * np.abs(baseline) if self.relative else np.full_like(baseline, self.size)


def parse_effect(text: str | float) -> EffectSize:
    """Return the effect that is meant by `10%`, or by `0.5`.

    Raises:
        PlumblineError: neither a percentage nor a number, or one that is not above zero.
    """
    words = str(text).strip()
    try:
        size = float(words.removesuffix("%"))
    except ValueError:
        size = np.nan
    if not 0 < size < np.inf:
        raise PlumblineError(
            f"effect {words[:40]!r}: give a percentage of the baseline's mean (10%) or a difference above zero (0.5)"
        )
    return EffectSize(size / 100, True) if words.endswith("%") else EffectSize(size, False)


class SeedPlan(NamedTuple):
    """How many seeds the paired test of a mean difference takes to see an effect.

    Attributes:
        better: which direction of the metric is better; the effect has it, and is upwards where neither is.
        pairs: seeds that were run and have a value of both.
        baseline_mean: over these.
        effect: the difference that is to be seen, in units of the metric.
        deviation: of the measured differences.
        correlation: of both methods over seeds: the higher it is, the more pairing helps; NaN where one does not vary.
        power: the probability to see the effect.
        seeds, low, high: that it takes, with the 95% interval of a bootstrap over the pairs; infinite above
            1,000.
        given: a number of seeds.
        seen: the probability to see the effect with these.
    """

    metric: str
    task: str
    better: Better
    method: str
    baseline: str
    pairs: int
    baseline_mean: float
    effect: float
    deviation: float
    correlation: float
    power: float
    seeds: float
    low: float
    high: float
    given: int
    seen: float


def seed_plans(
    table: pd.DataFrame,
    methods: Sequence[str],
    task: str,
    effect: EffectSize,
    metric: str = "",
    of: Of = "last",
    given: int = 5,
) -> list[SeedPlan]:
    """Return the seeds that each method beside the first takes, by each metric or by one, at each power.

    A metric without a spread, or with fewer seeds than four, is left out where another has both.

    Args:
        table: of runs (`plumbline.analysis.evidence.runs.COLUMNS`).
        methods: the baseline, and one or more others.
        task: that they share.
        effect: that is to be seen.
        metric: the only one; all where none is named.
        of: the number of each run.
        given: a number of seeds whose power is told too, 2 to `MOST_GIVEN`.

    Raises:
        PlumblineError: a name without runs, too few common seeds, differences without a spread, or a share of a mean
            that is zero.
    """
    if not 2 <= given <= MOST_GIVEN:
        raise PlumblineError(f"given: a comparison takes 2 to {MOST_GIVEN:,} seeds (got {given})")
    plans: list[SeedPlan] = []
    reason = ""
    baseline, *others = methods
    for block in blocks_of(table, methods, task, metric, of):
        for method in others:
            fault = _fault(block, method, baseline, effect)
            if not fault:
                plans += _plans(block, method, baseline, effect, given)
            reason = reason or fault
    if not plans:
        raise PlumblineError(reason)
    return plans


def _fault(block: Block, method: str, baseline: str, effect: EffectSize) -> str:
    """Return why no number of seeds follows from these runs, empty where one does."""
    what = f"{block.metric} of {method!r} and {baseline!r} on {block.task!r}"
    ours, theirs = block.paired(method, baseline)
    if len(ours) < FEWEST:
        return f"{what}: {len(ours)} seeds in common are too few to show a spread: run {FEWEST} or more"
    if not np.isfinite(ours - theirs).all():
        return f"{what}: not all values are finite"
    if np.ptp(ours - theirs) <= 1e-12 * max(np.abs(ours).max(), np.abs(theirs).max()):
        return f"{what}: the difference is the same for all seeds, and shows no spread"
    if effect.relative and theirs.mean() == 0:
        return f"{what}: the mean of {baseline!r} is zero: give the effect as a number, not as a share of it"
    return ""


def _plans(block: Block, method: str, baseline: str, effect: EffectSize, given: int) -> list[SeedPlan]:
    ours, theirs = block.paired(method, baseline)
    differences, n = ours - theirs, len(ours)
    name = f"seeds {block.task} {block.metric} {method} {baseline}"
    wanted = float(effect.of(np.asarray(theirs.mean()))) * (-1 if block.better == "lower" else 1)
    drawn = np.random.default_rng(stream_seed(name, n, "bootstrap")).integers(n, size=(DRAWS, n))
    effects = effects_of_resamples(differences, effect.of(theirs[drawn].mean(axis=1)), drawn)
    varied = np.ptp(ours) > 0 and np.ptp(theirs) > 0
    correlation = float(np.corrcoef(ours, theirs)[0, 1]) if varied else np.nan
    simulated = Power(differences, wanted, name)
    return [
        SeedPlan(
            metric=block.metric,
            task=block.task,
            better=block.better,
            method=method,
            baseline=baseline,
            pairs=n,
            baseline_mean=float(theirs.mean()),
            effect=wanted,
            deviation=float(differences.std(ddof=1)),
            correlation=correlation,
            power=power,
            seeds=simulated.seeds(power),
            low=low,
            high=high,
            given=given,
            seen=simulated.of(given),
        )
        for power in POWERS
        for low, high in [seeds_interval(effects, power, simulated.more(power))]
    ]

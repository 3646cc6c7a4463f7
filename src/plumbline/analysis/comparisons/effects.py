"""What methods do beside a baseline, seed by seed, on each task and over all of them.

Effects on several tasks need a common unit, a standard deviation over seeds. That of the baseline's final values would
not do: on a task that most seeds solve it is close to zero, and rounding there would outweigh all other tasks.
So a metric that the initial design has already, as regret, is in deviations of that: starts are the same for all
methods, and vary. On a task that all solve effects are about zero, as they should be. What is of the rounds alone, as
calibration scores, is in deviations of where the baseline ended.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.final_values import final_values
from plumbline.analysis.outputs.kinds import Names, OutputOptions
from plumbline.metrics.registry import find_metric
from plumbline.statistics.means import ROUNDING, Mean

ALL = "all tasks"
"""In the place of a task: the mean over the tasks that method and baseline share, seed by seed."""


class EffectOptions(OutputOptions):
    """Options of figures and tables of effects.

    Attributes:
        metrics: the metrics that are compared at the last round, with their labels.
        baselines: each baseline with the methods that are compared with it, in its own panel.
        arms: labels of the first, second, ... method of every baseline, which then share a marker in all panels; by
            default each method has its own label.
    """

    metrics: dict[str, str] = Field(min_length=1)
    baselines: dict[str, tuple[str, ...]] = Field(min_length=1)
    arms: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _words_for_all(self) -> Self:
        if self.arms and any(len(methods) != len(self.arms) for methods in self.baselines.values()):
            raise ValueError("`arms` has a word for each method of a baseline, and all baselines have as many")
        return self

    def names(self) -> Names:
        """Return all methods and the metrics."""
        methods = (name for baseline, others in self.baselines.items() for name in (baseline, *others))
        return Names(methods=tuple(methods), metrics=tuple(self.metrics))

    def shown(self, evidence: Evidence) -> str:
        """Return what dots and bars are."""
        return "mean difference and its 95% interval over seeds"


class Effect(NamedTuple):
    """A mean difference, method minus baseline, in standard deviations over seeds (`spread`), with its 95% interval.

    Attributes:
        task: of it, or `ALL`.
        seeds: that both have.
        mean: in units of the metric; NaN over all tasks, which have units of their own.
        sd: the standard deviation that effects are divided by; NaN over all tasks.
        value, low, high: in standard deviations; NaN where there are none, or with one seed.
        lower: share of seeds where the method's is the lower value, ties by half; over all tasks of their means.
    """

    task: str
    method: str
    baseline: str
    metric: str
    seeds: int
    mean: float
    sd: float
    value: float
    low: float
    high: float
    lower: float


HEADINGS = {"mean": "mean difference", "value": "in sd", "lower": "share lower"}
"""Headings of an effect's fields in tables, where they differ from the names."""


def spread(found: Evidence, task: str, method: str, metric: str, seeds: pd.Index) -> float:
    """Return the standard deviation over seeds of a method's first values; of its final ones where all begin alike."""
    table = found.by_round(task, method, metric)
    begun = [table[0]] if 0 in table and find_metric(metric).kind == "running" else []
    values = (one.reindex(seeds).dropna() for one in (*begun, final_values(found, task, method, metric)))
    return next((float(one.std()) for one in values if one.max() > one.min()), 0.0)


def unit(found: Evidence, baselines: Iterable[str], metric: str, baseline: str) -> str:
    """Return what effects of a metric are in: standard deviations of the initial design, or of a baseline.

    Args:
        found: the evidence.
        baselines: all that there are effects beside.
        metric: of the effects.
        baseline: of these effects, by its words.
    """
    start, end = "in standard deviations of the initial design", f"in standard deviations of {baseline}"
    if found.reference is not None and "sd" in found.reference.table:
        rows = found.reference.table.query("metric == @metric").dropna(subset="sd")
        # Starts are the same for all methods, and so are their deviations.
        shared = rows.groupby("task")["sd"].agg(np.ptp).le(ROUNDING * rows.groupby("task")["sd"].max()).all()
        return "in standard deviations over seeds" if rows["baseline"].nunique() < 2 else start if shared else end
    if find_metric(metric).kind != "running":
        return end
    tables = (found.by_round(*pair, metric) for pair in found.pairs if pair[1] in {*baselines})
    return start if any(0 in table and table[0].max() > table[0].min() for table in tables) else end


def differences(found: Evidence, task: str, method: str, baseline: str, metric: str) -> pd.Series:
    """Return the difference of final values, method minus baseline, of each seed of both."""
    ours, theirs = (final_values(found, task, name, metric) for name in (method, baseline))
    return (ours - theirs).dropna()


def effect(standardised: pd.Series, mean: float, sd: float, **of: str) -> Effect:
    """Return the effect from `standardised` differences, one a seed."""
    values = standardised.to_numpy(dtype=float)
    seeds, lower = len(values), float(np.mean(0.5 - 0.5 * np.sign(values))) if len(values) else np.nan
    if seeds < 2 or not np.isfinite(values).all():
        return Effect(**of, seeds=seeds, mean=mean, sd=sd, value=np.nan, low=np.nan, high=np.nan, lower=lower)
    inferred = Mean(values, "effect " + " ".join(of.values()))
    low, high = inferred.interval()
    return Effect(**of, seeds=seeds, mean=mean, sd=sd, value=inferred.value, low=low, high=high, lower=lower)


def effects(found: Evidence, baselines: Mapping[str, tuple[str, ...]], metric: str) -> Iterator[Effect]:
    """Yield the effect of each method on each task that it shares with its baseline, and then over all of these."""
    if found.reference is not None and {*HEADINGS.values()} <= {*found.reference.table}:
        yield from reference_effects(found.reference.table, baselines, metric)
        return
    for baseline, methods in baselines.items():
        for method in methods:
            of = {"method": method, "baseline": baseline, "metric": metric}
            every = []
            for task in found.tasks:
                if not {(task, method), (task, baseline)}.issubset(found.pairs):
                    continue
                apart = differences(found, task, method, baseline, metric)
                sd = spread(found, task, baseline, metric, apart.index)
                every.append(apart / sd if sd > 0 else apart * np.nan)
                yield effect(every[-1], float(apart.mean()), sd, task=task, **of)
            if len(every) > 1:
                # A task on which nothing varies has no unit, and is left out.
                over = pd.concat(every, axis=1).dropna(axis=1, how="all").dropna().mean(axis=1)
                yield effect(over, np.nan, np.nan, task=ALL, **of)


def reference_effects(table: pd.DataFrame, baselines: Mapping[str, tuple[str, ...]], metric: str) -> Iterator[Effect]:
    """Yield the effects that a reference table of effects has of these methods."""
    wanted = {(method, baseline) for baseline, methods in baselines.items() for method in methods}
    rows = table[table["metric"] == metric].rename(columns={words: name for name, words in HEADINGS.items()})
    for row in rows[list(Effect._fields)].itertuples(index=False, name=None):
        one = Effect._make(row)
        if (one.method, one.baseline) in wanted:
            yield one

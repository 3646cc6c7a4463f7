"""The primary analyses of the atlas: effects of interventions on uncertainty, and whether calibration helps the search.

docs/results/atlas-protocol.md has the list, which was fixed before the first trial that is kept, and the error rates.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from plumbline.statistics.means import Mean
from plumbline.statistics.multiple_tests import holm

Pair = tuple[str, str]
"""A method and its baseline."""


class Intervention(NamedTuple):
    """Methods that differ from their baselines in one thing.

    Attributes:
        words: that thing, as tables, figures and the protocol call it.
        pairs: the methods with their baselines, over which the primary analysis is.
        further: pairs of the atlas that differ in the same thing, and stand beside it: the protocol does not name them.
    """

    words: str
    pairs: tuple[Pair, ...]
    further: tuple[Pair, ...] = ()

    @property
    def single_pairs(self) -> tuple[Pair, ...]:
        """The pairs that have an analysis of their own; one that is all of the primary one has none."""
        every = (*self.pairs, *self.further)
        return every if len(every) > 1 else ()


INTERVENTIONS = (
    Intervention(
        "recalibrated, models trained on each split",
        (("atlas-calibrated-logei", "atlas-logei"), ("atlas-calibrated-ucb", "atlas-ucb")),
    ),
    Intervention(
        "recalibrated in closed form",
        (("atlas-calibrated-logei-closed", "atlas-logei"), ("atlas-calibrated-ucb-closed", "atlas-ucb")),
    ),
    Intervention(
        "conformal",
        (("atlas-cei", "atlas-ei"), ("atlas-cucb", "atlas-ucb-level")),
        further=(("atlas-cnei", "atlas-nei"),),
    ),
    Intervention(
        "recalibrated online",
        (("atlas-ocbo", "atlas-ei"), ("atlas-locbo-everywhere", "atlas-ei")),
    ),
    Intervention(
        "localised",
        (("atlas-ocbo-l", "atlas-ocbo"), ("atlas-locbo", "atlas-locbo-everywhere")),
    ),
    Intervention("sparse process refined with the query", (("eulbo-ei", "elbo-ei"),)),
    Intervention(
        "guarded",
        (("atlas-guarded-logei", "atlas-logei"), ("atlas-guarded-jes", "atlas-jes")),
    ),
)
"""The first seven primary analyses: differences of scores."""

PLACEBOS = (
    Intervention(
        "half the weight of the standard deviation",
        (("atlas-ucb-narrow", "atlas-ucb"),),
    ),
    Intervention(
        "twice the weight of the standard deviation",
        (("atlas-ucb-wide", "atlas-ucb"),),
    ),
)
"""A standard deviation that is wrong in a known way; shown beside them, without a test."""

FEWEST_SEEDS = 3
"""For a correlation over seeds."""

FEWEST_METHODS = 8
"""For a correlation over methods."""


LEVEL = 0.05
"""Of the primary analyses, two-sided, after Holm's correction."""


class Finding(NamedTuple):
    """A mean over tasks with its 95% interval.

    Attributes:
        analysis: what is measured, in words.
        of: the column of trials whose difference it is (`score`, `calibration_error`, ...), or `correlation`.
        tasks: number of them.
        value, low, high: the mean and its interval; NaN with fewer than two tasks.
        p: two-sided, of a mean of zero.
        p_corrected: by Holm's method over the primary analyses; NaN of one that is none.
        where: the part of the tasks, rounds or pairs that it is about; empty for all.
    """

    analysis: str
    of: str
    tasks: int
    value: float
    low: float
    high: float
    p: float
    p_corrected: float = np.nan
    where: str = ""

    @property
    def direction(self) -> int:
        """-1 or 1 if the value is shown to lie below or above zero, else 0.

        A primary analysis shows it by its corrected test, all others by their intervals.
        """
        excluded = self.low > 0 or self.high < 0
        shown = excluded if np.isnan(self.p_corrected) else self.p_corrected <= LEVEL
        return int(np.sign(self.value)) if shown else 0


def mean_over_tasks(values: pd.Series, analysis: str, of: str) -> Finding:
    """Return the mean of one number per task; tasks without one are left out."""
    known = values.dropna().to_numpy(dtype=float)
    if len(known) < 2:
        return Finding(analysis, of, len(known), value=np.nan, low=np.nan, high=np.nan, p=np.nan)
    mean = Mean(known, f"atlas {analysis} {of}")
    return Finding(analysis, of, len(known), mean.value, *mean.interval(), mean.p_two_sided())


def differences(trials: pd.DataFrame, pairs: Sequence[Pair], metric: str) -> pd.Series:
    """Return the mean difference of a metric, method minus baseline, of each task: over shared seeds, then over pairs.

    A task that lacks one of the pairs has NaN.

    Args:
        trials: as `scores.trials` returns them.
        pairs: methods with their baselines.
        metric: a column of `trials`.
    """
    concerned = trials[trials["method"].isin(names := sorted({name for pair in pairs for name in pair}))]
    by_method = concerned.pivot_table(index=["task", "seed"], columns="method", values=metric, observed=True)
    by_method = by_method.reindex(columns=names)
    found = [
        (by_method[method] - by_method[baseline]).groupby(level="task", observed=True).mean()
        for method, baseline in pairs
    ]
    return pd.concat(found, axis=1).mean(axis=1, skipna=False)


def within_methods(trials: pd.DataFrame) -> pd.Series:
    """Return, of each task, the mean over methods of Spearman's correlation over seeds of `first_half` with `final`."""
    return _correlations(trials, "first_half", "final", ["task", "method"], FEWEST_SEEDS).groupby(level="task").mean()


def across_methods(trials: pd.DataFrame) -> pd.Series:
    """Return, of each task, Spearman's correlation over methods of mean calibration error with mean score."""
    means = trials.groupby(["task", "method"], observed=True)[["calibration_error", "score"]].mean().reset_index()
    return _correlations(means, "calibration_error", "score", ["task"], FEWEST_METHODS)


def _correlations(rows: pd.DataFrame, x: str, y: str, within: list[str], fewest: int) -> pd.Series:
    """Return Spearman's correlation in each group of at least `fewest` rows in which both vary."""
    known = rows.dropna(subset=[x, y])
    groups = known.groupby(within, observed=True)
    varied = (groups[[x, y]].transform("max") > groups[[x, y]].transform("min")).all(axis=1)
    enough = groups[x].transform("size") >= fewest
    if not (varied & enough).any():
        return pd.Series(dtype=float, index=pd.MultiIndex.from_product([[]] * len(within), names=within))
    kept = known[varied & enough].groupby(within, observed=True)[[x, y]]
    return kept.corr(method="spearman")[x].xs(y, level=-1)


CORRELATIONS: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {
    "seeds: calibration error of the first half with final regret": within_methods,
    "methods: calibration error with score": across_methods,
}
"""The last two primary analyses."""


def primary(trials: pd.DataFrame) -> list[Finding]:
    """Return the primary analyses, with Holm's correction over them.

    Args:
        trials: as `scores.trials` returns them, of tasks of one objective without constraints.
    """
    found = [mean_over_tasks(differences(trials, one.pairs, "score"), one.words, "score") for one in INTERVENTIONS]
    found += [mean_over_tasks(of(trials), words, "correlation") for words, of in CORRELATIONS.items()]
    corrected = holm([1.0 if np.isnan(one.p) else one.p for one in found])
    # What could not be tested counts in the correction, and has no probability of its own.
    return [
        one._replace(p_corrected=p if np.isfinite(one.p) else np.nan) for one, p in zip(found, corrected, strict=True)
    ]


def beside(trials: pd.DataFrame) -> list[Finding]:
    """Return what stands beside the primary analyses: changes of calibration, and placebos."""
    found = [
        mean_over_tasks(differences(trials, one.pairs, "calibration_error"), one.words, "calibration_error")
        for one in (*INTERVENTIONS, *PLACEBOS)
    ]
    return found + [mean_over_tasks(differences(trials, one.pairs, "score"), one.words, "score") for one in PLACEBOS]


DIMENSIONS = {"1 to 3 inputs": (1, 3), "4 to 10 inputs": (4, 10), "more than 10 inputs": (11, 10**9)}
"""Groups of tasks by the number of their inputs."""

TRACK = "track "
"""What a part of the findings begins with that is a track."""

OTHER_REGRETS = {
    "early": "first ten rounds",
    "final": "after the last round",
    "observed": "best observation",
    "recommended": "recommended point",
}
"""Regrets beside the score, with their words."""


def secondary(trials: pd.DataFrame, tasks: pd.DataFrame) -> list[Finding]:
    """Return the secondary analyses: parts of the tasks, single pairs, and other measures of what is found.

    Args:
        trials: as of `primary`.
        tasks: as `edition.read_tasks` returns them.
    """
    about = tasks.set_index("task")
    groups = {f"{TRACK}{track}": of.index for track, of in about.groupby("track", sort=False)}
    for words, (low, high) in DIMENSIONS.items():
        groups[words] = about.index[about["inputs"].between(low, high)]
    there = {words: names for words, names in groups.items() if trials["task"].isin(names).any()}
    found = []
    for one in INTERVENTIONS:
        scores = differences(trials, one.pairs, "score")
        for words, names in there.items():
            found.append(_at(scores[scores.index.isin(names)], one.words, "score", words))
        for pair in one.single_pairs:
            found.append(_at(differences(trials, [pair], "score"), one.words, "score", f"{pair[0]} minus {pair[1]}"))
        for metric, words in OTHER_REGRETS.items():
            found.append(_at(differences(trials, one.pairs, metric), one.words, metric, words))
    return found


def _at(values: pd.Series, analysis: str, of: str, where: str) -> Finding:
    return mean_over_tasks(values, f"{analysis}, {where}", of)._replace(analysis=analysis, where=where)


def findings(trials: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return all analyses, primary ones first, a row each with the columns of `Finding`.

    Args:
        trials: as `scores.trials` returns them; those of several objectives or with constraints are left out.
        tasks: as of `secondary`.
    """
    single = trials[trials["task"].isin(tasks.loc[tasks["measure"] == "value", "task"])]
    found = [*primary(single), *beside(single), *secondary(single, tasks)]
    return pd.DataFrame(found, columns=list(Finding._fields))

"""What of an experiment is shown first in MLflow: the metrics of its figure, in the sign of its figure."""

from collections.abc import Collection, Iterator
from typing import Any

from plumbline.metrics.registry import METRICS
from plumbline.study.experiments import Experiment
from plumbline.tracking.runs import MARK

CORE = ("best_f", "regret", "hypervolume", "query_coverage", "calibration_score", "nll", MARK)
"""What most experiments have."""

COUNT = 6
"""Metrics that a list of runs shows: no more columns are seen at once."""


def minimises(experiment: Experiment) -> bool:
    """Return whether the figure of an experiment shows a problem that is minimised: records hold what is maximised."""
    return experiment.figure is not None and any(_values(experiment.figure.options, "minimise"))


def figure_metrics(experiment: Experiment) -> list[str]:
    """Return the metrics of an experiment's figure and table, in their order."""
    options = [output.options for output in (experiment.figure, experiment.table) if output is not None]
    named = [name for name in _values(options, "metric", "metrics") if isinstance(name, str)]
    return list(dict.fromkeys(name for name in named if name in METRICS))


def core_metrics(experiment: Experiment) -> list[str]:
    """Return the metrics whose means are drawn, those of the figure first."""
    return list(dict.fromkeys([*figure_metrics(experiment), *CORE]))


def first_metrics(core: Collection[str], present: Collection[str]) -> list[str]:
    """Return those of `core` that runs have, `COUNT` at most."""
    return [name for name in core if name in present][:COUNT]


def _values(tree: Any, *keys: str) -> Iterator[Any]:
    """Yield the values under any of `keys` in nested options; of a list each, of a mapping its names."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key in keys:
                yield from value if isinstance(value, dict | list | tuple) else [value]
            else:
                yield from _values(value, *keys)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _values(value, *keys)

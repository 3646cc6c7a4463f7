"""Saved views of an MLflow experiment: which runs it lists, in which columns, grouped by what, with which charts.

MLflow keeps a view that was shared in a tag of its experiment, as JSON, and lists it under *Views*. The format is
that of its user interface; a version that does not know it says so, and shows its own columns.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlflow import MlflowClient

from plumbline.metrics.registry import find_metric
from plumbline.tracking.addresses import FIRST, OURS, TAG, view_address
from plumbline.tracking.runs import ENDS, KIND, METHOD, NOTE_TAG, NOTES, TASK, clip, shown_as

WIDTHS = {"task": 130, "method": 130, "seed": 60, "seeds": 60}
"""Pixels of the columns of parameters; metrics have `WIDTH`."""
WIDTH = 105

LONGEST_NOTE = 5000
"""Characters of a tag of an experiment."""

CORE, BANDS = "core", "bands"
"""Keys of our sections of charts: the first metrics, and means between the ends of their intervals."""

SECTIONS = {CORE: "first metrics", "other": "Model metrics", "system": "System metrics"}
"""Names of sections by their keys, all but the first closed: MLflow puts metrics without a slash into the second."""
OF_TRIALS = {NOTES: NOTES.rstrip("/")}
OF_MEANS = {BANDS: "means with 95% intervals", ENDS: ENDS.rstrip("/")}
"""Those of trials alone, and those of means."""


@dataclass(frozen=True)
class View:
    """A saved view.

    Attributes:
        key: what its address names it by.
        name: in the list of views.
        search: which runs it lists.
        params: its first columns.
        metrics: the others; each has a chart.
        order: what runs are listed by, and whether the least comes first.
        group: the tag that runs are grouped by; empty for none.
        curves: whether its address opens the charts, and not the list.
        bands: whether the metrics are means with intervals.
    """

    key: str
    name: str
    search: str
    params: tuple[str, ...]
    metrics: tuple[str, ...]
    order: tuple[str, bool]
    group: str = ""
    curves: bool = False
    bands: bool = False

    def state(self) -> dict[str, Any]:
        """Return the state of the user interface that shows the view."""
        widths = {f"params.`{name}`": WIDTHS[name] for name in self.params}
        widths |= {f"metrics.`{name}`": WIDTH for name in self.metrics}
        ends = [(name, f"{ENDS}{name}.low", f"{ENDS}{name}.high") for name in self.metrics] if self.bands else []
        group = {"aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": self.group}]}
        return {
            "searchFilter": self.search,
            "orderByKey": self.order[0],
            "orderByAsc": self.order[1],
            "startTime": "ALL",
            "lifecycleFilter": "Active",
            "datasetsFilter": [],
            "modelVersionFilter": "All Runs",
            "selectedColumns": list(widths),
            "columnOrder": list(widths),
            "columnWidths": widths,
            "groupBy": group if self.group else None,
            "compareRunCharts": [
                *(_chart(CORE, name) for name in self.metrics),
                *(_chart(BANDS, *names) for names in ends),
            ],
            "compareRunSections": [
                {
                    "uuid": key,
                    "name": name,
                    "display": key == CORE,
                    "isReordered": True,
                    "deleted": False,
                    "isGenerated": False,
                }
                for key, name in (SECTIONS | (OF_MEANS if self.bands else OF_TRIALS)).items()
            ],
            "isAccordionReordered": True,
            "useGroupedValuesInCharts": True,
            "hideEmptyCharts": True,
            "runsHiddenMode": "FIRST_20_RUNS",
        }


def _chart(section: str, *metrics: str) -> dict[str, Any]:
    """A chart of metrics against evaluations."""
    return {
        "uuid": f"{OURS}{section}.{metrics[0]}",
        "type": "LINE",
        "metricKey": metrics[0],
        "selectedMetricKeys": metrics,
        "displayName": metrics[0],
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
        "runsCountToCompare": 20,
        "xAxisKey": "step",
        "selectedXAxisMetricKey": "",
        "xAxisScaleType": "linear",
        "scaleType": "linear",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "range": {},
        "lineSmoothness": 0,
        "ignoreOutliers": False,
        "useGlobalXaxisKey": True,
        "useGlobalLineSmoothing": True,
    }


def views_of(tasks: Sequence[str], metrics: Sequence[str], minimised: bool) -> list[View]:
    """Return the views of an experiment: all trials in a list, then means and trials of each task, in charts.

    A task has charts of its own: curves of several would be in one chart.

    Args:
        tasks: of the experiment.
        metrics: names in the registry of those that are shown, one at least.
        minimised: whether the experiment's figure minimises.
    """
    shown = {name: shown_as(name, minimised) for name in metrics}
    labels = tuple(label for label, _ in shown.values())
    directed = next((name for name in metrics if find_metric(name).better), metrics[0])
    label, sign = shown[directed]
    order = (f"metrics.`{label}`", (find_metric(directed).better == "lower") == (sign > 0))
    several = ("task",) if len(tasks) > 1 else ()
    by_name = ("tags.`mlflow.runName`", True)
    views = [View(FIRST, "all trials", f"tags.{KIND} = 'trial'", (*several, "method", "seed"), labels, by_name)]
    for task in tasks:
        means, trials = (f"tags.{KIND} = '{kind}' and tags.{TASK} = '{task}'" for kind in ("mean", "trial"))
        views += [
            View(f"means.{task}", f"{task}: means", means, ("method", "seeds"), labels, order, curves=True, bands=True),
            View(f"{FIRST}.{task}", f"{task}: trials", trials, ("method", "seed"), labels, order, METHOD, curves=True),
        ]
    return views


def view_tags(experiment: str, created: int, views: Sequence[View], title: str, source: str) -> dict[str, str]:
    """Return the tags of an MLflow experiment that hold its views, and links to them in what its page says.

    Args:
        experiment: its id.
        created: when it was, in milliseconds since 1970.
        views: that it is to have.
        title: of the experiment.
        source: the document that it is from.
    """
    links = [f"[{view.name}]({view_address(experiment, view.key, view.curves)})" for view in views]
    while len(note := "\n\n".join([title, ", ".join(links), source])) > LONGEST_NOTE and links[1:]:
        links = [*links[:-2], "others under *Views*"]
    return {
        f"{TAG}{OURS}{view.key}": json.dumps(
            {"name": view.name, "createdAt": created, "updatedAt": created, "state": _packed(view.state())}
        )
        for view in views
    } | {NOTE_TAG: clip(note, LONGEST_NOTE)}


def save_tags(client: MlflowClient, experiment: str, wanted: Mapping[str, str]) -> None:
    """Give an MLflow experiment its tags and remove views of ours that it has not; what is there already stays."""
    found = client.get_experiment(experiment).tags
    for key in [key for key in found if key.startswith(f"{TAG}{OURS}") and key not in wanted]:
        client.delete_experiment_tag(experiment, key)
    for key, value in wanted.items():
        if found.get(key) != value:
            client.set_experiment_tag(experiment, key, value)


def _packed(state: dict[str, Any]) -> str:
    """Return a state in the user interface's own compression: tags of experiments are limited to 5,000 characters."""
    return f"deflate;{base64.b64encode(zlib.compress(json.dumps(state).encode(), 9)).decode()}"

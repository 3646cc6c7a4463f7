"""Saved views of an experiment."""

import base64
import json
import re
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.tracking import views
from plumbline.tracking.addresses import FIRST


def unpacked(tag: str) -> tuple[str, dict[str, Any]]:
    """Return name and state of a view as MLflow's user interface reads them."""
    envelope = json.loads(tag)
    assert {type(envelope[name]) for name in ("createdAt", "updatedAt")} == {int}
    kind, packed = envelope["state"].split(";")
    assert kind == "deflate"
    return envelope["name"], json.loads(zlib.decompress(base64.b64decode(packed)))


def tags(tasks: list[str], metrics: list[str], minimised: bool = False) -> dict[str, str]:
    return views.view_tags("7", 12, views.views_of(tasks, metrics, minimised), "A title", "A source.")


def test_views_of_two_tasks() -> None:
    made = tags(["branin", "levy-5"], ["best_f", "nll"])
    states = dict(unpacked(value) for key, value in made.items() if key.startswith("mlflow.sharedViewState."))
    assert [*states] == ["all trials", "branin: means", "branin: trials", "levy-5: means", "levy-5: trials"]
    columns = ["params.`method`", "params.`seed`", "metrics.`best_f`", "metrics.`nll`"]
    assert states["all trials"]["selectedColumns"] == ["params.`task`", *columns]
    assert states["all trials"]["orderByKey"] == "tags.`mlflow.runName`"
    trials = states["levy-5: trials"]
    assert trials["searchFilter"] == "tags.kind = 'trial' and tags.task = 'levy-5'"
    assert trials["selectedColumns"] == columns
    assert (trials["orderByKey"], trials["orderByAsc"]) == ("metrics.`best_f`", False)
    assert trials["groupBy"]["groupByKeys"] == [{"mode": "tag", "groupByData": "method"}]
    assert [chart["selectedMetricKeys"] for chart in trials["compareRunCharts"]] == [["best_f"], ["nll"]]
    means = states["levy-5: means"]
    assert means["searchFilter"] == "tags.kind = 'mean' and tags.task = 'levy-5'"
    assert means["groupBy"] is None
    drawn = {chart["metricSectionId"]: chart["selectedMetricKeys"] for chart in means["compareRunCharts"]}
    assert drawn == {"core": ["nll"], "bands": ["nll", "interval/nll.low", "interval/nll.high"]}


@pytest.mark.parametrize(
    ("view", "folded"),
    [
        ("trials", {"Model metrics", "System metrics", "notes"}),
        ("trials.branin", {"Model metrics", "System metrics", "notes"}),
        ("means.branin", {"Model metrics", "System metrics", "means with 95% intervals", "interval"}),
    ],
)
def test_what_is_not_of_the_first_metrics_is_folded(view: str, folded: set[str]) -> None:
    _, state = unpacked(tags(["branin"], ["regret"])[f"mlflow.sharedViewState.plumbline.{view}"])
    shown = {section["name"]: section["display"] for section in state["compareRunSections"]}
    assert {name for name, open in shown.items() if not open} == folded
    assert {name for name, open in shown.items() if open} == {"first metrics"}
    sections = {section["uuid"] for section in state["compareRunSections"]}
    assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} <= sections


@pytest.mark.parametrize(
    ("metrics", "minimised", "order"),
    [
        (["best_f"], False, ("metrics.`best_f`", False)),
        (["best_f"], True, ("metrics.`least_f`", True)),
        (["regret"], True, ("metrics.`regret`", True)),
        (["query_coverage", "nll"], False, ("metrics.`nll`", True)),
        (["query_coverage"], False, ("metrics.`query_coverage`", False)),
    ],
)
def test_the_best_comes_first(metrics: list[str], minimised: bool, order: tuple[str, bool]) -> None:
    _, of_task, _ = views.views_of(["branin"], metrics, minimised)
    assert of_task.order == order


def test_a_page_links_to_its_views() -> None:
    note = tags(["branin"], ["regret"])["mlflow.note.content"]
    assert note.startswith("A title\n\n[all trials](#/experiments/7/runs?")
    assert note.endswith("\n\nA source.")
    assert re.findall(r"viewStateShareKey=plumbline\.([^&)]*)(&compareRunsMode=CHART)?", note) == [
        (FIRST, ""),
        ("means.branin", "&compareRunsMode=CHART"),
        ("trials.branin", "&compareRunsMode=CHART"),
    ]


@pytest.mark.slow
@given(st.integers(1, 60), st.integers(1, 100), st.integers(0, 6000))
def test_tags_are_as_long_as_mlflow_takes(count: int, length: int, title: int) -> None:
    tasks = [f"{i}-{'x' * length}" for i in range(count)]
    made = views.view_tags("7", 12, views.views_of(tasks, ["regret", "nll"], False), "t" * title, "A source.")
    assert max(map(len, made.values())) <= 5000
    assert len(made) == 2 * count + 2, "a view that is not linked is there all the same"

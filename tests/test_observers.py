"""What watches a trial."""

import io
from collections.abc import Callable

import pytest

from plumbline.observers import LineLog, ProgressBar, title
from plumbline.specs import TrialSpec

ROW = {"iteration": 2, "y": [1.23456789], "best_y": 3.5, "events": []}


@pytest.fixture
def spec(cheap_spec: Callable[..., TrialSpec]) -> TrialSpec:
    return cheap_spec({"name": "ackley-2", "label": "hole"}, label="dice", seed=7, rounds=9)


def test_title(spec: TrialSpec) -> None:
    assert title(spec) == "hole dice seed 7"


def test_a_line_a_round(spec: TrialSpec) -> None:
    stream = io.StringIO()
    log = LineLog(stream)
    log.start("k", spec, 0)
    log.round([ROW, {**ROW, "events": ["NumericalWarning"]}], {"round_seconds": 0.125})
    log.round([ROW], {"round_seconds": 0.125})
    log.end(None)
    lines = [line[9:] for line in stream.getvalue().splitlines()]
    assert lines == [
        "hole dice seed 7: trial k, 9 rounds",
        "hole dice seed 7: round 2/9 y=1.2346 best=3.5 0.12 s [NumericalWarning]",
        "hole dice seed 7: round 2/9 y=1.2346 best=3.5 0.12 s",
        "hole dice seed 7: done",
    ]


def test_where_it_goes_on_from_and_how_it_failed(spec: TrialSpec) -> None:
    stream = io.StringIO()
    log = LineLog(stream)
    log.start("k", spec, 4)
    log.end("no luck")
    first, last = stream.getvalue().splitlines()
    assert first.endswith("going on after round 4")
    assert last.endswith("failed: no luck")


def test_a_bar(spec: TrialSpec) -> None:
    bar = ProgressBar()
    try:
        bar.start("k", spec, 3)
        bar.round([{**ROW, "iteration": 0}], {})
        assert bar.progress.tasks[0].completed == 3, "the initial design is no round"
        bar.round([ROW], {})
        assert bar.progress.tasks[0].completed == 4
        assert bar.progress.tasks[0].total == 9
        bar.end("no luck")
        bar.start("l", spec.with_seed(8), 0)
        assert [task.description for task in bar.progress.tasks] == ["hole dice seed 7", "hole dice seed 8"]
    finally:
        bar.close()

"""What watches a trial."""

import io
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from plumbline.store.observers import Best, LastRound, LineLog, ProgressBars, title
from plumbline.store.spec import TrialSpec

SECONDS = {"round_seconds": 0.125}


def row(iteration: int, *y: float, events: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"iteration": iteration, "y": list(y), "events": list(events)}


class Clock:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def spec(cheap_spec: Callable[..., TrialSpec]) -> TrialSpec:
    return cheap_spec("ackley-2", task="hole", label="dice", seed=7, rounds=9)


def test_title(spec: TrialSpec) -> None:
    assert title(spec) == "hole dice seed 7"


def lines_of(stream: io.StringIO) -> list[str]:
    return [line[9:] for line in stream.getvalue().splitlines()]


def test_a_line_a_round(spec: TrialSpec) -> None:
    stream = io.StringIO()
    log = LineLog(stream)
    log.start("k", spec, 0, -inf)
    log.round([row(1, 3.5), row(1, 1.23456789, events=("NumericalWarning",))], SECONDS)
    log.round([row(2, 1.0)], SECONDS)
    log.end(None)
    assert lines_of(stream) == [
        "hole dice seed 7: trial k, 9 rounds",
        "hole dice seed 7: round 1/9 y=1.2346 best 3.5 0.12 s [NumericalWarning]",
        "hole dice seed 7: round 2/9 y=1 best 3.5 0.12 s",
        "hole dice seed 7: done",
    ]


def test_a_line_a_second_between_the_first_few_and_the_last(spec: TrialSpec) -> None:
    stream, clock = io.StringIO(), Clock()
    log = LineLog(stream, clock, first=2)
    log.start("k", spec, 0, -inf)
    for iteration in range(10):
        log.round([row(iteration, float(iteration))], SECONDS)
        clock.now += 0.4
    rounds = [line.split()[5] for line in lines_of(stream) if " round " in line]
    assert rounds == ["0/9", "1/9", "4/9", "7/9", "9/9"]
    log.start("k", spec, 8, 3.5)
    log.round([row(9, 0.0)], SECONDS)
    assert " best 3.5 " in lines_of(stream)[-1], "of the rounds before it is the best"


def test_where_it_goes_on_from_and_how_it_failed(spec: TrialSpec) -> None:
    stream = io.StringIO()
    log = LineLog(stream)
    log.start("k", spec, 4, -inf)
    log.end("no luck")
    first, last = stream.getvalue().splitlines()
    assert first.endswith("going on after round 4")
    assert last.endswith("failed: no luck")


def test_words_with_line_ends_are_a_line(spec: TrialSpec) -> None:
    stream = io.StringIO()
    log = LineLog(stream)
    log.start("k", spec.model_copy(update={"task": "two\nlines"}), 0, -inf)
    log.end("one\r\nanother\u2028third")
    assert [line.count(" ") for line in stream.getvalue().splitlines()] == [9, 9]
    assert stream.getvalue().count("\n") == 2


def test_several_outcomes_have_no_best(spec: TrialSpec) -> None:
    stream = io.StringIO()
    log = LineLog(stream)
    log.start("k", spec, 0, -inf)
    log.round([row(1, 3.5, float("nan"))], SECONDS)
    assert lines_of(stream)[-1] == "hole dice seed 7: round 1/9 y=3.5, nan 0.12 s"


def test_what_failed_is_not_the_best() -> None:
    best = Best()
    best.add([row(1, float("nan"))])
    assert str(best) == ""
    best.add([row(1, 2.0), row(1, float("nan")), row(1, 1.0)])
    assert str(best) == "best 2"


def test_bars(spec: TrialSpec) -> None:
    bars = ProgressBars()
    try:
        bar, other = bars.bar(), bars.bar()
        bar.start("k", spec, 3, 0.75)
        assert bars.progress.tasks[0].fields["best"] == "best 0.75"
        other.start("l", spec.with_seed(8), 0, -inf)
        bar.round([row(0, 1.0)], SECONDS)
        assert bars.progress.tasks[0].completed == 3, "the initial design is no round"
        bar.round([row(1, 0.5)], SECONDS)
        assert bars.progress.tasks[0].completed == 4
        assert bars.progress.tasks[0].total == 9
        assert bars.progress.tasks[0].fields["best"] == "best 1"
        assert bars.progress.tasks[1].completed == 0, "trials in lockstep have a bar each"
        bar.end("no luck")
        assert [task.description for task in bars.progress.tasks] == ["hole dice seed 7", "hole dice seed 8"]
    finally:
        bars.close()


MARKUP = ["[bold]", "[/bold]", "[/x] there", "[red", "[link=x]y", ":smile:", "\\[bold]", "[]", "[/]"]


@pytest.mark.parametrize("words", MARKUP)
def test_words_are_no_markup(words: str, spec: TrialSpec, capsys: pytest.CaptureFixture[str]) -> None:
    odd = spec.model_copy(update={"task": words})
    bars = ProgressBars()
    try:
        bar = bars.bar()
        bar.start("k", odd, 0, -inf)
        bar.round([row(1, 0.5)], SECONDS)
        bar.end(f"{words} is no number")
    finally:
        bars.close()
    output, errors = capsys.readouterr()
    assert output == "", "standard output is for the evaluations"
    assert f"failed: {words} is no number" in errors
    assert f"{words} dice seed 7" in errors


def test_an_interrupt_is_told_the_last_round(spec: TrialSpec) -> None:
    last = LastRound()
    with pytest.raises(KeyboardInterrupt) as early, last.noted():
        raise KeyboardInterrupt
    assert not hasattr(early.value, "__notes__")
    last.start("k", spec, 2, -inf)
    for expected in (2, 3):
        with pytest.raises(KeyboardInterrupt) as stop, last.noted():
            raise KeyboardInterrupt
        assert stop.value.__notes__ == [f"hole dice seed 7: interrupted after round {expected}"]
        last.round([row(3, 0.5)], SECONDS)
    last.end(None)
    with pytest.raises(ValueError, match="no note"), last.noted():
        raise ValueError("no note")


@pytest.mark.parametrize(("reasons", "end"), [(True, "failed: no luck"), (False, "failed")])
def test_a_reason_that_somebody_else_tells_is_not_in_the_log(reasons: bool, end: str, spec: TrialSpec) -> None:
    stream = io.StringIO()
    log = LineLog(stream, reasons=reasons)
    log.start("k", spec, 0, -inf)
    log.end("no luck")
    assert lines_of(stream)[-1] == f"hole dice seed 7: {end}"

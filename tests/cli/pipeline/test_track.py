"""The command that imports trials into MLflow."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from plumbline.store.spec import TrialSpec
from plumbline.study.legends import Legend

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.usefixtures("tiny")
def test_tracked_runs_have_the_colours_of_figures(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("plumbline.tracking.importing.import_trials", lambda *arguments: asked.extend(arguments))
    assert run("track", "--artifacts", ".")[0] == 0
    experiment, colours = asked[0].experiments["TINY-T1"], asked[8]
    legends = {
        "ucb": Legend(label="UCB", colour="#336699"),
        "ucb-code": Legend(label="UCB, code", colour="#336699", dashed=True),
    }
    assert colours(replace(experiment, legends=legends)) == {"ucb": "#336699", "ucb-code": "#99b2cc"}

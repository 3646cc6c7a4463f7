"""Figures of experiments without trials: drawn from the table of an illustration, and nothing cut off in silence."""

import re
from pathlib import Path

import made_evidence as made
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from illustrated_cases import build, labels

from plumbline.analysis.evidence.evidence import Evidence, evidence
from plumbline.analysis.outputs.draw import draw
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.errors import PlumblineError
from plumbline.study.resolved import ResolvedExperiment

KINDS = list(made.ILLUSTRATED)


def experiment_of(kind: str) -> ResolvedExperiment:
    output = {"kind": kind}
    return made.plan({"E": {"title": "No trials", "illustration": output, "figure": output, "quick": {}}}).resolve("E")


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    @pytest.mark.slow
    def test_it_is_drawn_and_says_what_it_is(self, kind: str, folder: Path) -> None:
        before = dict(mpl.rcParams)
        outputs = [folder / "E.svg", folder / "E.png"]
        draw(experiment_of(kind), made.illustrated(kind), outputs)
        draw(experiment_of(kind), made.illustrated(kind), [folder / "again.svg"])
        assert dict(mpl.rcParams) == before
        assert plt.get_fignums() == []
        text = outputs[0].read_text(encoding="utf-8")
        shown = figures[kind].options().shown(Evidence())
        assert shown
        for part in (shown, "preset quick", "1 seed", "illustration"):
            assert "".join(part.split()) in "".join(re.sub("<[^>]*>", "", text).split())
        assert "evaluations" not in text
        assert np.std(plt.imread(outputs[1])[..., :3]) > 0.01
        assert outputs[0].read_bytes() == (folder / "again.svg").read_bytes()

    def test_the_table_is_left_as_it_was(self, kind: str) -> None:
        found = made.illustrated(kind)
        before = found.illustration.copy()
        figures[kind].build(found, figures[kind].options())
        pd.testing.assert_frame_equal(found.illustration, before)

    def test_axes_are_labelled_and_the_legend_is_outside(self, kind: str) -> None:
        figure = build(kind)
        assert any(ax.get_xlabel() for ax in figure.axes)
        assert any(ax.get_ylabel() for ax in figure.axes)
        assert len(figure.legends) == 1
        assert not any(ax.get_legend() for ax in figure.axes)
        assert len(labels(figure)) == len(set(labels(figure)))

    def test_without_an_illustration_it_is_one_line(self, kind: str, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="nothing to draw"):
            draw(experiment_of(kind), Evidence(), [folder / "E.svg"])

    def test_an_illustration_of_another_kind_is_one_line(self, kind: str, folder: Path) -> None:
        other = Evidence(illustration=made.shown("elsewhere", "nothing"))
        with pytest.raises(PlumblineError, match="another kind than the illustration"):
            draw(experiment_of(kind), other, [folder / "E.svg"])

    def test_it_is_read_from_a_file(self, kind: str, folder: Path) -> None:
        found = made.illustrated(kind)
        found.illustration.to_parquet(folder / "E.parquet")
        again = evidence(None, illustration=folder / "E.parquet")
        pd.testing.assert_frame_equal(again.illustration, found.illustration)
        assert again.rows.empty
        assert again.seeds == 0

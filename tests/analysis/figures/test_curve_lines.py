"""Lines that are differences of methods, and lines against time."""

import dataclasses

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from figure_cases import build, experiment_of

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.curve_lines import in_time
from plumbline.analysis.outputs.draw import columns_for
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.metrics.registry import by_round


class TestDifferences:
    def test_a_row_is_less_a_method_seed_by_seed(self, found: Evidence) -> None:
        rows = [{"metric": "regret", "label": "less plain", "minus": "plain"}]
        ax = build("curves", found, rows=rows, band="mean-error", queries=False).axes[0]
        lines = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.get_lines()}
        ours, theirs = (by_round(found.trials("bowl", method), "regret") for method in ("calibrated", "plain"))
        np.testing.assert_allclose(lines["calibrated"], (ours - theirs).mean())
        np.testing.assert_allclose(lines["plain"], 0.0)

    def test_or_the_first_of_each_panel(self, found: Evidence) -> None:
        rows = [{"metric": "regret", "label": "less the first", "minus": "first"}]
        panels = [{"task": "bowl", "methods": list(order)} for order in (made.METHODS, made.METHODS[::-1])]
        for ax, (first, second) in zip(
            build("curves", found, rows=rows, panels=panels, band="mean-error", queries=False).axes,
            (made.METHODS, made.METHODS[::-1]),
            strict=True,
        ):
            lines = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.get_lines()}
            ours, theirs = (by_round(found.trials("bowl", method), "regret") for method in (second, first))
            np.testing.assert_allclose(lines[second], (ours - theirs).mean())
            np.testing.assert_allclose(lines[first], 0.0)

    def test_a_method_that_is_not_there_is_one_line(self, found: Evidence) -> None:
        rows = [{"metric": "regret", "label": "less that", "minus": "nobody"}]
        with pytest.raises(PlumblineError, match="no trials of 'nobody'"):
            build("curves", found, rows=rows)


class TestAgainstTime:
    ROWS = ({"metric": "best_f", "label": "best"}, {"metric": "best_f", "label": "best", "against": "minutes"})

    @staticmethod
    def timed(found: Evidence, **seconds: list[float]) -> Evidence:
        """Rounds of each seed took so many seconds; the initial design took a day."""
        rows = found.rows.copy()
        each = pd.DataFrame(seconds).to_numpy()
        took = [each[i - 1, seed] if i else 86_400.0 for seed, i in zip(rows["seed"], rows["iteration"], strict=True)]
        return dataclasses.replace(found, rows=rows.assign(round_seconds=took))

    def test_what_each_seed_had_come_to_by_then(self) -> None:
        table = pd.DataFrame({0: [0.0, 10.0], 1: [1.0, 11.0], 2: [2.0, 12.0]})
        seconds = pd.DataFrame({1: [60.0, 120.0], 2: [60.0, 120.0]})
        minutes, values = in_time(table, seconds, moments=9)
        assert minutes.tolist() == [0.25 * i for i in range(9)]
        assert values[0].tolist() == [0.0] * 4 + [1.0] * 4 + [2.0]
        assert values[1].tolist() == [10.0] * 8 + [11.0]

    def test_the_initial_design_does_not_count_and_the_first_trial_to_end_ends_the_line(self, found: Evidence) -> None:
        slow, fast = [120.0] * made.ROUNDS, [60.0] * made.ROUNDS
        figure = build("curves", self.timed(found, a=slow, b=fast, c=slow), rows=self.ROWS, queries=True)
        by_evaluations, by_minutes = figure.axes[0], figure.axes[2]
        x = by_minutes.lines[0].get_xdata()
        assert (x[0], x[-1]) == (0.0, made.ROUNDS)
        assert by_evaluations.lines[0].get_xdata()[-1] == made.ROUNDS
        assert by_minutes.lines[0].get_ydata()[0] == by_evaluations.lines[0].get_ydata()[0]
        assert [ax.get_xlabel() for ax in (by_evaluations, by_minutes)] == ["queries", "minutes"]

    def test_its_columns_are_asked_for(self) -> None:
        assert "round_seconds" not in columns_for(experiment_of("curves"), "figure")
        timed = made.experiment(figure={"kind": "curves", "options": {"rows": [dict(row) for row in self.ROWS]}})
        assert "round_seconds" in columns_for(made.plan({"E": timed}).resolve("E"), "figure")

    @pytest.mark.parametrize("other", [{"minus": "plain"}, {"nominal": "mean_nominal_coverage"}])
    def test_differences_are_of_evaluations(self, other: dict[str, str]) -> None:
        rows = [{"metric": "best_f", "label": "best", "against": "minutes", **other}]
        with pytest.raises(PlumblineError, match="`minus` and `nominal` are drawn against evaluations"):
            parse(figures["curves"].options, {"rows": rows}, "test")

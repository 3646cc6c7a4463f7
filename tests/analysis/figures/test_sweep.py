"""Final values along a parameter of methods or of tasks."""

import dataclasses
from pathlib import Path

import made_evidence as made
import numpy as np
import pytest
from figure_cases import build, ends
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.core.errors import PlumblineError
from plumbline.statistics.over_seeds import mean_interval
from plumbline.study.legends import Legend


def knobs(folder: Path) -> Evidence:
    """Return evidence of methods that vary, of two that do not, and of one that varies something else."""
    regrets = {"cbo-0.1": 3.0, "cbo-0.4": 1.0, "cbo-wide-0.1": 7.0, "bo": 2.0, "random": 5.0, "tau-1e-2": 4.0}
    trials = [
        made.trial("bowl", method, seed, regret=lambda s, i, r=regret: r + 0.1 * s)
        for method, regret in regrets.items()
        for seed in range(2)
    ]
    legends = {
        "cbo-0.1": Legend(label="CBO", colour="green", entry="cbo", parameters={"alpha": 0.1}),
        "cbo-0.4": Legend(label="CBO", colour="green", entry="cbo", parameters={"alpha": 0.4}),
        "cbo-wide-0.1": Legend(label="wide CBO", entry="cbo-wide", parameters={"alpha": 0.1}),
        "bo": Legend(label="BO"),
        "tau-1e-2": Legend(label="tau", parameters={"tau": "1e-2"}),
    }
    return dataclasses.replace(made.read(folder, *trials), legends=legends)


def drawn_lines(ax: Axes) -> dict[str, list[tuple[float, float]]]:
    """Return the points of each line with bars, by its legend."""
    return {
        container.get_label(): [(float(x), float(y)) for x, y in zip(*container[0].get_data(), strict=True)]
        for container in ax.containers
    }


class TestSweepOfMethods:
    def test_a_line_an_entry_at_the_values_of_its_looks(self, folder: Path) -> None:
        ax = build("sweep", knobs(folder), parameter="alpha").axes[0]
        lines = drawn_lines(ax)
        assert list(lines) == ["CBO", "wide CBO"]
        np.testing.assert_allclose(lines["CBO"], [(0.1, 3.05), (0.4, 1.05)], atol=0.01)
        np.testing.assert_allclose(lines["wide CBO"], [(0.1, 7.05)], atol=0.01)
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1", "0.4"]
        assert to_hex(ax.containers[0][0].get_color()) == style.PALETTE["green"]

    def test_methods_that_do_not_vary_are_drawn_across(self, folder: Path) -> None:
        ax = build("sweep", knobs(folder), parameter="alpha").axes[0]
        across = {
            line.get_label(): line.get_ydata()[0] for line in ax.lines if line.get_label() in ("BO", "random", "tau")
        }
        assert across == pytest.approx({"BO": 2.05, "random": 5.05, "tau": 4.05})

    def test_entries_and_constants_that_are_named_and_no_others(self, folder: Path) -> None:
        ax = build("sweep", knobs(folder), parameter="alpha", lines=["cbo", "no-such"], constant=["bo", "nor"]).axes[0]
        assert list(drawn_lines(ax)) == ["CBO"]
        assert [line.get_label() for line in ax.lines if line.get_label()[0] != "_"] == ["BO"]

    def test_logarithmic_and_words_of_the_axis(self, folder: Path) -> None:
        ax = build("sweep", knobs(folder), parameter="alpha", logarithmic=True, axis="the level").axes[0]
        assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "the level")

    def test_a_parameter_that_nothing_varies_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="no task and no method with trials varies 'alpa'"):
            build("sweep", knobs(folder), parameter="alpa")

    def test_an_entry_that_is_named_means_all_of_its_methods(self, folder: Path) -> None:
        ax = build("curves", knobs(folder), panels=[{"task": "bowl", "methods": ["bo", "cbo"]}]).axes[0]
        assert [line.get_label() for line in ax.lines] == ["BO", "CBO", "CBO"]

    def test_a_row_a_metric_and_a_column_a_task(self, folder: Path) -> None:
        found = knobs(folder)
        below = [{"metric": "query_coverage", "label": "coverage", "nominal": "mean_nominal_coverage"}]
        task = found.tasks[0]
        figure = build("sweep", found, parameter="alpha", below=below, columns=[task, "no-such"])
        above, last = figure.axes
        assert list(drawn_lines(above)) == list(drawn_lines(last)) == ["CBO", "wide CBO"]
        assert (above.get_ylabel(), last.get_ylabel(), last.get_xlabel()) == ("regret", "coverage", "alpha")
        assert style.NOMINAL in [line.get_label() for line in last.lines]
        assert style.NOMINAL not in [line.get_label() for line in above.lines]


class TestSweepOfTasks:
    def test_points_are_means_at_the_end_with_their_interval(self, found: Evidence) -> None:
        ax = build("sweep", found).axes[0]
        for container, method in zip(ax.containers, made.METHODS, strict=True):
            line, _, (bars,) = container
            low, mean, high = mean_interval(np.array(ends(method))[:, None])
            np.testing.assert_allclose(line.get_ydata(), [mean.item()] * 2)
            for segment in bars.get_segments():
                np.testing.assert_allclose(segment[:, 1], [low.item(), high.item()])

    def test_values_of_the_parameter_are_the_ticks(self, found: Evidence) -> None:
        ax = build("sweep", found).axes[0]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2"]
        assert ax.get_xlabel() == "knob"

    def test_what_a_preset_leaves_out_is_left_out(self, found: Evidence) -> None:
        ax = build("sweep", found, tasks=["bowl", "valley", "no-such"]).axes[0]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2"]
        ax = build("sweep", found, methods=["plain", "no-such"]).axes[0]
        assert list(drawn_lines(ax)) == ["plain"]
        ax = build("sweep", found, tasks=["valley"]).axes[0]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["2"]

    def test_two_ways_at_once_are_refused(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="give `lines` and `constant` where methods vary, or `tasks`"):
            build("sweep", found, lines=["plain"], tasks=["bowl"])

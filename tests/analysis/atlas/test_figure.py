"""The picture of the interventions: colours say which way, and what is unknown is left out."""

from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from plumbline.analysis.atlas.figure import LABELS, LOOKS, ROWS, draw, write_figure
from plumbline.analysis.atlas.interventions import Finding
from plumbline.analysis.outputs import style

NAN = float("nan")


def finding(low: float, high: float, of: str = "score", analysis: str = ROWS[0]) -> Finding:
    return Finding(analysis, of, 9, (low + high) / 2, low, high, 0.5)


@pytest.mark.parametrize(("ends", "seen"), [((-2, -1), -1), ((-1, 1), 0), ((1, 2), 1)])
def test_the_interval_gives_a_direction_where_there_is_no_test(ends: tuple[float, float], seen: int) -> None:
    assert finding(*ends).direction == seen


@pytest.mark.parametrize(("p", "seen"), [(0.04, 1), (0.06, 0)])
def test_the_corrected_test_gives_the_direction_of_a_primary_analysis(p: float, seen: int) -> None:
    assert finding(1, 2)._replace(p_corrected=p).direction == seen
    assert finding(-2, -1)._replace(p_corrected=p).direction == -seen


def test_what_is_shown_is_filled() -> None:
    found = [finding(1, 2)._replace(p_corrected=0.2), finding(1, 2, analysis=ROWS[1])._replace(p_corrected=0.01)]
    with style.house_style():
        figure = draw(found, "made")
    points = [line for line in figure.axes[-1].lines if len(line.get_ydata()) == 1]
    assert [line.get_marker() for line in points] == [LOOKS[0][1], LOOKS[1][1]]
    assert points[0].get_markerfacecolor() == "white"
    assert points[1].get_markerfacecolor() == style.colour("red")
    plt.close(figure)


def test_each_known_difference_is_drawn_in_its_row() -> None:
    found = [finding(-2, -1), finding(1, 2, "calibration_error", ROWS[-1]), Finding(ROWS[1], "score", 1, *[NAN] * 4)]
    found.append(finding(3, 4)._replace(where="track noisy"))
    with style.house_style():
        figure = draw(found, "made")
    errors, scores = figure.axes
    points = [[line.get_ydata()[0] for line in ax.lines if len(line.get_ydata()) == 1] for ax in (errors, scores)]
    assert points == [[len(ROWS) - 1], [0]]
    assert scores.lines[1].get_xdata()[0] == -1.5, "of all tasks, and not of a part of them"
    labels = [tick.get_text().replace("\n", " ") for tick in errors.get_yticklabels()]
    assert labels == LABELS
    plt.close(figure)


def test_probabilities_are_those_after_correction() -> None:
    with style.house_style():
        figure = draw([finding(-2, -1)._replace(p=0.004, p_corrected=0.036), finding(1, 2, analysis=ROWS[-1])], "made")
    written = {text.get_text(): text.get_position()[1] for text in figure.axes[-1].texts}
    assert written.keys() == {"p (Holm)", ".036"}, "a placebo has none"
    assert written[".036"] == 0
    plt.close(figure)


@pytest.mark.slow
def test_both_files_are_written(tmp_path: Path) -> None:
    write_figure([finding(-2, -1)], "made", tmp_path)
    assert (tmp_path / "interventions.png").stat().st_size > 5_000
    assert "recalibrated in closed form" in (tmp_path / "interventions.svg").read_text(encoding="utf-8")

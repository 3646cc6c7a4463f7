"""The picture of the interventions: colours say which way, and what is unknown is left out."""

from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from plumbline.analysis.atlas.figure import HIGHER, LOWER, OPEN, ROWS, draw, look, write_figure
from plumbline.analysis.atlas.interventions import Finding
from plumbline.analysis.outputs import style

NAN = float("nan")


def finding(low: float, high: float, of: str = "score", analysis: str = ROWS[0]) -> Finding:
    return Finding(analysis, of, 9, (low + high) / 2, low, high, 0.5)


@pytest.mark.parametrize(("ends", "seen"), [((-2, -1), LOWER), ((-1, 1), OPEN), ((1, 2), HIGHER)])
def test_look(ends: tuple[float, float], seen: tuple[str, str]) -> None:
    assert look(finding(*ends)) == seen


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
    assert [label.removeprefix("placebo: ") for label in labels] == ROWS
    plt.close(figure)


def test_probabilities_are_those_after_correction() -> None:
    with style.house_style():
        figure = draw([finding(-2, -1)._replace(p=0.004, p_corrected=0.036), finding(1, 2, analysis=ROWS[-1])], "made")
    written = {text.get_text(): text.get_position()[1] for text in figure.axes[-1].texts}
    assert written.keys() == {"p (Holm)", "0.036"}, "a placebo has none"
    assert written["0.036"] == 0
    plt.close(figure)


def test_both_files_are_written(tmp_path: Path) -> None:
    write_figure([finding(-2, -1)], "made", tmp_path)
    assert (tmp_path / "interventions.png").stat().st_size > 5_000
    assert "recalibrated in closed" in (tmp_path / "interventions.svg").read_text(encoding="utf-8")

"""The forest plot has one line per task, and is as wide as a column."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex

from plumbline.analysis.atlas.forest import WIDTH, forest, forest_file, format_of
from plumbline.analysis.atlas.standing import ALL, Difference
from plumbline.analysis.outputs import style
from plumbline.core.errors import PlumblineError
from plumbline.study.legends import Legend

DIFFERENCES = [
    Difference("logei", ALL, 2, -0.1, -0.2, 0.0, 0.05, 0.05),
    Difference("logei", "branin", 3, -0.2, -0.3, -0.1, 0.01),
    Difference("logei", "levy-5", 3, 0.0, -np.inf, np.inf, 1.0),
    Difference("ucb", ALL, 1, np.nan, np.nan, np.nan, np.nan),
    Difference("ucb", "branin", 1, 0.3, np.nan, np.nan, np.nan),
]


LEGENDS = {"ucb": Legend(label="UCB", colour="orange")}


def test_others_have_their_own_words_and_colours() -> None:
    figure = forest(DIFFERENCES, "Mine", {}, LEGENDS)
    (ax,) = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["logei", "UCB"]
    logei, ucb = (to_hex(container[0].get_color()) for container in ax.containers)
    assert ucb == style.PALETTE["orange"] != logei


def test_intervals_that_the_axis_cuts_have_arrows() -> None:
    """Endless ones to both sides."""
    (ax,) = forest(DIFFERENCES, "Mine", {}, {}).axes
    assert [text.get_text() for text in ax.texts] == ["←", "→"]


def test_a_line_a_task_and_the_mean_last() -> None:
    figure = forest(DIFFERENCES, "Mine", {"branin": "Branin"}, LEGENDS)
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Branin", "levy-5", ALL]
    assert figure.get_size_inches()[0] == WIDTH
    low, high = ax.get_xlim()
    assert low == -high
    assert high > 0.3


@pytest.mark.parametrize("kind", ["pdf", "svg"])
def test_two_drawings_are_the_same_file(kind: str) -> None:
    one, other = (forest_file(kind, DIFFERENCES, "Mine", {}, {}) for _ in range(2))
    assert one == other


def test_a_suffix_that_is_no_format_is_refused() -> None:
    with pytest.raises(PlumblineError, match=r"forest\.doc: its suffix is no format: name it \.pdf, \.svg, \.png"):
        format_of(Path("forest.doc"))

"""The figure of acquisition functions on a line."""

import pytest
from illustrated_cases import build, labels
from matplotlib.patches import StepPatch

from plumbline.analysis.figures.illustrated.acquisitions_on_a_line import HEIGHT


def test_a_panel_an_acquisition_function_with_its_query() -> None:
    figure = build("acquisitions-on-a-line", titles={"kg": "knowledge gradient"})
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == ["posterior", "ei", "knowledge gradient", "ucb", "ts", "jes"]
    queries = [line.get_xdata()[0] for ax in figure.axes for line in ax.lines if line.get_label() == "next query"]
    assert queries == [1.0] * 5
    assert {"draw", "draw's optimum", "credible band"} <= set(labels(figure))


def test_the_optimums_place_and_value_have_a_density_each_on_an_edge() -> None:
    posterior = build("acquisitions-on-a-line").axes[0]
    steps = {patch.get_label(): patch for patch in posterior.patches if isinstance(patch, StepPatch)}
    assert set(steps) == {"density of x*", "density of f*"}
    (place, *_), (value, *_) = (steps[name].get_data() for name in ("density of x*", "density of f*"))
    # Two optima, at .1 with 0 and at .2 with .3: the ends of each histogram, as high as each other.
    for heights, name, ends in ((place, "density of x*", (0.1, 0.2)), (1 - value, "density of f*", (0.0, 0.3))):
        assert heights[[0, -1]] == pytest.approx([HEIGHT, HEIGHT])
        assert not heights[1:-1].any()
        assert steps[name].get_data().edges[[0, -1]] == pytest.approx(ends)

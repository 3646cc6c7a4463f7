"""The figure of the radio network."""

from illustrated_cases import build, labels
from matplotlib.patches import Wedge


def test_a_network_is_drawn_to_scale_with_all_its_parts() -> None:
    figure = build("radio-layout")
    above, gain = figure.axes
    assert above.get_aspect() == 1.0
    wedges = [patch for patch in above.patches if isinstance(patch, Wedge)]
    assert [(wedge.theta1, wedge.theta2) for wedge in wedges] == [(30.0, 150.0), (150.0, 270.0), (270.0, 390.0)]
    assert {"gain at a tilt of \N{MINUS SIGN}30°", "gain at a tilt of 40°"} <= set(labels(figure))
    assert [len(ticks.get_positions()) for ticks in gain.collections] == [2, 2]

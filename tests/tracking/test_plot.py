"""The small plot of a trial."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.tracking.plot import HEIGHT, WIDTH, curves_svg

SPACE = "{http://www.w3.org/2000/svg}"
CURVES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(exclude_categories=("C",))), CURVES, max_size=8))
def test_each_curve_is_in_a_panel_of_its_own(curves: dict[str, list[float]]) -> None:
    svg = ElementTree.fromstring(curves_svg({name: ([*range(len(one))], one) for name, one in curves.items()}))
    panels = [group for group in svg.findall(f"{SPACE}g") if "transform" in group.attrib]
    assert len(panels) == len(curves)
    for panel, (name, values) in zip(panels, curves.items(), strict=True):
        title = panel.find(f"{SPACE}text")
        assert title is not None
        assert title.text == f"{name}: {values[-1]:.4g}"
        line = panel.find(f"{SPACE}polyline")
        assert line is not None
        points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        assert len(points) == len(values)
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)


def test_higher_values_are_higher_up() -> None:
    svg = ElementTree.fromstring(curves_svg({"best_f": ([3, 4, 5], [1.0, 2.0, 4.0])}))
    line = svg.find(f".//{SPACE}polyline")
    assert line is not None
    heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert heights == [92.0, 69.3, 24.0]

"""The figure of sets of a well-specified model."""

from illustrated_cases import build, labels


def test_a_panel_a_step() -> None:
    titles = [ax.get_title() for ax in build("well-specified-bands").axes]
    assert titles == ["t = 2, alpha = 0.2", "t = 4, alpha = 0.2"]
    assert "goes on beyond the axis" in labels(build("well-specified-bands"))

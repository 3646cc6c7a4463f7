"""The figure of surfaces of Branin."""

from illustrated_cases import build, labels


def test_both_queries_and_the_level_are_on_the_surfaces() -> None:
    figure = build("branin-surfaces")
    stars = [line for ax in figure.axes for line in ax.lines if line.get_label() == "next query"]
    assert len(stars) == 2
    assert "weight = alpha = 0.35" in labels(figure)

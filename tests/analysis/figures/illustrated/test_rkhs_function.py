"""The figure of a function of known norm."""

from illustrated_cases import build


def test_the_norm_is_in_the_title() -> None:
    assert any("2.0934" in ax.get_title() for ax in build("rkhs-function").axes)

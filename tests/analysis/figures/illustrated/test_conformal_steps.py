"""The figure of the steps to a conformal set."""

from illustrated_cases import build


def test_the_verdict_on_the_guess_is_in_the_title() -> None:
    assert any("the guess is accepted" in ax.get_title() for ax in build("conformal-steps").axes)

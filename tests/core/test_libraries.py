"""Versions of installed libraries."""

from importlib.metadata import version

from plumbline.core.libraries import absent, installed_version


def test_a_version_is_that_of_the_distribution() -> None:
    assert installed_version("scikit-learn") == version("scikit-learn")
    assert installed_version("no-such-distribution") is None


def test_those_that_are_absent_are_named_in_order() -> None:
    assert absent(["no-such-b", "torch", "no-such-a"]) == ["no-such-b", "no-such-a"]
    assert absent([]) == []

"""Identifiers in an RO-Crate; tests/cli/test_results_crate.py has the crates themselves."""

import pytest

from plumbline.analysis.publish.crate import package_url


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("scipy", "1.17.1", "pkg:pypi/scipy@1.17.1"),
        ("torch", "2.13.0+cpu", "pkg:pypi/torch@2.13.0%2Bcpu"),
        ("python", "3.11.7", "pkg:generic/python@3.11.7"),
    ],
)
def test_packages_are_named_by_package_urls(name: str, version: str, expected: str) -> None:
    assert package_url(name, version) == expected

"""The tests mirror the source tree: tests/x/test_y.py, or test_y_<part>.py, is about src/plumbline/x/y.py."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "plumbline"
MIRRORED = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
"""Folders of the package; tests of the repository, and of everything together, lie elsewhere."""

EXCEPTIONS = {"statistics/test_error_rates.py": "it is about error_rates.py beside it, which a page quotes"}


def modules_of(test: Path) -> list[Path]:
    """Return the modules and packages that a test may be about, by its name, whether they are there or not."""
    words = test.stem.split("_")[1:]
    names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
    folder = PACKAGE / test.parent.relative_to(TESTS)
    return [path for name in names for path in (folder / f"{name}.py", folder / name / "__init__.py")]


@pytest.mark.parametrize("folder", MIRRORED)
def test_each_test_is_named_after_the_module_that_it_is_about(folder: str) -> None:
    astray = [
        name
        for test in sorted((TESTS / folder).rglob("test_*.py"))
        if not any(path.is_file() for path in modules_of(test))
        and (name := test.relative_to(TESTS).as_posix()) not in EXCEPTIONS
    ]
    assert astray == []


def test_exceptions_are_there() -> None:
    assert all((TESTS / name).is_file() for name in EXCEPTIONS)

"""The usual evidence, with and without failures."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from made_evidence import usual

from plumbline.analysis.evidence.evidence import Evidence

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    """Close what a test drew."""
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Two methods on two problems with three seeds, all well."""
    return usual(tmp_path_factory.mktemp("usual"))


@pytest.fixture(scope="session")
def found_with_failures(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """The same, and two trials that failed."""
    return usual(tmp_path_factory.mktemp("failures"), failed=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder."""
    return tmp_path

"""Where things are: in a workspace, in a checkout, or in the folder of an installed package."""

from pathlib import Path

import pytest

from plumbline.core import places
from plumbline.core.places import (
    ATLAS,
    CHECKOUT,
    REFERENCE,
    STORE,
    STUDIES,
    installed,
    or_shipped,
    own,
    own_folder,
    own_or_shipped,
    reference_folders,
    shipped,
    workspace,
)
from plumbline.store.provenance import _git


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that an installed package has for what comes with it."""
    package = tmp_path / "site-packages" / "plumbline"
    (package / "_share" / STUDIES).mkdir(parents=True)
    monkeypatch.setattr(places, "PACKAGE", package)
    return package / "_share"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with nothing in it."""
    folder = tmp_path / "else where"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_in_the_checkout(root: Path) -> None:
    assert not installed()
    assert shipped() == CHECKOUT == root
    assert workspace(root / "src" / "plumbline") == root


def test_away_from_the_checkout_it_is_still_what_comes_with_the_package(elsewhere: Path, root: Path) -> None:
    assert workspace() is None
    assert shipped() == root
    assert own_folder() == elsewhere, "nothing is written where nobody looks"
    assert own_or_shipped(REFERENCE) == root / REFERENCE


def test_installed_nothing_is_written_beside_the_package(wheel: Path, elsewhere: Path) -> None:
    assert installed()
    assert shipped() == wheel
    assert own_folder() == elsewhere


def test_installed_in_a_workspace(wheel: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (elsewhere / STUDIES).mkdir(parents=True)
    (elsewhere / "sub" / "folder").mkdir(parents=True)
    monkeypatch.chdir(elsewhere / "sub" / "folder")
    assert own_folder() == elsewhere
    assert own(STORE) == elsewhere / STORE
    assert own(elsewhere / "runs") == elsewhere / "runs"
    monkeypatch.chdir(elsewhere)
    assert own(STORE) == STORE
    monkeypatch.chdir(elsewhere / "sub")
    assert own_or_shipped(REFERENCE / "X") == wheel / REFERENCE / "X"
    (elsewhere / REFERENCE / "X").mkdir(parents=True)
    assert own_or_shipped(REFERENCE / "X") == elsewhere / REFERENCE / "X"
    assert own_or_shipped(ATLAS) == wheel / ATLAS


def test_results_of_a_workspace_are_completed_by_those_of_the_package(wheel: Path, elsewhere: Path) -> None:
    theirs, ours = wheel / REFERENCE, elsewhere / REFERENCE
    for home, name in ((theirs, "X"), (theirs, "Y")):
        (home / name).mkdir(parents=True)
    (elsewhere / STUDIES).mkdir(parents=True)
    assert reference_folders() == {"X": theirs / "X", "Y": theirs / "Y"}
    (ours / "X").mkdir(parents=True)
    (ours / "claims.csv").touch()
    assert or_shipped(REFERENCE / "X").resolve() == ours / "X"
    assert or_shipped(ours / "Y") == theirs / "Y"
    assert or_shipped(elsewhere / "others" / "Y") == elsewhere / "others" / "Y", (
        "a folder of another name is what it is"
    )
    assert {name: path.resolve() for name, path in reference_folders().items()} == {"X": ours / "X", "Y": theirs / "Y"}


def test_a_repository_around_an_installed_package_is_not_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.store.provenance.installed", lambda: True)
    assert _git("rev-parse", "HEAD") is None

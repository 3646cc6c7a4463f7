"""Which outputs are refused."""

from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.overwriting import check_outputs


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.parquet"
    path.write_text("records")
    (tmp_path / "link.parquet").symlink_to(path)
    (tmp_path / "hard.parquet").hardlink_to(path)
    (tmp_path / "folder").mkdir()
    return path


@pytest.mark.parametrize("name", ["in.parquet", "folder/../in.parquet", "link.parquet", "hard.parquet"])
def test_no_input_is_written_over(source: Path, name: str) -> None:
    with pytest.raises(PlumblineError, match=r"is an input of this command too"):
        check_outputs([source.parent / name], [None, source])


@pytest.mark.parametrize("name", ["in.parquet", "folder/../new.csv", "link.parquet", "new.csv"])
def test_two_outputs_are_two_files(source: Path, name: str) -> None:
    first = source if name != "new.csv" and "new" not in name else source.parent / "new.csv"
    with pytest.raises(PlumblineError, match=r"is named twice"):
        check_outputs([first, source.parent / name])


def test_an_output_is_a_file(source: Path) -> None:
    with pytest.raises(PlumblineError, match=r"folder is a folder: name a file"):
        check_outputs([source.parent / "folder"])
    with pytest.raises(PlumblineError, match=r"null is a device or a pipe: name a file"):
        check_outputs([Path("/dev/null")])


def test_some_folders_are_closed(source: Path) -> None:
    with pytest.raises(PlumblineError, match=r"where no command may write"):
        check_outputs([source.parent / "folder" / "deep" / "x.csv"], [], [source.parent / "folder"])


def test_others_may_be_written(source: Path) -> None:
    check_outputs([source.parent / "x.csv", source.parent / "y.csv"], [source], [source.parent / "folder"])
    check_outputs([source])

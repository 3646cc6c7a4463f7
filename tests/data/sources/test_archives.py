import io
import os
import tarfile
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.archives import members


def packed(path: Path, contents: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo("folder/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


def test_files_are_read_and_nothing_is_written(tmp_path: Path) -> None:
    contents = {"folder/a": b"one", "../../b": b"two"}
    path = packed(tmp_path / "a.tar.gz", contents)
    before = sorted(tmp_path.rglob("*"))
    assert dict(members(path)) == contents
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_archive_is_one_line_with_the_remedy(tmp_path: Path, share: float) -> None:
    path = packed(tmp_path / "a.tar.gz", {"a": os.urandom(9_000), "b": os.urandom(9_000)})
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(PlumblineError, match=r"a\.tar\.gz cannot be unpacked .*: delete it and fetch it") as caught:
        list(members(path))
    assert "\n" not in str(caught.value)


def test_what_is_no_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "page.tar.gz").write_text("<html>not found</html>", encoding="utf-8")
    with pytest.raises(PlumblineError, match="cannot be unpacked"):
        list(members(tmp_path / "page.tar.gz"))
    with pytest.raises(PlumblineError, match=r"no file .*nowhere\.tar\.gz: `plumbline fetch` gets it"):
        list(members(tmp_path / "nowhere.tar.gz"))

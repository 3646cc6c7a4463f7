import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.archives import member_of, members, text_lines, unpacked


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


def test_an_archive_without_compression_is_not_cut_off_between_members(tmp_path: Path) -> None:
    whole = gzip.decompress(packed(tmp_path / "a.tar.gz", {"a": b"one", "b": b"two"}).read_bytes())
    path = tmp_path / "a.tar"
    path.write_bytes(whole)
    assert dict(members(path)) == {"a": b"one", "b": b"two"}
    for blocks in range(1, 6):
        path.write_bytes(whole[: 512 * blocks] if blocks != 3 else whole[: 512 * 3 - 1])
        with pytest.raises(PlumblineError, match=r"a\.tar cannot be unpacked \("):
            list(members(path))


def test_what_is_no_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "page.tar.gz").write_text("<html>not found</html>", encoding="utf-8")
    with pytest.raises(PlumblineError, match="cannot be unpacked"):
        list(members(tmp_path / "page.tar.gz"))
    with pytest.raises(PlumblineError, match=r"no file .*nowhere\.tar\.gz: `plumbline fetch` gets it"):
        list(members(tmp_path / "nowhere.tar.gz"))


@pytest.mark.parametrize("prefix", ["", "./", "/", ".//"])
def test_a_prefix_of_the_names_makes_no_difference(tmp_path: Path, prefix: str) -> None:
    path = packed(tmp_path / "a.tar.gz", {f"{prefix}folder/a": b"one"})
    assert dict(members(path)) == {"folder/a": b"one"}
    assert member_of(path, "folder/a") == member_of(path, "./folder/a") == b"one"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder/link", r"folder/link in it is a link or a device, not a file"),
        ("folder", "no file folder in it"),
        ("nowhere", "no file nowhere in it"),
        ("b", "no file b in it"),
    ],
)
def test_a_member_that_is_no_file_is_named(tmp_path: Path, name: str, said: str) -> None:
    path = packed(tmp_path / "a.tar.gz", {"folder/a": b"one", "../b": b"two"})
    with pytest.raises(PlumblineError, match=rf"a\.tar\.gz cannot be unpacked \({said}\): delete it") as caught:
        member_of(path, name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_no_link_or_device_of_any_kind_is_read(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo("a")
        entry.type, entry.linkname = kind, "../../etc/passwd"
        archive.addfile(entry)
    assert dict(members(tmp_path / "a.tar")) == {}
    with pytest.raises(PlumblineError, match="a in it is a link or a device"):
        member_of(tmp_path / "a.tar", "a")


def test_of_two_files_of_a_name_the_last_is_read(tmp_path: Path) -> None:
    assert member_of(packed(tmp_path / "a.tar.gz", {"a": b"one", "./a": b"two"}), "a") == b"two"


def test_what_unpacks_to_too_much_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(3 << 20)))
    assert len(unpacked(path, 3 << 20)) == 3 << 20
    with pytest.raises(PlumblineError, match=r"zeros\.gz unpacks to more than 2 MiB and was not read"):
        unpacked(path, 2 << 20)


def test_a_file_of_holes_is_not_read(tmp_path: Path) -> None:
    """A sparse file of a tebibyte takes a kilobyte in an archive."""
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("a")
        entry.pax_headers = {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,0"}
        archive.addfile(entry)
    with pytest.raises(PlumblineError, match=r"a in it would have 1099511627776 bytes"):
        member_of(tmp_path / "a.tar", "a")


@pytest.mark.parametrize("compress", [lambda content: content, gzip.compress, bz2.compress, lzma.compress])
def test_any_compression_is_undone(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "text"
    path.write_bytes(compress("\ufeffone\r\ntwo\x0b\u2028\rthree".encode() + b"\xff"))
    assert text_lines(path) == ["one", "two\x0b\u2028", "three\ufffd"]


def test_all_members_of_a_gzip_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two"))
    assert text_lines(path) == ["one", "two"]


@pytest.mark.parametrize("page", [b"\n <!DOCTYPE html><p>", b"\xef\xbb\xbf<html lang='en'>", b"<HTML>"])
def test_a_web_page_is_called_one(tmp_path: Path, page: bytes) -> None:
    for name, content in (("page.txt", page), ("page.gz", gzip.compress(page))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PlumblineError, match=rf"{name} is a web page: delete it and fetch it again"):
            text_lines(tmp_path / name)


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.xz", "tar.bz2", "tar"])
def test_a_damaged_archive_is_read_or_one_line(tmp_path: Path, suffix: str) -> None:
    path, draw = tmp_path / f"a.{suffix}", random.Random(0)
    with tarfile.open(path, "w:" + suffix.removeprefix("tar").removeprefix(".")) as archive:
        for name in ("a", "folder/b"):
            entry = tarfile.TarInfo(name)
            entry.size = 600
            archive.addfile(entry, io.BytesIO(draw.randbytes(600)))
    whole, said = path.read_bytes(), []
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(draw.choice([1, 1, 2, 30])):
            content[draw.randrange(min(len(content), 2000))] = draw.randrange(256)
        path.write_bytes(content[: draw.choice([len(content), draw.randrange(len(content))])])
        try:
            list(members(path))
        except PlumblineError as error:
            said.append(str(error))
    assert all(str(path) in one and "\n" not in one for one in said)

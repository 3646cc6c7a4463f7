"""Compressed files and archives, read in memory within a limit, without extraction to disk."""

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError

LARGEST = 1 << 29
"""Greatest size in bytes that a file may unpack to: 512 MiB, nearly three times the largest file that the study reads
(CIFAR-10, 186 MB). A small file can unpack to more than a machine's memory."""

OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ\x00": lzma}
"""The module that opens a compressed file, by its first bytes."""

PACKED = frozenset({".gz", ".tgz", ".bz2", ".xz"})
"""Suffixes of files that must be compressed."""

_DAMAGE = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)
"""What the readers of the standard library raise for a damaged file."""


def unpacked(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a file, decompressed if it is compressed; all members of a gzip file.

    Raises:
        PlumblineError: the file is missing, truncated or damaged, or unpacks to more than `largest` bytes; the message
            has the remedy.
    """
    try:
        with path.open("rb") as stream:
            beginning = stream.read(max(map(len, OPENERS)))
        opener = next((one for magic, one in OPENERS.items() if beginning.startswith(magic)), None)
        if opener is None and path.suffix in PACKED:
            raise gzip.BadGzipFile("it is not compressed, as its name says")
        with opener.open(path) if opener else path.open("rb") as stream:
            content = stream.read(largest + 1)
    except FileNotFoundError as error:
        raise PlumblineError(f"no file {path}: `plumbline fetch` gets it") from error
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise PlumblineError(f"{path} cannot be read: {error.strerror}") from error
        raise _damaged(path, error) from error
    if len(content) > largest:
        raise PlumblineError(f"{path} unpacks to more than {largest >> 20} MiB and was not read: fetch it again")
    return content


def text_lines(path: Path) -> list[str]:
    """Return the lines of a text file, compressed or not, without their ends.

    A byte-order mark is dropped. Lines end with LF, CRLF or CR, and with nothing else. A byte that is not UTF-8 becomes
    U+FFFD, so that it concerns its line alone.

    Raises:
        PlumblineError: as `unpacked`; or the file is a web page.
    """
    return text_in(path, unpacked(path))


def text_in(path: Path, content: bytes) -> list[str]:
    """Return the lines of a text, as `text_lines` does; `path` is for the message.

    Raises:
        PlumblineError: the text is a web page.
    """
    text = content.decode("utf-8-sig", errors="replace")
    if text.lstrip()[:9].lower().startswith(("<!doctype", "<html")):
        raise PlumblineError(f"{path} is a web page: delete it and fetch it again")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def members(path: Path, wanted: Callable[[str], bool] | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files in a tar archive, compressed or not; of those that are `wanted`, if given.

    Names have no leading `./` or `/`. Nothing is written, so that no member can leave a folder. Links are not followed.
    The archive is decompressed completely first: a truncated one is noticed before any content is used.

    Raises:
        PlumblineError: as `unpacked`; or a wanted member is a link, or too large; the message names it.
    """
    content = unpacked(path)
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            if content[-tarfile.BLOCKSIZE :].strip(b"\0"):  # tarfile takes the end of a file for that of the archive
                raise tarfile.ReadError("it is cut off")
            for member in archive:
                name = posixpath.normpath(member.name).lstrip("/")
                if member.isdir() or not (wanted(name) if wanted else member.isreg()):
                    continue
                if not member.isreg():
                    raise tarfile.TarError(f"{name} in it is a link or a device, not a file")
                if member.size > len(content):  # the holes of a sparse file take no space in an archive
                    raise tarfile.TarError(f"{name} in it would have {member.size} bytes")
                file = archive.extractfile(member)
                assert file is not None
                yield name, file.read()
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def member_of(path: Path, name: str) -> bytes:
    """Return the content of the file `name` in a tar archive; of the last one, if there are several, as tar does.

    Raises:
        PlumblineError: as `members`; or there is no such file.
    """
    held = [content for _, content in members(path, lambda one: one == posixpath.normpath(name))]
    if not held:
        raise _damaged(path, tarfile.TarError(f"no file {name} in it"))
    return held[-1]


def _damaged(path: Path, error: Exception) -> PlumblineError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return PlumblineError(f"{path} cannot be unpacked ({reason}): delete it and fetch it again")

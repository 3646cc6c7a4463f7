"""Compressed archives, read in memory without extraction to disk."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from plumbline.core.errors import PlumblineError


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each regular file of a .tar.gz, without links.

    The archive is decompressed completely first, so that a truncated one is detected before any content is used.

    Raises:
        PlumblineError: the archive is missing or damaged; the message has the remedy.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(path.read_bytes())), mode="r:") as archive:
            for member in archive:
                if member.isfile() and (content := archive.extractfile(member)):
                    yield member.name, content.read()
    except FileNotFoundError as error:
        raise PlumblineError(f"no file {path}: `plumbline fetch` gets it") from error
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise PlumblineError(f"{path} cannot be unpacked ({error}): delete it and fetch it again") from error

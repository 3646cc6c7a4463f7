"""Compressed archives, read in memory: nothing in them is written to the disk."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from plumbline.core.errors import PlumblineError


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each regular file of a .tar.gz; links are passed over.

    It is decompressed in whole first: a truncated one is found out before anything of it is used.

    Raises:
        PlumblineError: an archive that is damaged, or none at all; with the remedy.
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

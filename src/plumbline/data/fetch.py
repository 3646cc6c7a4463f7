"""Download of files from a mirror or their source: verified, resumed and atomic."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pooch
import requests
import urllib3
from pooch.hashes import hash_matches

from plumbline.core.errors import PlumblineError
from plumbline.core.locks import locked
from plumbline.data.datasets import Dataset

TIMEOUT = (20, 60)
"""Timeouts in seconds, for a connection and between two pieces of an answer."""

ATTEMPTS = 4
"""Number of attempts to resume a broken transfer."""

PIECE = 1 << 16

Downloader = Callable[[str, Any, Any], None]


class TruncatedError(requests.RequestException):
    """The connection ended before the end of the file."""


def copy_from(source: Path) -> Downloader:
    """Return a pooch downloader that copies a local file."""

    def download(url: str, output: str | IO[bytes], _: Any) -> None:
        shutil.copyfile(source, str(output))
        Path(str(output)).chmod(0o644)  # only its owner may read pooch's file; a data folder may be shared

    return download


def resume_into(part: Path) -> Downloader:
    """Return a pooch downloader that resumes from the partial file `part` when the connection breaks."""

    def download(url: str, output: str | IO[bytes], _: Any) -> None:
        for attempt in range(ATTEMPTS):
            try:
                transfer(url, part)
                break
            except (TruncatedError, requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                if attempt == ATTEMPTS - 1 or not part.exists():
                    raise
        part.replace(str(output))

    return download


def transfer(url: str, part: Path) -> None:
    """Append the missing rest of the file at `url` to `part`, or start over where the server cannot resume.

    Raises:
        TruncatedError: the server sent fewer bytes than announced; they remain in `part`.
        requests.RequestException: no connection, or an error of the server.
    """
    have = part.stat().st_size if part.exists() else 0
    # Compression in transit would change the bytes and their ranges, and the checksum is of the uncompressed file.
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            return  # the file is complete, or the checksum will fail
        answer.raise_for_status()
        resumed = answer.status_code == requests.codes.partial_content
        announced = int(answer.headers.get("Content-Length", -1))
        start = have if resumed else 0
        came = 0
        broken: urllib3.exceptions.HTTPError | None = None
        with part.open("ab" if resumed else "wb") as file:
            try:
                # Raw, since a .gz file must stay compressed. Errors are therefore urllib3's, not requests'.
                for piece in answer.raw.stream(PIECE, decode_content=False):
                    file.write(piece)
                    came += len(piece)
            except urllib3.exceptions.HTTPError as error:
                broken = error
    if broken is not None or came < announced:
        total = f" of {start + announced}" if announced >= 0 else ""
        raise TruncatedError(f"{start + came}{total} bytes came") from broken


def fetch(dataset: Dataset, directory: Path, mirror: Path | None = None) -> Path:
    """Return the verified file of a data set, in `directory`.

    An existing file with the right checksum is used. Otherwise we try the mirror, by file name and with the same
    checksum, and then the source.

    Raises:
        PlumblineError: there is no file to fetch, the checksum is wrong, the mirror's file may not be read, or
            neither mirror nor source can be reached.
    """
    if dataset.file is None:
        raise PlumblineError(f"dataset {dataset.name!r} is generated: there is nothing to fetch")
    path = directory / dataset.file
    mirrored = mirror / dataset.file if mirror is not None and (mirror / dataset.file).is_file() else None
    if mirrored is None and dataset.url is None:
        raise PlumblineError(
            f"{dataset.file} has no address{_lacking(mirror)}: put it into a folder and name that in PLUMBLINE_MIRROR"
        )
    if not (path.is_file() and hash_matches(path, dataset.hash)):  # else the folder may well be read-only
        # Two processes that append to one partial file would spoil it for both.
        with locked(directory / f".{dataset.file}.lock", "fetches this file"):
            _retrieve(dataset, path, mirror, mirrored)
    return path


def _retrieve(dataset: Dataset, path: Path, mirror: Path | None, mirrored: Path | None) -> None:
    """Put the verified file of a data set at `path`; see `fetch`."""
    part = path.with_name(f"{path.name}.part")
    if dataset.hash is None:
        part.unlink(missing_ok=True)  # without a checksum, a change of the source would pass unnoticed
    pooch.get_logger().setLevel("WARNING")  # its messages name the source even for the mirror
    try:
        pooch.retrieve(
            url=dataset.url or f"mirror/{dataset.file}",
            known_hash=dataset.hash,
            fname=path.name,
            path=path.parent,
            downloader=copy_from(mirrored) if mirrored else resume_into(part),
        )
    except requests.RequestException as error:  # first, since some of these are ValueErrors too
        raise PlumblineError(
            f"cannot download {dataset.file} from {dataset.url} ({_reason(error)}{_lacking(mirror)}): run again when "
            "there is a network, or put the file into a folder and name that in PLUMBLINE_MIRROR"
        ) from error
    except PermissionError as error:
        if mirrored is None or Path(str(error.filename)) != mirrored:
            raise
        raise PlumblineError(f"{mirrored} may not be read: change its permissions, or remove it") from error
    except ValueError as error:  # pooch raises it for a wrong checksum
        part.unlink(missing_ok=True)
        raise _wrong_checksum(dataset, mirrored, error) from error


def _lacking(mirror: Path | None) -> str:
    """Return why a mirror did not serve a file; nothing without a mirror."""
    if mirror is None:
        return ""
    return f"; {mirror} does not have it" if mirror.is_dir() else f"; no folder at {mirror} (PLUMBLINE_MIRROR)"


def _wrong_checksum(dataset: Dataset, mirrored: Path | None, error: ValueError) -> PlumblineError:
    match = re.search(r"but got (\w+)", str(error))
    got = match[1] if match else str(error)
    if mirrored is not None:
        remedy = "replace or remove that file of the mirror"
    else:
        remedy = "the download was discarded; run again, and if it recurs the source has changed"
    source = mirrored or f"{dataset.file} from {dataset.url}"
    return PlumblineError(f"wrong checksum of {source}: expected {dataset.hash}, got {got}; {remedy}")


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, TruncatedError):
        return f"the connection broke off: {error}; the part that came is kept and will be gone on from"
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code}"
    return "no connection" if isinstance(error, requests.ConnectionError) else type(error).__name__

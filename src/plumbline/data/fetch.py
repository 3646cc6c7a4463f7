"""Getting a file: from the mirror or from its source, verified, resumed, never half-written."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pooch
import requests
import urllib3

from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import Dataset

TIMEOUT = (20, 60)
"""Seconds to wait for a connection, and between two pieces of an answer."""

ATTEMPTS = 4
"""Times a transfer that breaks off is taken up again."""

PIECE = 1 << 16

Downloader = Callable[[str, Any, Any], None]


class TruncatedError(requests.RequestException):
    """The connection ended before the file did."""


def copy_from(source: Path) -> Downloader:
    """Return a pooch downloader that copies a local file."""

    def download(url: str, output: str | IO[bytes], _: Any) -> None:
        shutil.copyfile(source, str(output))
        Path(str(output)).chmod(0o644)  # pooch's temporary file is for its owner only; a data folder may be shared

    return download


def resume_into(part: Path) -> Downloader:
    """Return a pooch downloader that keeps what it has in `part` when the connection breaks, and goes on from there."""

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
    """Append to `part` what it lacks of the file at `url`, or start over where the server cannot resume.

    Raises:
        TruncatedError: fewer bytes came than were announced; they are kept.
        requests.RequestException: no connection, or an error of the server.
    """
    have = part.stat().st_size if part.exists() else 0
    # A server that compresses on the way would send, and count in ranges, other bytes than the checksum is of.
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            return  # all of it is here; the checksum will tell if it is not
        answer.raise_for_status()
        resumed = answer.status_code == requests.codes.partial_content
        announced = int(answer.headers.get("Content-Length", -1))
        start = have if resumed else 0
        came = 0
        broken: urllib3.exceptions.HTTPError | None = None
        with part.open("ab" if resumed else "wb") as file:
            try:
                # raw, not decoded: a .gz must arrive as it lies on the server. Hence urllib3's errors, not requests'.
                for piece in answer.raw.stream(PIECE, decode_content=False):
                    file.write(piece)
                    came += len(piece)
            except urllib3.exceptions.HTTPError as error:
                broken = error
    if broken is not None or came < announced:
        total = f" of {start + announced}" if announced >= 0 else ""
        raise TruncatedError(f"{start + came}{total} bytes came") from broken


def fetch(dataset: Dataset, directory: Path, mirror: Path | None = None) -> Path:
    """Return the verified file of a dataset, in `directory`.

    A file with the right checksum that is there already is left alone. The mirror is tried first, by file name and
    with the same checksum; then the source.

    Raises:
        PlumblineError: no file to fetch, a wrong checksum, or neither mirror nor network; each with the remedy.
    """
    if dataset.file is None:
        raise PlumblineError(f"dataset {dataset.name!r} is generated: there is nothing to fetch")
    path = directory / dataset.file
    part = directory / f"{dataset.file}.part"
    mirrored = mirror / dataset.file if mirror is not None and (mirror / dataset.file).is_file() else None
    if mirrored is None and dataset.url is None:
        raise PlumblineError(f"{dataset.file} has no address: put it into a folder and name that in PLUMBLINE_MIRROR")
    directory.mkdir(parents=True, exist_ok=True)
    if dataset.hash is None:
        part.unlink(missing_ok=True)  # nothing would tell if the source had changed since
    pooch.get_logger().setLevel("WARNING")  # it would name the source even where the mirror is read
    try:
        pooch.retrieve(
            url=dataset.url or f"mirror/{dataset.file}",
            known_hash=dataset.hash,
            fname=dataset.file,
            path=directory,
            downloader=copy_from(mirrored) if mirrored else resume_into(part),
        )
    except requests.RequestException as error:  # first: some of these are ValueErrors, too
        lacking = f"; {mirror} does not have it" if mirror is not None else ""
        raise PlumblineError(
            f"cannot download {dataset.file} from {dataset.url} ({_reason(error)}{lacking}): run again when there is "
            "a network, or put the file into a folder and name that in PLUMBLINE_MIRROR"
        ) from error
    except ValueError as error:  # pooch's word for a checksum that does not match
        part.unlink(missing_ok=True)
        raise _wrong_checksum(dataset, mirrored, error) from error
    return path


def _wrong_checksum(dataset: Dataset, mirrored: Path | None, error: ValueError) -> PlumblineError:
    found = re.search(r"but got (\w+)", str(error))
    got = found[1] if found else str(error)
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

"""Fetching from a server that breaks off, forgets ranges or refuses, as real ones do."""

import errno
import hashlib
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import Dataset
from plumbline.data.fetch import ATTEMPTS, fetch

NAME = "file.bin"


@dataclass
class Site:
    """One file on a server of this machine, and how the server behaves.

    Attributes:
        content: the file.
        resumes: whether `Range` is honoured.
        cuts: for each request in turn, the bytes after which the connection is closed; None for all of them.
        always_cut: the same for every request once `cuts` are used up.
        status: an error to answer with instead.
        asked: the `Range` header of each request so far, None where there was none.
        sent: the bytes of the body that each request got, noted before it gets them: the client may be back first.
    """

    content: bytes
    resumes: bool = True
    cuts: list[int | None] = field(default_factory=list)
    always_cut: int | None = None
    status: int | None = None
    port: int = 0
    asked: list[str | None] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/file.bin"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.asked.append(wanted)
        if self.status is not None:
            self.sent.append(0)
            handler.send_error(self.status)
            return
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and self.resumes else 0
        if start and start >= len(self.content):
            self.sent.append(0)
            handler.send_error(416)
            return
        body = self.content[start:]
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        piece = body[: self.cuts.pop(0) if self.cuts else self.always_cut]
        self.sent.append(len(piece))
        handler.wfile.write(piece)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server on 127.0.0.1 with one file of 300,000 bytes."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = Site(content=bytes(i * i % 251 for i in range(300_000)))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def dataset(site: Site) -> Dataset:
    return entry(site.url, digest(site.content))


def entry(url: str | None, checksum: str | None, file: str | None = NAME) -> Dataset:
    return Dataset(name="numbers", title="numbers", file=file, url=url, hash=checksum, licence="none", citation="none")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


@pytest.fixture
def mirror(tmp_path: Path, site: Site) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    (folder / NAME).write_bytes(site.content)
    return folder


@pytest.fixture
def keep_part(raw: Path) -> Callable[[bytes], Path]:
    """Leave a part of an earlier download."""

    def keep(content: bytes) -> Path:
        raw.mkdir(parents=True)
        part = raw / f"{NAME}.part"
        part.write_bytes(content)
        return part

    return keep


def names(folder: Path) -> list[str]:
    """What lies in a folder, hidden files and left-overs included, but for the lock."""
    return sorted(set(os.listdir(folder)) - {f".{NAME}.lock"})


def one_line(error: pytest.ExceptionInfo[PlumblineError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


class TestDownload:
    def test_the_file_arrives_whole_and_alone(self, site: Site, dataset: Dataset, raw: Path) -> None:
        path = fetch(dataset, raw)
        assert path == raw / NAME
        assert path.read_bytes() == site.content
        assert names(raw) == [NAME]
        assert site.asked == [None]

    def test_a_file_that_is_there_is_not_asked_for(self, site: Site, dataset: Dataset, raw: Path) -> None:
        raw.mkdir()
        (raw / NAME).write_bytes(site.content)
        assert fetch(dataset, raw) == raw / NAME
        assert site.asked == []

    def test_a_file_that_is_there_may_lie_in_a_folder_that_is_read_only(
        self, site: Site, dataset: Dataset, raw: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        raw.mkdir()
        (raw / NAME).write_bytes(site.content)
        monkeypatch.setattr("plumbline.data.fetch.locked", None)  # the tests may run as root, who may write anywhere
        assert fetch(dataset, raw) == raw / NAME

    def test_several_processes_that_want_it_at_once_download_it_once(
        self, site: Site, dataset: Dataset, raw: Path
    ) -> None:
        site.cuts = [100_000] * (ATTEMPTS - 1)
        with ThreadPoolExecutor(4) as pool:
            paths = list(pool.map(lambda _: fetch(dataset, raw), range(4)))
        assert {path.read_bytes() for path in paths} == {site.content}
        assert site.asked == [None, "bytes=100000-", "bytes=200000-"]

    def test_a_file_that_is_there_but_wrong_is_replaced(self, site: Site, dataset: Dataset, raw: Path) -> None:
        raw.mkdir()
        (raw / NAME).write_bytes(b"half-written by something else")
        assert fetch(dataset, raw).read_bytes() == site.content

    def test_without_a_published_checksum_the_file_is_taken_as_it_comes(self, site: Site, raw: Path) -> None:
        assert fetch(entry(site.url, None), raw).read_bytes() == site.content

    def test_other_algorithms_are_named_before_the_checksum(self, site: Site, raw: Path) -> None:
        md5 = hashlib.md5(site.content).hexdigest()
        assert fetch(entry(site.url, f"md5:{md5}"), raw).read_bytes() == site.content


class TestResume:
    def test_only_the_rest_is_sent(
        self, site: Site, dataset: Dataset, raw: Path, keep_part: Callable[[bytes], Path]
    ) -> None:
        keep_part(site.content[:123_457])
        assert fetch(dataset, raw).read_bytes() == site.content
        assert site.asked == ["bytes=123457-"]
        assert site.sent == [300_000 - 123_457]
        assert names(raw) == [NAME]

    def test_a_part_that_is_whole_already_is_only_verified(
        self, site: Site, dataset: Dataset, raw: Path, keep_part: Callable[[bytes], Path]
    ) -> None:
        keep_part(site.content)
        assert fetch(dataset, raw).read_bytes() == site.content
        assert site.sent == [0]

    def test_a_server_that_ignores_ranges_is_read_from_the_start(
        self, site: Site, dataset: Dataset, raw: Path, keep_part: Callable[[bytes], Path]
    ) -> None:
        site.resumes = False
        keep_part(site.content[:123_457])
        assert fetch(dataset, raw).read_bytes() == site.content
        assert site.sent == [300_000]

    def test_a_part_of_another_file_is_told_by_the_checksum_and_dropped(
        self, site: Site, dataset: Dataset, raw: Path, keep_part: Callable[[bytes], Path]
    ) -> None:
        keep_part(b"x" * 1000)
        with pytest.raises(PlumblineError, match="wrong checksum"):
            fetch(dataset, raw)
        assert names(raw) == []
        assert fetch(dataset, raw).read_bytes() == site.content


class TestBrokenConnection:
    def test_a_transfer_that_breaks_off_is_taken_up_again_within_the_call(
        self, site: Site, dataset: Dataset, raw: Path
    ) -> None:
        site.cuts = [100_000, 50_000, None]
        assert fetch(dataset, raw).read_bytes() == site.content
        assert site.asked == [None, "bytes=100000-", "bytes=150000-"]
        assert sum(site.sent) == 300_000

    def test_one_that_breaks_off_before_the_first_byte_is_taken_up_again(
        self, site: Site, dataset: Dataset, raw: Path
    ) -> None:
        site.cuts = [0, None]
        assert fetch(dataset, raw).read_bytes() == site.content

    def test_it_gives_up_with_one_line_and_keeps_what_came(self, site: Site, dataset: Dataset, raw: Path) -> None:
        site.always_cut = 20_000
        with pytest.raises(PlumblineError) as error:
            fetch(dataset, raw)
        message = one_line(error)
        assert NAME in message
        assert site.url in message
        assert "broke off" in message
        assert "is kept" in message
        assert names(raw) == [f"{NAME}.part"]
        assert (raw / f"{NAME}.part").read_bytes() == site.content[: 20_000 * ATTEMPTS]

    def test_the_next_call_finishes_it(self, site: Site, dataset: Dataset, raw: Path) -> None:
        site.always_cut = 20_000
        with pytest.raises(PlumblineError):
            fetch(dataset, raw)
        site.always_cut = None
        assert fetch(dataset, raw).read_bytes() == site.content
        assert site.asked[-1] == f"bytes={20_000 * ATTEMPTS}-"
        assert sum(site.sent) == 300_000


class TestRefusal:
    def test_a_wrong_checksum_names_file_expected_and_got_and_leaves_nothing(self, site: Site, raw: Path) -> None:
        with pytest.raises(PlumblineError) as error:
            fetch(entry(site.url, "0" * 64), raw)
        message = one_line(error)
        assert site.url in message
        assert f"expected {'0' * 64}" in message
        assert f"got {digest(site.content)}" in message
        assert names(raw) == []

    @pytest.mark.parametrize("status", [403, 404, 500, 503])
    def test_an_error_of_the_server_is_told_by_its_number(
        self, site: Site, dataset: Dataset, raw: Path, status: int
    ) -> None:
        site.status = status
        with pytest.raises(PlumblineError, match=f"the server answered {status}") as error:
            fetch(dataset, raw)
        assert site.url in one_line(error)
        assert names(raw) == []

    def test_an_error_of_the_server_keeps_the_part(
        self, site: Site, dataset: Dataset, raw: Path, keep_part: Callable[[bytes], Path]
    ) -> None:
        part = keep_part(site.content[:1000])
        site.status = 503
        with pytest.raises(PlumblineError):
            fetch(dataset, raw)
        assert part.read_bytes() == site.content[:1000]

    def test_no_network_names_file_address_and_the_mirror_variable(
        self, monkeypatch: pytest.MonkeyPatch, raw: Path
    ) -> None:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{closed.getsockname()[1]}/{NAME}"
        with pytest.raises(PlumblineError) as error:
            fetch(entry(url, "0" * 64), raw)
        message = one_line(error)
        assert NAME in message
        assert url in message
        assert "PLUMBLINE_MIRROR" in message
        assert "no connection" in message
        assert names(raw) == []

    def test_an_address_that_is_none_is_not_called_a_wrong_checksum(self, raw: Path) -> None:
        with pytest.raises(PlumblineError) as error:
            fetch(entry("nowhere", "0" * 64), raw)
        assert "cannot download" in one_line(error)

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full to fill")
    def test_a_full_disk_is_passed_on_and_leaves_no_file(self, dataset: Dataset, raw: Path) -> None:
        raw.mkdir()
        (raw / f"{NAME}.part").symlink_to("/dev/full")
        with pytest.raises(OSError, match="No space left") as error:
            fetch(dataset, raw)
        assert error.value.errno == errno.ENOSPC
        assert not isinstance(error.value, PlumblineError)
        assert names(raw) == [f"{NAME}.part"]

    def test_a_disk_that_fills_while_the_mirror_is_copied_leaves_no_file(
        self, monkeypatch: pytest.MonkeyPatch, dataset: Dataset, raw: Path, mirror: Path
    ) -> None:
        def full(source: object, target: str) -> None:
            Path(target).write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

        monkeypatch.setattr(shutil, "copyfile", full)
        with pytest.raises(OSError, match="No space left"):
            fetch(dataset, raw, mirror)
        assert names(raw) == []


class TestMirror:
    def test_it_is_read_instead_of_the_network(self, site: Site, dataset: Dataset, raw: Path, mirror: Path) -> None:
        assert fetch(dataset, raw, mirror).read_bytes() == site.content
        assert site.asked == []

    def test_it_serves_what_has_no_address(self, site: Site, raw: Path, mirror: Path) -> None:
        assert fetch(entry(None, digest(site.content)), raw, mirror).read_bytes() == site.content

    def test_a_wrong_file_in_it_is_named_and_never_replaced_by_a_download(
        self, site: Site, dataset: Dataset, raw: Path, mirror: Path
    ) -> None:
        (mirror / NAME).write_bytes(b"another")
        with pytest.raises(PlumblineError, match="wrong checksum") as error:
            fetch(dataset, raw, mirror)
        message = one_line(error)
        assert str(mirror / NAME) in message
        assert f"got {digest(b'another')}" in message
        assert site.asked == []
        assert names(raw) == []

    def test_a_mirror_without_the_file_falls_back_on_the_network(
        self, site: Site, dataset: Dataset, raw: Path, tmp_path: Path
    ) -> None:
        assert fetch(dataset, raw, tmp_path / "no-such-folder").read_bytes() == site.content
        assert site.asked == [None]

    def test_without_address_and_mirror_the_variable_is_named(self, raw: Path) -> None:
        with pytest.raises(PlumblineError, match=rf"{NAME} has no address.*PLUMBLINE_MIRROR"):
            fetch(entry(None, None), raw)

    @pytest.mark.parametrize("made", [False, True])
    def test_a_mirror_that_is_no_folder_is_said_to_be_none(self, tmp_path: Path, raw: Path, made: bool) -> None:
        place = tmp_path / "no-folder"
        if made:
            place.write_text("a file")
        for url in (None, "nowhere"):
            with pytest.raises(PlumblineError, match=r"no folder at .*no-folder \(PLUMBLINE_MIRROR\)") as error:
                fetch(entry(url, "0" * 64), raw, place)
            one_line(error)

    def test_a_file_of_the_mirror_that_may_not_be_read_is_named(
        self, monkeypatch: pytest.MonkeyPatch, dataset: Dataset, raw: Path, mirror: Path
    ) -> None:
        def forbidden(source: object, target: str) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(source))

        monkeypatch.setattr(shutil, "copyfile", forbidden)
        with pytest.raises(PlumblineError, match=rf"{mirror / NAME} may not be read"):
            fetch(dataset, raw, mirror)
        assert names(raw) == []


def test_a_generated_dataset_is_not_fetched(raw: Path) -> None:
    with pytest.raises(PlumblineError, match="'numbers' is generated"):
        fetch(entry(None, None, file=None), raw)
    assert not raw.exists()

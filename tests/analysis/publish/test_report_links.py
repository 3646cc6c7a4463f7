"""Links of the study's page to files beside it, and pictures inside it."""

import base64
from pathlib import Path

import pytest
from made_evidence import PIXEL

from plumbline.analysis.publish.report_links import address, check_svg, data_uri
from plumbline.core import places
from plumbline.core.errors import PlumblineError


class TestAddress:
    """Of reference files, from a page."""

    @pytest.fixture
    def package(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A file of the package, which is elsewhere than the workspace."""
        monkeypatch.setattr(places, "shipped", lambda: folder / "package")
        path = folder / "package" / "results" / "reference" / "A 1" / "A 1.png"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"first")
        return path

    def test_it_leads_to_a_copy_beside_the_page(
        self, package: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(places, "own_folder", lambda: folder / "mine")
        page = folder / "mine" / "results" / "quick" / "report.html"
        for content in (b"first", b"second"):
            package.write_bytes(content)
            assert address(package, page) == "stored/reference/A%201/A%201.png"
            assert (page.parent / "stored/reference/A 1/A 1.png").read_bytes() == content

    def test_in_a_checkout_it_leads_to_the_file(
        self, package: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(places, "own_folder", lambda: folder / "package")
        page = folder / "package" / "results" / "quick" / "report.html"
        assert address(package, page) == "../reference/A%201/A%201.png"
        assert not page.parent.exists()


def test_a_picture_is_part_of_the_page(folder: Path) -> None:
    path = folder / "pixel.png"
    path.write_bytes(PIXEL)
    uri = data_uri(path)
    assert base64.b64decode(uri.removeprefix("data:image/png;base64,")) == PIXEL


@pytest.mark.parametrize("content", [b"", PIXEL[:20], PIXEL[:60], b"<svg></svg>", b"\xff" * 99])
def test_one_that_cannot_be_shown_is_refused(folder: Path, content: bytes) -> None:
    path = folder / "cut.png"
    path.write_bytes(content)
    with pytest.raises(PlumblineError, match=r"cut\.png is empty, cut off or no PNG: delete it, and run"):
        data_uri(path)


def test_one_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no figure .*none\.png: draw it first"):
        data_uri(folder / "none.png")


@pytest.mark.parametrize("content", ["", "<svg><text>cut of"])
def test_a_drawing_that_is_cut_off_is_refused(folder: Path, content: str) -> None:
    path = folder / "cut.svg"
    path.write_text(content)
    with pytest.raises(PlumblineError, match=r"cut\.svg is empty, cut off or no SVG"):
        check_svg(path)

"""Links of the study's page to the files beside it, and pictures inside it."""

import base64
from collections.abc import Iterable
from filecmp import cmp
from os.path import relpath
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple
from urllib.parse import quote

import yaml
from PIL import Image

from plumbline.core import places
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic
from plumbline.study.experiments import Experiment

DAMAGED = "{path} is empty, cut off or no {kind}: delete it, and run the same command again"

ENDINGS = {
    ".svg": "SVG",
    ".pdf": "PDF",
    ".png": "PNG",
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".json": "provenance",
    ".log": "log",
}
"""What links to files are called."""


class Link(NamedTuple):
    """A file beside the page, or in it: its words, its address, and the name under which one that is in it is saved."""

    words: str
    address: str
    name: str = ""


def links(paths: Iterable[Path], page: Path) -> list[Link]:
    """Return links to those of some files that exist, from the folder of the page; two of a kind say their names."""
    there = [path for path in paths if path.is_file()]
    endings = [path.suffix for path in there]
    return [
        Link(
            ENDINGS[path.suffix] + (f" ({path.stem})" if endings.count(path.suffix) > 1 else ""),
            address(path, page),
        )
        for path in there
    ]


PACKAGED = "stored"
"""The folder beside a page with the files of the package that it links to."""


def address(path: Path, page: Path) -> str:
    """Return the address of a file from the folder of the page.

    A file of the package, where the workspace is another folder, is copied beside the page first, so that the page can
    be moved.
    """
    packaged = places.shipped() / "results"
    if path.is_relative_to(packaged) and not path.is_relative_to(places.own_folder()):
        copy = page.parent / PACKAGED / path.relative_to(packaged)
        if not copy.is_file() or not cmp(path, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            with atomic(copy) as part:
                copyfile(path, part)
        path = copy
    return quote(relpath(path, page.parent))


def address_of_stored(reference: Path, page: Path) -> Path:
    """Return the folder of the reference results, `reference`, that the page links to."""
    inside = reference.is_relative_to(places.own_folder())
    return reference if inside else page.parent / PACKAGED / places.REFERENCE.name


def specification(name: str, experiment: Experiment) -> Link:
    """Return a link to the settings of an experiment, as a study has them in YAML."""
    settings = {name: experiment.model_dump(mode="json", exclude_defaults=True)}
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=120)
    return Link("spec", "data:text/yaml;base64," + base64.b64encode(text.encode()).decode(), f"{name}.yaml")


def data_uri(path: Path) -> str:
    """Return a PNG as a data URI, so that the page is one file.

    Raises:
        PlumblineError: no such file, or none that can be shown.
    """
    if not path.is_file():
        raise PlumblineError(f"no figure {path}: draw it first, by the same command")
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            picture.verify()  # checksums, to the end of the file
        with Image.open(path, formats=["PNG"]) as picture:
            picture.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise PlumblineError(DAMAGED.format(path=path, kind="PNG")) from error
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


def pictured(path: Path, page: Path) -> tuple[str, str]:
    """Return an SVG as a data URI, and its address as a file beside the page."""
    check_svg(path)
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode(), address(path, page)


def check_svg(path: Path) -> None:
    """Raise PlumblineError for a drawing that does not end as one: the page names it."""
    if not path.read_bytes().rstrip().endswith(b"</svg>"):
        raise PlumblineError(DAMAGED.format(path=path, kind="SVG"))
